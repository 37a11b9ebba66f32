/* Tests of the lists that `ringside compare` crosses. */
#include "common/job/job_options.h"
#include "common/job/job_text.h"
#include "deploy/sweep/grid.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 16

static struct grid_cell cells[GRID_CELLS_MAX];

static struct job job_of(uint32_t global_batch)
{
    struct job job;
    struct option_set options = job_option_set(&job);
    options_reset(&options);
    job.global_batch = global_batch;
    return job;
}

/* Takes the lists; the rest of the arguments, joined by blanks, must be as expected. */
static struct grid_lists take(const char *const *arguments, const char *expected_rest)
{
    char texts[ARGUMENTS_MAX][GRID_TEXT_BYTES], *argv[ARGUMENTS_MAX + 1] = {NULL};
    char *rest[ARGUMENTS_MAX + 1], joined[ARGUMENTS_MAX * GRID_TEXT_BYTES] = "";
    char error[OPTION_ERROR_BYTES] = "";
    struct grid_lists lists;
    int argc = 0, rest_count = -1;
    for (; arguments[argc] != NULL; argc++) {
        assert_in_range(argc, 0, ARGUMENTS_MAX - 1);
        snprintf(texts[argc], sizeof(texts[argc]), "%s", arguments[argc]);
        argv[argc] = texts[argc];
    }
    if (grid_take_lists(argc, argv, &lists, &rest_count, rest, error) != STATUS_OK) {
        fail_msg("refused: %s", error);
    }
    size_t used = 0;
    for (int i = 0; i < rest_count; i++) {
        used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s", i > 0 ? " " : "",
                                 rest[i]);
    }
    assert_null(rest[rest_count]);
    assert_string_equal(joined, expected_rest);
    return lists;
}

/* The names of the cells, joined by blanks, must be as expected. */
static void check_names(const struct job *job, const struct grid_lists *lists, const char *expected)
{
    char error[OPTION_ERROR_BYTES] = "", joined[4096] = "";
    size_t count = 0, used = 0;
    if (grid_make_cells(job, lists, cells, &count, error) != STATUS_OK) {
        fail_msg("refused: %s", error);
    }
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s", i > 0 ? " " : "",
                                 cells[i].name);
    }
    assert_string_equal(joined, expected);
}

static void check_refused(const struct job *job, const struct grid_lists *lists, const char *text)
{
    char error[OPTION_ERROR_BYTES] = "";
    size_t count = 12345;
    assert_int_equal(grid_make_cells(job, lists, cells, &count, error), STATUS_INVALID);
    if (strstr(error, text) == NULL) {
        fail_msg("'%s' is not in '%s'", text, error);
    }
    assert_int_equal(count, 12345);
}

static void lists_are_taken_in_every_spelling(void **state)
{
    (void)state;
    static const char *const spellings[][4] = {
        {"compare", "--workers", "1,2", NULL},
        {"compare", "--workers=1,2", NULL},
        {"compare", "-n", "1,2", NULL},
        {"compare", "-n1,2", NULL},
    };
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        struct grid_lists lists = take(spellings[i], "compare");
        assert_string_equal(lists.workers, "1,2");
        assert_string_equal(lists.servers, "");
        assert_string_equal(lists.transports, "");
    }
    static const char *const others[] = {"compare",      "-s", "1,3", "--transport=tcp,ipc",
                                         "--modes=ring", NULL};
    struct grid_lists lists = take(others, "compare");
    assert_string_equal(lists.servers, "1,3");
    assert_string_equal(lists.transports, "tcp,ipc");
    assert_string_equal(lists.modes, "ring");
}

