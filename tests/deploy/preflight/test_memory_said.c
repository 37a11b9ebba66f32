/* Tests of what is said of memory before a job starts. */
#include "common/job/job_options.h"
#include "common/service/job_memory.h"
#include "deploy/preflight/memory_said.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static struct hosts hosts;
static struct placement placement;
static struct memory_found found[HOSTS_MAX];
static enum job_memory_mirror mirror; // none, unless a test has one
static char error[OPTION_ERROR_BYTES];

static struct job *make_job(const char *mode, uint32_t workers, uint32_t servers)
{
    static struct job job;
    const struct option_set set = job_option_set(&job);
    options_reset(&set);
    job.mode = mode_of(mode);
    job.workers = workers;
    job.servers = servers;
    job.on_loss = ON_LOSS_FAIL;
    return &job;
}

/* Each host was tried, and its worker takes 100 MiB with 8 MiB of parameters. */
static const char *said(const char *list, const struct job *job)
{
    static char text[MEMORY_SAID_BYTES];
    hosts.count = 0;
    assert_int_equal(hosts_parse(&hosts, list, error), STATUS_OK);
    assert_int_equal(placement_make(&hosts, job, 0, &placement, error), STATUS_OK);
    memory_said_write(&(struct memory_scene){job, &hosts, &placement, mirror, found}, text);
    return text;
}

static void try_hosts(void)
{
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        found[i] = (struct memory_found){.worker = 100 * MIB, .values = 8 * MIB};
    }
}

static void a_host_of_its_own_has_one_line(void **state)
{
    (void)state;
    try_hosts();
    assert_string_equal(said("a:2", make_job("ring", 2, 0)),
                        "memory: about 100 MiB of its own for each worker process\n");
    struct job *job = make_job("ring", 2, 0);
    job->on_loss = ON_LOSS_REDEAL;
    job->optimizer = OPTIMIZER_ADAM;
    assert_string_equal(said("a:2", job),
                        "memory: about 100 MiB of its own for each worker process, and up to 48 "
                        "MiB in the coordinator, for copies to go on from after a loss\n");
}

static void tiny_copies_are_not_said_to_be_nothing(void **state)
{
    (void)state;
    try_hosts();
    found[0].values = 100 << 10;
    struct job *job = make_job("ring", 2, 0);
    job->on_loss = ON_LOSS_REDEAL;
    job->optimizer = OPTIMIZER_SGD;
    assert_non_null(strstr(said("a:2", job), "and up to 200 KiB in the coordinator"));
}

static void a_mirror_takes_more_copies(void **state)
{
    (void)state;
    try_hosts();
    struct job *job = make_job("ring", 2, 0);
    job->on_loss = ON_LOSS_REDEAL;
    job->optimizer = OPTIMIZER_SGD;
    assert_non_null(strstr(said("a:2", job), "and up to 16 MiB in the coordinator, for"));
    mirror = JOB_MEMORY_MIRROR;
    assert_non_null(strstr(said("a:2", job), "and up to 24 MiB in the coordinator, for"));
    mirror = JOB_MEMORY_MIRROR_IN_MEMORY;
    assert_non_null(
        strstr(said("a:2", job), "and up to 48 MiB in the coordinator and its mirror in memory, "));
    mirror = JOB_MEMORY_NO_MIRROR;
}

static void servers_are_said_and_grow_with_their_share(void **state)
{
    (void)state;
    char bytes[32], wanted[160];
    try_hosts();
    struct job *job = make_job("ps-sync", 2, 1);
    uint64_t one = job_memory_of_server(job, 64 * MIB);
    job->servers = 2;
    uint64_t half = job_memory_of_server(job, 64 * MIB);
    assert_true(half < one && 2 * half > one && half > 32 * MIB);
    job->transport = TRANSPORT_TCP; // gradients wait for the mean
    assert_true(job_memory_of_server(job, 64 * MIB) == half + 2 * (32 * MIB));
    snprintf(bytes, sizeof(bytes), "%.0f MiB",
             (double)job_memory_of_server(job, 8 * MIB) / (double)MIB);
    snprintf(wanted, sizeof(wanted),
             "memory: about 100 MiB of its own for each worker process, and up to %s for each "
             "server process\n",
             bytes);
    assert_string_equal(said("a:2", job), wanted);
}

