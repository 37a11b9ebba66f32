/* Tests of what processes need, and of limits that are too low. */
#include "common/service/resources.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct job job_of(const char *mode, uint32_t workers, uint32_t servers)
{
    struct job job = {
        .workers = workers, .servers = servers, .server_threads = 1, .connections = 1};
    job.mode = mode_of(mode);
    return job;
}

static void needs_grow_with_whom_a_process_talks_to(void **state)
{
    (void)state;
    const struct job small = job_of("ring", 2, 0), large = job_of("ring", 64, 0);
    const struct job few = job_of("ps-sync", 64, 1), many = job_of("ps-sync", 64, 16);
    assert_true(resources_of(RESOURCES_WORKER, &large).files >= 3 * 63);
    assert_true(resources_of(RESOURCES_WORKER, &small).files < 64);
    assert_true(resources_of(RESOURCES_COORDINATOR, &large).files >= 64);
    assert_true(resources_of(RESOURCES_SHARD, &few).files >= 64);
    assert_true(resources_of(RESOURCES_WORKER, &few).files <
                resources_of(RESOURCES_WORKER, &many).files);
    // In ps modes workers do not know each other.
    assert_true(resources_of(RESOURCES_WORKER, &few).files < 64);
    struct job threads = many;
    threads.server_threads = 4;
    assert_int_equal(resources_of(RESOURCES_SHARD, &threads).threads,
                     4 * resources_of(RESOURCES_SHARD, &many).threads);
}

/* Beside two of libzmq: those that write records and checkpoints, and read the one that the job
 * goes on from. */
static void a_coordinator_has_threads_for_the_disk(void **state)
{
    (void)state;
    const struct job ring = job_of("ring", 2, 0), ps = job_of("ps-sync", 2, 1);
    assert_true(resources_of(RESOURCES_COORDINATOR, &ring).threads >= 5);
    assert_true(resources_of(RESOURCES_COORDINATOR, &ps).threads >=
                5 + resources_of(RESOURCES_SHARD, &ps).threads);
}

static void the_smallest_job_needs_no_more_than_any(void **state)
{
    (void)state;
    const struct job job = job_of("ps-sync", 2, 1);
    for (int role = 0; role < RESOURCES_ROLES; role++) {
        assert_true(resources_of((enum resources_role)role, NULL).files <=
                    resources_of((enum resources_role)role, &job).files);
    }
}

static void enough_is_enough(void **state)
{
    (void)state;
    char error[RESOURCES_ERROR_BYTES];
    assert_int_equal(resources_check_files(20, "a test", error), STATUS_OK);
    assert_int_equal(resources_check_threads(10, "a test", error), STATUS_OK);
}

/* In a child with the limit, as an ordinary user. Its exit code: 0 if the sentence has `text`. */
static int try_in_child(int resource, rlim_t limit, const char *text)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char error[RESOURCES_ERROR_BYTES] = "";
        const struct rlimit low = {limit, limit};
        const struct job job = job_of("ring", 64, 0);
        bool is_set = setrlimit((__rlimit_resource_t)resource, &low) == 0 &&
                      (getuid() != 0 || setuid(65534) == 0);
        bool is_refused =
            is_set && resources_check(RESOURCES_WORKER, &job, error) == STATUS_INVALID;
        _exit(is_refused && strstr(error, text) != NULL ? 0 : 1);
    }
    int result;
    assert_int_equal(waitpid(pid, &result, 0), pid);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void too_few_files_are_named_with_what_the_job_needs(void **state)
{
    (void)state;
    char text[160];
    const struct job job = job_of("ring", 64, 0);
    snprintf(text, sizeof(text),
             "a worker of a job of 64 workers and 0 servers needs up to %u open files, and the "
             "limit is 24",
             resources_of(RESOURCES_WORKER, &job).files);
    assert_int_equal(try_in_child(RLIMIT_NOFILE, 24, text), 0);
}

static void too_few_threads_are_named_with_how_to_raise_the_limit(void **state)
{
    (void)state;
    assert_int_equal(try_in_child(RLIMIT_NPROC, 1, "this user's limit is 1 in all): raise"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_grow_with_whom_a_process_talks_to),
        cmocka_unit_test(a_coordinator_has_threads_for_the_disk),
        cmocka_unit_test(the_smallest_job_needs_no_more_than_any),
        cmocka_unit_test(enough_is_enough),
        cmocka_unit_test(too_few_files_are_named_with_what_the_job_needs),
        cmocka_unit_test(too_few_threads_are_named_with_how_to_raise_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