static void single_values_and_other_options_stay_on_the_command_line(void **state)
{
    (void)state;
    static const char *const arguments[] = {"compare", "-n",      "4", "--modes",   "ring",
                                            "-s",      "--steps", "3", "--servers", NULL};
    struct grid_lists lists = take(arguments, "compare -n 4 -s --steps 3 --servers");
    assert_string_equal(lists.modes, "ring");
    assert_string_equal(lists.workers, "");
    static const char *const similar[] = {"compare", "--workers-of=1,2", "--model", "a,b", NULL};
    take(similar, "compare --workers-of=1,2 --model a,b");
}

static void without_a_list_of_modes_there_are_three(void **state)
{
    (void)state;
    static const char *const arguments[] = {"compare", NULL};
    struct grid_lists lists = take(arguments, "compare");
    assert_string_equal(lists.modes, "local,ps-sync,ring");
}

static void the_name_of_the_command_is_no_list(void **state)
{
    (void)state;
    static const char *const arguments[] = {"--modes=ring", "-n1,2", NULL};
    assert_string_equal(take(arguments, "--modes=ring").workers, "1,2");
}

static void the_last_of_two_lists_counts(void **state)
{
    (void)state;
    static const char *const arguments[] = {"compare", "-n", "1,2", "--workers=3,4", NULL};
    assert_string_equal(take(arguments, "compare").workers, "3,4");
}

static void a_list_that_is_too_long_is_refused_by_name(void **state)
{
    (void)state;
    char command[] = "compare", value[GRID_TEXT_BYTES + 16] = "--workers=1,";
    char error[OPTION_ERROR_BYTES] = "";
    char *argv[] = {command, value, NULL}, *rest[3];
    struct grid_lists lists;
    int count;
    size_t start = strlen("--workers=");
    // One that fits to the last byte, then one that is a byte longer.
    memset(value + start + 2, '1', GRID_TEXT_BYTES - 3);
    assert_int_equal(grid_take_lists(2, argv, &lists, &count, rest, error), STATUS_OK);
    assert_int_equal(strlen(lists.workers), GRID_TEXT_BYTES - 1);
    value[start + GRID_TEXT_BYTES - 1] = '1';
    assert_int_equal(grid_take_lists(2, argv, &lists, &count, rest, error), STATUS_INVALID);
    assert_string_equal(error, "the list of --workers is too long");
}

static void an_empty_list_is_refused(void **state)
{
    (void)state;
    char command[] = "compare", option[] = "--modes", value[] = "";
    char *argv[] = {command, option, value, NULL}, *rest[4], error[OPTION_ERROR_BYTES];
    struct grid_lists lists;
    int count;
    assert_int_equal(grid_take_lists(3, argv, &lists, &count, rest, error), STATUS_INVALID);
    assert_string_equal(error, "modes is '': give it a value, or leave it out");
}

static void lists_are_crossed_with_workers_the_slowest_to_change(void **state)
{
    (void)state;
    struct job job = job_of(32);
    const struct grid_lists lists = {
        .modes = "ps-sync,ring", .workers = "2,4", .servers = "1,2", .transports = "tcp,ipc"};
    check_names(&job, &lists,
                "01-ps-sync-n2-s1-tcp 02-ps-sync-n2-s1-ipc 03-ps-sync-n2-s2-tcp "
                "04-ps-sync-n2-s2-ipc 05-ring-n2-tcp 06-ring-n2-ipc "
                "07-ps-sync-n4-s1-tcp 08-ps-sync-n4-s1-ipc 09-ps-sync-n4-s2-tcp "
                "10-ps-sync-n4-s2-ipc 11-ring-n4-tcp 12-ring-n4-ipc");
    assert_int_equal(cells[0].job.batch, 16);
    assert_int_equal(cells[11].job.batch, 8);
    assert_int_equal(cells[11].job.global_batch, 32);
}

static void empty_lists_leave_what_the_job_says(void **state)
{
    (void)state;
    struct job job = job_of(30);
    job.workers = 3;
    job.servers = 2;
    check_names(&job, &(struct grid_lists){.modes = "ring,ps-sync"}, "01-ring-n3 02-ps-sync-n3-s2");
    check_names(&job, &(struct grid_lists){.modes = ""}, "01-ps-sync-n3-s2");
}

