/* Tests of programs of the user's own: how they are found and named, and what they are told. */
#include "common/job/job_options.h"
#include "deploy/agent/agent_message.h"
#include "deploy/launch/own_program.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_command_line_is_cut_at_its_first_dashes(void **state)
{
    (void)state;
    static char words[][5] = {"run", "-n", "2", "--", "prog", "--", "x"};
    char *argv[8] = {NULL};
    for (size_t i = 0; i < 7; i++) {
        argv[i] = words[i];
    }
    int argc = 7;
    const char *const *program = own_program_cut(&argc, argv);
    assert_int_equal(argc, 3);
    assert_null(argv[argc]);
    assert_string_equal(program[0], "prog");
    assert_string_equal(program[1], "--");
    assert_string_equal(program[2], "x");
    assert_null(program[3]);
    assert_null(own_program_cut(&argc, argv));
    assert_int_equal(argc, 3);
}

static void check_name(const char *const *program, const char *model)
{
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = SAMPLE_JOB(NULL);
    assert_int_equal(own_program_take(program, true, &job, error, sizeof(error)), STATUS_OK);
    assert_string_equal(job.model, model);
    assert_true(job_is_external(&job));
}

static void a_job_is_named_after_its_program_or_script(void **state)
{
    (void)state;
    check_name((const char *const[]){"/bin/sh", NULL}, "external:sh");
    check_name((const char *const[]){"sh", "-u", "a/train.py", "b.py", NULL}, "external:train.py");
    check_name((const char *const[]){"sh", "my model.py", NULL}, "external:my_model.py");
    check_name((const char *const[]){"sh", ".py", NULL}, "external:sh");
    char long_name[400] = "/";
    memset(long_name + 1, 'x', sizeof(long_name) - 2);
    memcpy(long_name + sizeof(long_name) - 4, ".py", 4);
    struct job job = SAMPLE_JOB(NULL);
    char error[OPTION_ERROR_BYTES] = "";
    const char *const program[] = {"sh", long_name, NULL};
    assert_int_equal(own_program_take(program, true, &job, error, sizeof(error)), STATUS_OK);
    assert_int_equal(strlen(job.model), sizeof(job.model) - 1);
}

/* As whoever starts it does: execvp. */
static void without_a_path_a_program_is_looked_for_where_the_system_has_its_own(void **state)
{
    (void)state;
    const char *path = getenv("PATH"); // NOLINT(concurrency-mt-unsafe): one thread
    char kept[4096];
    snprintf(kept, sizeof(kept), "%s", path != NULL ? path : "/bin:/usr/bin");
    unsetenv("PATH"); // NOLINT(concurrency-mt-unsafe)
    check_name((const char *const[]){"sh", NULL}, "external:sh");
    setenv("PATH", kept, 1); // NOLINT(concurrency-mt-unsafe)
}

static void a_name_that_was_given_stays(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = SAMPLE_JOB("model=external:mine");
    const char *const program[] = {"sh", "train.py", NULL};
    assert_int_equal(own_program_take(program, true, &job, error, sizeof(error)), STATUS_OK);
    assert_string_equal(job.model, "external:mine");
}

static void refuse(const char *const *program, bool is_for_here, const char *why)
{
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = SAMPLE_JOB(NULL);
    const struct job before = job;
    assert_int_equal(own_program_take(program, is_for_here, &job, error, sizeof(error)),
                     STATUS_INVALID);
    if (strstr(error, why) == NULL) {
        fail_msg("no '%s' in: %s", why, error);
    }
    assert_memory_equal(&job, &before, sizeof(job));
}

static void what_cannot_be_started_is_refused(void **state)
{
    (void)state;
    const char *many[AGENT_LIST_MAX + 1] = {"sh"};
    for (size_t i = 1; i < AGENT_LIST_MAX; i++) {
        many[i] = "x";
    }
    refuse((const char *const[]){NULL}, true, "no program behind `--`");
    refuse((const char *const[]){"no-such-program", NULL}, true,
           "no program no-such-program in the folders of PATH");
    refuse((const char *const[]){"./no-such", NULL}, true, "no program ./no-such");
    refuse((const char *const[]){"/", NULL}, true, "no program /");
    refuse((const char *const[]){"A=1", "sh", NULL}, true, "set variables before ringside");
    refuse((const char *const[]){"", NULL}, false, "not the name of a program");
    refuse(many, true, "are handed on");
    many[AGENT_LIST_MAX - 2] = NULL;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = SAMPLE_JOB(NULL);
    assert_int_equal(own_program_take(many, true, &job, error, sizeof(error)), STATUS_OK);
    // Another host may have it.
    const char *const other[] = {"no-such-program", NULL};
    assert_int_equal(own_program_take(other, false, &job, error, sizeof(error)), STATUS_OK);
}

/* A job of four workers on two hosts, of which the second has two slots. */
static struct launcher launcher;
static struct host_options host_options;
static struct host_link links[2];
static struct launch launch;

