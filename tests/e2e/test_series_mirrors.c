/* End to end: the runs of a sweep and of a comparison have mirrors of their own. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES (2 * PROGRAM_PATH_BYTES)
#define FAULT      "shard=0,step=60,kill"
#define FAULTS     "fault=none|shard=0,step=60,kill"
#define FAULT_STEP 60

// Slow enough for a copy to be in the mirror before the fault.
#define JOB                                                                               \
    "--model", "lenet5", "--threads", "1", "--device", "ref", "-n", "2", "--steps", "80", \
        "--limit-train", "120", "--limit-test", "50", "--batch", "4", "--eval", "end",    \
        "--straggler", "dist=exponential:mean=60ms,share=1"

static int run(struct command_test *test, const char *const *args)
{
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    return program_wait_for(&test->run, 180000);
}

static const char *check_said(const struct command_test *test, const char *text)
{
    const char *at = strstr(program_output(&test->run), text);
    if (at == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&test->run));
    }
    return at;
}

/* The cell of a row that stands below this heading. */
static const char *cell_below(const char *table, const char *row, const char *heading)
{
    const char *head = strstr(table, "run "), *at = strstr(table, row);
    const char *column = head != NULL ? strstr(head, heading) : NULL;
    if (column == NULL || at == NULL) {
        fail_msg("no '%s' with '%s' in: %s", row, heading, table);
    }
    return at + (column - head);
}

/* The run goes on from a copy, which only its mirror has when the shard is lost. */
static void check_went_on(const struct command_test *test, const char *name)
{
    char folder[PATH_BYTES];
    snprintf(folder, sizeof(folder), "%s/%s", test->out, name);
    json_t *details = programs_read_json(folder, "details.json");
    const json_t *recovery = json_array_get(json_object_get(details, "recoveries"), 0);
    json_int_t begin = json_integer_value(json_object_get(recovery, "begin_step"));
    json_int_t redone = json_integer_value(json_object_get(recovery, "steps_redone"));
    assert_in_range(begin, 1, FAULT_STEP);
    assert_int_equal(begin + redone, json_integer_value(json_object_get(recovery, "lost_step")));
    json_decref(details);
}

/* A run that was completed has removed its mirror. */
static void check_gone(const char *mirrors, const char *name)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof(path), "%s/%s", mirrors, name);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_sweep_says_what_a_killed_shard_with_a_mirror_has_cost(void **state)
{
    struct command_test *test = *state;
    const char *const args[] = {"sweep", JOB,        "--mode", "ps-sync",    "--grid",
                                FAULTS,  "--mirror", "memory", "--restarts", "1",
                                "--out", test->out,  NULL};
    assert_int_equal(run(test, args), 0);
    const char *costs = check_said(test, "faults and losses:\n");
    const char *row = "the server of shard 0 killed at step 60";
    assert_memory_equal(cell_below(costs, row, "losses"), "1 ", 2);
    assert_memory_not_equal(cell_below(costs, row, "s to go on"), "-", 1);
    assert_memory_not_equal(cell_below(costs, row, "steps redone"), "-", 1);
    assert_memory_equal(cell_below(costs, row, "bits"), "same", 4);
    check_went_on(test, "0002-shard-0-step-60-kill-seed1");
}

static void a_comparison_leaves_mirrors_out_where_there_are_no_copies(void **state)
{
    struct command_test *test = *state;
    char mirrors[PATH_BYTES];
    snprintf(mirrors, sizeof(mirrors), "%s/mirrors", test->folder);
    const char *const args[] = {"compare", JOB,        "--modes", "local,ps-sync", "--fault",
                                FAULT,     "--mirror", mirrors,   "--restarts",    "1",
                                "--out",   test->out,  NULL};
    assert_int_equal(run(test, args), 0);
    check_said(test, "no mirror for 1 of 3 runs: --mirror writes the copies");
    const char *costs = check_said(test, "faults and losses:\n");
    assert_memory_equal(cell_below(costs, "ps-sync, N = 2, K = 1, faults", "bits"), "same", 4);
    check_went_on(test, "02-ps-sync-n2-s1");
    check_gone(mirrors, "02-ps-sync-n2-s1");
    assert_int_not_equal(access(mirrors, F_OK), 0); // it was not there before
}

/* The number of the run that a mirror is of. */
static void read_number(const char *mirrors, const char *name, char ret_number[64])
{
    char folder[PATH_BYTES + 64];
    snprintf(folder, sizeof(folder), "%s/%s", mirrors, name);
    json_t *owner = programs_read_json(folder, "mirror.json");
    snprintf(ret_number, 64, "%s", json_string_value(json_object_get(owner, "run")));
    json_decref(owner);
}

/* Without restarts the fault ends each run, and its mirror is left. */
static void a_sweep_that_goes_on_makes_lost_runs_anew_with_their_mirrors(void **state)
{
    struct command_test *test = *state;
    static const char *const names[] = {"0001-1-seed1", "0002-2-seed1"};
    char mirrors[PATH_BYTES], numbers[2][64];
    snprintf(mirrors, sizeof(mirrors), "%s/mirrors", test->folder);
    const char *const lost[] = {"sweep",       JOB,       "--mode", "ps-sync",  "--grid",
                                "servers=1,2", "--fault", FAULT,    "--mirror", mirrors,
                                "--out",       test->out, NULL};
    assert_int_equal(run(test, lost), 1);
    for (size_t i = 0; i < 2; i++) {
        read_number(mirrors, names[i], numbers[i]);
    }
    assert_string_not_equal(numbers[0], numbers[1]);
    const char *const again[] = {"sweep",       JOB,       "--mode",     "ps-sync",  "--grid",
                                 "servers=1,2", "--fault", FAULT,        "--mirror", mirrors,
                                 "--out",       test->out, "--restarts", "1",        NULL};
    assert_int_equal(run(test, again), 0);
    check_said(test, "[2/2] servers=2 seed 1: test accuracy");
    check_went_on(test, names[0]);
    check_gone(mirrors, names[0]);
    check_gone(mirrors, names[1]);
}

#define SERIES_TEST(function) \
    cmocka_unit_test_setup_teardown(function, command_test_set_up, command_test_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERIES_TEST(a_sweep_says_what_a_killed_shard_with_a_mirror_has_cost),
        SERIES_TEST(a_comparison_leaves_mirrors_out_where_there_are_no_copies),
        SERIES_TEST(a_sweep_that_goes_on_makes_lost_runs_anew_with_their_mirrors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