static void what_is_named_twice_runs_once(void **state)
{
    (void)state;
    struct job job = job_of(16);
    const struct grid_lists lists = {.modes = "ring,ring", .workers = "2,2,2"};
    check_names(&job, &lists, "01-ring-n2");
}

static void servers_multiply_only_the_modes_that_have_them(void **state)
{
    (void)state;
    struct job job = job_of(16);
    const struct grid_lists lists = {.modes = "ring,ps-sync", .servers = "1,2,3"};
    check_names(&job, &lists, "01-ring-n2 02-ps-sync-n2-s1 03-ps-sync-n2-s2 04-ps-sync-n2-s3");
}

static void local_runs_once_whatever_is_crossed(void **state)
{
    (void)state;
    struct job job = job_of(16);
    const struct grid_lists lists = {
        .modes = "local,ring", .workers = "2,4", .servers = "1,2", .transports = "tcp,ipc"};
    check_names(&job, &lists,
                "01-local-n1 02-ring-n2-tcp 03-ring-n2-ipc 04-ring-n4-tcp 05-ring-n4-ipc");
    assert_int_equal(cells[0].job.batch, 16);
}

static void local_runs_again_for_another_global_batch(void **state)
{
    (void)state;
    struct job job = job_of(0);
    job.batch = 8;
    const struct grid_lists lists = {.modes = "local,ring", .workers = "2,4"};
    check_names(&job, &lists, "01-local-n1 02-ring-n2 03-local-n1 04-ring-n4");
    assert_int_equal(cells[0].job.global_batch, 16);
    assert_int_equal(cells[2].job.global_batch, 32);
}

static void values_that_no_option_takes_are_refused(void **state)
{
    (void)state;
    struct job job = job_of(16);
    const struct {
        struct grid_lists lists;
        const char *text;
    } cases[] = {
        {{.modes = "ring,rnig"}, "did you mean ring?"},
        {{.modes = "local", .workers = "1,0"}, "workers"},
        {{.modes = "local", .workers = "2,x"}, "workers"},
        {{.modes = "local", .workers = "2,,4"}, "workers"},
        {{.modes = "local", .workers = "2,"}, "workers"},
        {{.modes = "local", .workers = ",2"}, "workers"},
        {{.modes = "local", .workers = "1, 2"}, "workers"},
        {{.modes = "local", .workers = "2,99999999"}, "workers"},
        {{.modes = "ps-sync", .servers = "1,-1"}, "servers"},
        {{.modes = "ps-sync", .servers = "1,0"}, "servers"},
        {{.modes = "ring", .transports = "tcp,pic"}, "transport"},
        {{.modes = ","}, "mode"},
        {{.modes = "ring", .workers = "2,17"}, "17"}, // more workers than images in a batch
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_refused(&job, &cases[i].lists, cases[i].text);
    }
}

static void too_many_runs_are_refused(void **state)
{
    (void)state;
    struct job job = job_of(64);
    struct grid_lists lists = {.modes = "ps-sync", .servers = "1,2,3,4,5,6,7,8"};
    size_t used = 0;
    for (int i = 1; i <= 32; i++) {
        used += (size_t)snprintf(lists.workers + used, sizeof(lists.workers) - used, "%s%d",
                                 i > 1 ? "," : "", i);
    }
    char error[OPTION_ERROR_BYTES];
    size_t count;
    assert_int_equal(grid_make_cells(&job, &lists, cells, &count, error), STATUS_OK);
    assert_int_equal(count, GRID_CELLS_MAX);
    assert_string_equal(cells[255].name, "256-ps-sync-n32-s8");
    snprintf(lists.workers + used, sizeof(lists.workers) - used, ",33");
    check_refused(&job, &lists, "more than 256 runs");
}