static int set_up(void **state)
{
    (void)state;
    const struct option_set set = job_option_set(&launch.job);
    memset(&launcher, 0, sizeof(launcher));
    memset(&launch, 0, sizeof(launch));
    memset(links, 0, sizeof(links));
    options_reset(&set);
    host_options = (struct host_options){.port_range = "4000-4010"};
    launcher.host_options = &host_options;
    launcher.crew = (struct crew){.links = links, .count = 2};
    links[0].facts.cores = 8;
    links[1].facts.cores = 1;
    snprintf(launcher.addresses[1], sizeof(launcher.addresses[1]), "10.0.0.2");
    launch.launcher = &launcher;
    snprintf(launch.endpoint, sizeof(launch.endpoint), "tcp://10.0.0.1:4000");
    launch.placement = (struct placement){.worker_count = 4,
                                          .server_count = 1,
                                          .host_of_worker = {0, 0, 1, 1},
                                          .local_rank = {0, 1, 0, 1},
                                          .local_size = {2, 2}};
    unsetenv("OMP_NUM_THREADS");
    unsetenv("RINGSIDE_LIBRARY");
    return 0;
}

/* The value of a variable that a rank is told; NULL: none. */
static const char *told(uint32_t rank, const char *name)
{
    static struct own_program_environment environment;
    const char *value = NULL;
    own_program_describe(&launch, rank, &environment);
    for (size_t i = 0; environment.list[i] != NULL; i++) {
        size_t size = strcspn(environment.list[i], "=");
        if (strlen(name) == size && strncmp(environment.list[i], name, size) == 0) {
            assert_null(value); // there once
            value = environment.list[i] + size + 1;
        }
    }
    return value;
}

static void a_process_is_told_its_place_in_the_job(void **state)
{
    (void)state;
    assert_string_equal(told(3, "RINGSIDE_SERVER"), "tcp://10.0.0.1:4000");
    assert_string_equal(told(3, "RINGSIDE_RANK"), "3");
    assert_string_equal(told(3, "RINGSIDE_LOCAL_RANK"), "1");
    assert_string_equal(told(3, "RINGSIDE_LOCAL_SIZE"), "2");
    assert_string_equal(told(3, "RINGSIDE_BIND"), "10.0.0.2");
    assert_string_equal(told(3, "RINGSIDE_PORT_RANGE"), "4000-4010");
    assert_null(told(3, "RINGSIDE_KEYS"));
    assert_null(told(3, "RINGSIDE_INSECURE"));
    assert_null(told(3, "RINGSIDE_LIBRARY"));
}

static void where_nobody_listens_there_is_no_address(void **state)
{
    (void)state;
    launch.is_private = true;
    assert_null(told(0, "RINGSIDE_BIND"));
    assert_null(told(0, "RINGSIDE_PORT_RANGE"));
}

static void keys_come_by_standard_input_alone(void **state)
{
    (void)state;
    launch.handover.arguments[0] = "--keys";
    launch.handover.arguments[1] = "-";
    static char secret[] = "secret";
    launch.handover.text = secret;
    assert_string_equal(told(0, "RINGSIDE_KEYS"), "-");
    static struct own_program_environment environment;
    own_program_describe(&launch, 0, &environment);
    for (size_t i = 0; environment.list[i] != NULL; i++) {
        assert_null(strstr(environment.list[i], "secret"));
    }
    launch.handover.arguments[0] = "--insecure";
    launch.handover.arguments[1] = NULL;
    assert_string_equal(told(0, "RINGSIDE_INSECURE"), "true");
    assert_null(told(0, "RINGSIDE_KEYS"));
}

static void cores_are_shared_among_the_processes_of_a_host(void **state)
{
    (void)state;
    assert_string_equal(told(0, "OMP_NUM_THREADS"), "4");
    assert_string_equal(told(2, "OMP_NUM_THREADS"), "1"); // two on one core
    launch.job.threads = 3;
    assert_string_equal(told(0, "OMP_NUM_THREADS"), "3");
    setenv("OMP_NUM_THREADS", "7", 1);
    assert_null(told(0, "OMP_NUM_THREADS")); // it is inherited
    unsetenv("OMP_NUM_THREADS");
}

static void what_the_user_has_set_is_handed_on(void **state)
{
    (void)state;
    setenv("RINGSIDE_LIBRARY", "/opt/libringside.so", 1);
    assert_string_equal(told(0, "RINGSIDE_LIBRARY"), "/opt/libringside.so");
    unsetenv("RINGSIDE_LIBRARY");
    setenv("RINGSIDE_DATA", "/srv/images", 1);
    assert_string_equal(told(0, "RINGSIDE_DATA"), "/srv/images");
    unsetenv("RINGSIDE_DATA");
}

static void a_long_value_is_handed_on_whole(void **state)
{
    (void)state;
    char path[4000];
    memset(path, 'd', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    setenv("RINGSIDE_DATA", path, 1);
    assert_non_null(told(0, "RINGSIDE_DATA"));
    assert_string_equal(told(0, "RINGSIDE_DATA"), path);
    unsetenv("RINGSIDE_DATA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_line_is_cut_at_its_first_dashes),
        cmocka_unit_test(a_job_is_named_after_its_program_or_script),
        cmocka_unit_test(without_a_path_a_program_is_looked_for_where_the_system_has_its_own),
        cmocka_unit_test(a_name_that_was_given_stays),
        cmocka_unit_test(what_cannot_be_started_is_refused),
        cmocka_unit_test_setup(a_process_is_told_its_place_in_the_job, set_up),
        cmocka_unit_test_setup(where_nobody_listens_there_is_no_address, set_up),
        cmocka_unit_test_setup(keys_come_by_standard_input_alone, set_up),
        cmocka_unit_test_setup(cores_are_shared_among_the_processes_of_a_host, set_up),
        cmocka_unit_test_setup(what_the_user_has_set_is_handed_on, set_up),
        cmocka_unit_test_setup(a_long_value_is_handed_on_whole, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
