/* Tests of the runs that a comparison repeats. */
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "deploy/sweep/rounds.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static struct grid_cell cells[GRID_CELLS_MAX];

/* A resolved job with some options, as NAME, VALUE, ..., NULL. */
static struct job job_of(const char *const *options)
{
    struct job job;
    char error[OPTION_ERROR_BYTES] = "";
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    for (size_t i = 0; options[i] != NULL; i += 2) {
        assert_int_equal(
            options_set_text(&set, 1, options[i], options[i + 1], error, sizeof(error)), STATUS_OK);
    }
    assert_int_equal(job_resolve(&job, error, sizeof(error)), STATUS_OK);
    return job;
}

#define JOB_OF(...) job_of((const char *const[]){__VA_ARGS__, NULL})

static size_t make_cells(const struct job *job, const char *modes)
{
    char error[OPTION_ERROR_BYTES] = "";
    struct grid_lists lists = {.workers = "2"};
    size_t count = 0;
    snprintf(lists.modes, sizeof(lists.modes), "%s", modes);
    assert_int_equal(grid_make_cells(job, &lists, cells, &count, error), STATUS_OK);
    return count;
}

static void check_cell(size_t index, const char *name, const char *data, uint64_t seed)
{
    assert_string_equal(cells[index].name, name);
    assert_string_equal(cells[index].job.data, data);
    assert_int_equal(cells[index].job.seed, seed);
}

static void
each_run_is_followed_by_the_same_on_synthetic_data_and_rounds_by_the_next_seed(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = JOB_OF("data", "cifar10:/d", "augment", "cifar", "normalize", "dataset", "lr",
                            "0.5", "seed", "7");
    size_t count = make_cells(&job, "ring,ps-sync");
    assert_int_equal(rounds_check_input_gap(&cells[0].job, error), STATUS_OK);
    assert_int_equal(rounds_add_synthetic(cells, &count, error), STATUS_OK);
    assert_int_equal(rounds_repeat(cells, &count, 2, error), STATUS_OK);
    assert_int_equal(count, 8);
    for (size_t round = 0; round < 2; round++) {
        uint64_t seed = 7 + round;
        const char *names[2][4] = {{"01-ring-n2-seed7", "01-ring-n2-synthetic-seed7",
                                    "02-ps-sync-n2-s1-seed7", "02-ps-sync-n2-s1-synthetic-seed7"},
                                   {"01-ring-n2-seed8", "01-ring-n2-synthetic-seed8",
                                    "02-ps-sync-n2-s1-seed8", "02-ps-sync-n2-s1-synthetic-seed8"}};
        for (size_t i = 0; i < 4; i++) {
            bool is_synthetic = i % 2 == 1;
            size_t at = 4 * round + i;
            check_cell(at, names[round][i], is_synthetic ? "synthetic:cifar10:/d" : "cifar10:/d",
                       seed);
            assert_string_equal(cells[at].job.augment, is_synthetic ? "none" : job.augment);
            assert_string_equal(cells[at].job.normalize, is_synthetic ? "usual" : "dataset");
            assert_true(cells[at].job.lr == 0.5);
        }
    }
}

static void one_round_leaves_runs_as_they_are(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = JOB_OF("seed", "7");
    size_t count = make_cells(&job, "ring,local");
    assert_int_equal(rounds_repeat(cells, &count, 1, error), STATUS_OK);
    assert_int_equal(count, 2);
    check_cell(0, "01-ring-n2", "shapes", 7);
}

static void more_runs_than_there_is_room_for_are_refused(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = JOB_OF("seed", "7");
    size_t count = make_cells(&job, "ring,local,ps-sync");
    assert_int_equal(rounds_repeat(cells, &count, 86, error), STATUS_INVALID);
    assert_non_null(strstr(error, "3 times 86 runs, and 256 are the limit"));
    assert_int_equal(count, 3);
    assert_int_equal(rounds_repeat(cells, &count, 85, error), STATUS_OK);
    assert_int_equal(count, 255);
    assert_int_equal(rounds_add_synthetic(cells, &count, error), STATUS_INVALID);
    assert_int_equal(count, 255);
}

static void check_refused(const struct job *job, const char *text)
{
    char error[OPTION_ERROR_BYTES] = "";
    assert_int_equal(rounds_check_input_gap(job, error), STATUS_INVALID);
    if (strstr(error, text) == NULL || strstr(error, "--input-gap") == NULL) {
        fail_msg("\"%s\", or --input-gap, is not in: %s", text, error);
    }
}

static void what_has_no_input_gap_is_refused_by_name(void **state)
{
    (void)state;
    struct job job = JOB_OF("data", "synthetic");
    check_refused(&job, "name other data");
    job = JOB_OF("data", "synthetic:cifar10:/d");
    check_refused(&job, "name other data");
    job = JOB_OF("fault", "rank=1,step=3,kill", "workers", "2");
    check_refused(&job, "--fault");
    job = JOB_OF("target-accuracy", "0.5");
    check_refused(&job, "--target-accuracy");
    job = JOB_OF("model", "external:mine");
    check_refused(&job, "a program of your own");
}

static void data_with_no_room_for_a_word_before_it_are_refused(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = JOB_OF("seed", "7");
    size_t count = make_cells(&job, "ring");
    struct job *first = &cells[0].job;
    memset(first->data, 'x', sizeof(first->data) - 1);
    memcpy(first->data, "cifar10:", strlen("cifar10:"));
    first->data[sizeof(first->data) - 1] = '\0';
    assert_int_equal(rounds_add_synthetic(cells, &count, error), STATUS_INVALID);
    assert_non_null(strstr(error, "--data is too long for --input-gap"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            each_run_is_followed_by_the_same_on_synthetic_data_and_rounds_by_the_next_seed),
        cmocka_unit_test(one_round_leaves_runs_as_they_are),
        cmocka_unit_test(more_runs_than_there_is_room_for_are_refused),
        cmocka_unit_test(what_has_no_input_gap_is_refused_by_name),
        cmocka_unit_test(data_with_no_room_for_a_word_before_it_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