static void axes_of_several_options_need_as_many_values(void **state)
{
    (void)state;
    static const char *const values[][2] = {{"sgd,adam+0.5", "has fewer values"},
                                            {"sgd+0.1+7", "has more values than options"}};
    for (size_t i = 0; i < 2; i++) {
        const struct grid_axis axis = {"optimizer+lr", values[i][0]};
        struct job job = job_of(16);
        char error[OPTION_ERROR_BYTES] = "";
        assert_int_equal(grid_choose(&job, &axis, 1, 0, error), STATUS_INVALID);
        if (strstr(error, values[i][1]) == NULL) {
            fail_msg("'%s' is refused with: %s", values[i][0], error);
        }
    }
}

/* Another value than the one that the row has, which need not make sense. */
static void change(const struct option *row, struct job *job)
{
    char *field = (char *)job + row->offset;
    if (row->type == OPTION_TEXT || row->type == OPTION_NAME || row->type == OPTION_LIST) {
        snprintf(field, row->size, "another");
    } else if (row->type == OPTION_REAL) {
        *(double *)(void *)field += 0.125;
    } else {
        *(unsigned char *)field ^= 1; // little-endian; every list of choices has two or more
    }
}

static bool needs_another_trial(const struct job *a, const struct job *b)
{
    static char text_a[JOB_TEXT_BYTES], text_b[JOB_TEXT_BYTES];
    assert_int_equal(grid_describe_probe(a, text_a), STATUS_OK);
    assert_int_equal(grid_describe_probe(b, text_b), STATUS_OK);
    return strcmp(text_a, text_b) != 0;
}

static void every_option_that_is_not_known_to_be_harmless_needs_a_trial(void **state)
{
    (void)state;
    static const char harmless[] =
        " mode servers server-threads seed lr momentum beta1 beta2 decay epsilon weight-decay "
        "lr-scale lr-workers warmup-epochs lr-schedule lr-gamma lr-step-epochs target-accuracy "
        "order delay-model backup remedy remedy-lambda gradients-per-update straggler "
        "transport connections security report-every on-loss min-workers lost-after stall-warn "
        "stall-fail outlast ";
    for (size_t i = 0; i < job_option_count; i++) {
        struct job job = job_of(64), changed;
        char name[80];
        job.optimizer = OPTIMIZER_SGD; // auto is the last choice of a number that is even
        changed = job;
        change(&job_options[i], &changed);
        snprintf(name, sizeof(name), " %s ", job_options[i].name);
        if (needs_another_trial(&job, &changed) == (strstr(harmless, name) != NULL)) {
            fail_msg("--%s", job_options[i].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_that_is_not_known_to_be_harmless_needs_a_trial),
        cmocka_unit_test(lists_are_taken_in_every_spelling),
        cmocka_unit_test(single_values_and_other_options_stay_on_the_command_line),
        cmocka_unit_test(without_a_list_of_modes_there_are_three),
        cmocka_unit_test(the_name_of_the_command_is_no_list),
        cmocka_unit_test(the_last_of_two_lists_counts),
        cmocka_unit_test(a_list_that_is_too_long_is_refused_by_name),
        cmocka_unit_test(an_empty_list_is_refused),
        cmocka_unit_test(lists_are_crossed_with_workers_the_slowest_to_change),
        cmocka_unit_test(empty_lists_leave_what_the_job_says),
        cmocka_unit_test(what_is_named_twice_runs_once),
        cmocka_unit_test(servers_multiply_only_the_modes_that_have_them),
        cmocka_unit_test(local_runs_once_whatever_is_crossed),
        cmocka_unit_test(local_runs_again_for_another_global_batch),
        cmocka_unit_test(values_that_no_option_takes_are_refused),
        cmocka_unit_test(too_many_runs_are_refused),
        cmocka_unit_test(axes_of_several_options_need_as_many_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