static void a_folder_of_the_hosts_memory_is_in_memory(void **state)
{
    (void)state;
    assert_int_equal(memory_said_mirror(""), JOB_MEMORY_NO_MIRROR);
    assert_int_equal(memory_said_mirror("memory"), JOB_MEMORY_MIRROR_IN_MEMORY);
    assert_int_equal(memory_said_mirror("/dev/shm/job"), JOB_MEMORY_MIRROR_IN_MEMORY);
    assert_int_equal(memory_said_mirror("/disk/dev/shm/job"), JOB_MEMORY_MIRROR);
    assert_int_equal(memory_said_mirror("/memory"), JOB_MEMORY_MIRROR);
}

/* Six ranks on four processes: two with two, and two with one, which lack a gradient. */
static void processes_that_carry_more_ranks_take_more(void **state)
{
    (void)state;
    try_hosts();
    struct job *job = make_job("ring", 6, 0);
    job->processes = 4;
    assert_string_equal(said("a:4", job),
                        "memory: about 92 MiB to 100 MiB of its own for each worker process\n");
}

static void each_host_has_the_sum_of_its_processes(void **state)
{
    (void)state;
    try_hosts();
    struct job *job = make_job("ring", 6, 0);
    job->processes = 4;
    found[1].worker = 120 * MIB;
    // a has the coordinator and both that carry two ranks.
    const char *text = said("a:2,b:2", job);
    const char *line = strchr(text, '\n');
    assert_non_null(strstr(text, "about 100 MiB to 112 MiB of its own"));
    assert_string_equal(line, "\nmemory of each host: a about 218 MiB, b about 224 MiB\n");
    assert_null(strstr(said("a:4,b:2", job), "each host")); // nobody runs on b
}

static void of_many_hosts_the_one_with_the_most_is_said(void **state)
{
    (void)state;
    try_hosts();
    found[7].worker = 300 * MIB;
    const char *text = said("a,b,c,d,e,f,g,h,i,j", make_job("ring", 10, 0));
    assert_non_null(strstr(text, "\nmemory of a host: h has the most, about 300 MiB\n"));
}

static void memory_of_gpus_is_said_as_far_as_it_is_known(void **state)
{
    (void)state;
    try_hosts();
    found[0].device = 300 * MIB;
    struct job *job = make_job("ps-sync", 2, 1);
    const char *text = said("a:2", job);
    assert_non_null(strstr(text, "worker process (and 300 MiB of its GPU, besides what CUDA takes "
                                 "there, which is not known), and up to "));
    snprintf(job->server_device, sizeof(job->server_device), "cuda");
    assert_non_null(strstr(said("a:2", job), "; what servers take on GPUs is not known\n"));
}

static void nothing_is_said_of_what_was_not_tried(void **state)
{
    (void)state;
    memset(found, 0, sizeof(found));
    assert_string_equal(said("a:2", make_job("ps-sync", 2, 1)), "");
    memory_said_take("a program of its own says something", &found[0]);
    memory_said_take("{\"memory_bytes\": 7}", &found[0]);
    assert_string_equal(said("a:2", make_job("ps-sync", 2, 1)), "");
    memory_said_take("{\"memory_bytes\": 104857600, \"value_bytes\": 4096}", &found[0]);
    assert_string_equal(said("a:2", make_job("ring", 2, 0)),
                        "memory: about 100 MiB of its own for each worker process\n");
    try_hosts();
    struct job *job = make_job("ring", 2, 0);
    snprintf(job->model, sizeof(job->model), JOB_EXTERNAL_PREFIX "train.py");
    assert_string_equal(said("a:2", job), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_of_its_own_has_one_line),
        cmocka_unit_test(tiny_copies_are_not_said_to_be_nothing),
        cmocka_unit_test(a_mirror_takes_more_copies),
        cmocka_unit_test(servers_are_said_and_grow_with_their_share),
        cmocka_unit_test(a_folder_of_the_hosts_memory_is_in_memory),
        cmocka_unit_test(processes_that_carry_more_ranks_take_more),
        cmocka_unit_test(each_host_has_the_sum_of_its_processes),
        cmocka_unit_test(of_many_hosts_the_one_with_the_most_is_said),
        cmocka_unit_test(memory_of_gpus_is_said_as_far_as_it_is_known),
        cmocka_unit_test(nothing_is_said_of_what_was_not_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
