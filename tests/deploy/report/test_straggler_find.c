/* Tests of finding who was slow. */
#include "deploy/report/straggler_find.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Two intervals for each of the times: a quarter of the steps, then the rest. */
static bool find_of(struct run_folder run, const double *compute_ms, size_t ranks, int steps,
                    struct straggler_found *found)
{
    char *folder = temp_folder_create(), text[4096] = "";
    for (size_t i = 0; i < 2 * ranks; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used,
                 "{\"rank\": %zu, \"steps\": %d, \"ms\": {\"compute\": %g}}\n", i % ranks,
                 i < ranks ? steps / 4 : steps - steps / 4,
                 compute_ms[i % ranks] + (i < ranks ? 0.75 : -0.25));
    }
    temp_folder_write(folder, "metrics.jsonl", text, strlen(text));
    snprintf(run.path, sizeof(run.path), "%s", folder);
    bool is_found = straggler_find(&run, found);
    temp_folder_destroy(folder);
    return is_found;
}

static bool find_in(const double *compute_ms, size_t ranks, int steps,
                    struct straggler_found *found)
{
    return find_of((struct run_folder){.summary = NULL}, compute_ms, ranks, steps, found);
}

static bool find(const double *compute_ms, size_t ranks, struct straggler_found *found)
{
    return find_in(compute_ms, ranks, 400, found);
}

static void the_slowest_is_named_with_how_slow_it_is(void **state)
{
    (void)state;
    struct straggler_found found;
    assert_true(find((const double[]){10, 12, 36, 11}, 4, &found));
    assert_int_equal(found.rank, 2);
    assert_true(fabs(found.ratio - 36.0 / 11) < 1e-9);
    assert_true(find((const double[]){20, 10}, 2, &found));
    assert_int_equal(found.rank, 0);
    assert_true(fabs(found.ratio - 2) < 1e-9);
}

/* Of four ranks, worker 0 carries two. */
static void a_process_that_carries_more_ranks_is_not_slow(void **state)
{
    (void)state;
    struct straggler_found found;
    const double times[] = {20, 10, 10, 10};
    struct run_folder run = {
        .details = json_pack("{s:[{s:i, s:i}]}", "recoveries", "processes", 3, "ranks", 4)};
    assert_false(find_of(run, times, 4, 400, &found));
    json_decref(run.details);
    run.details = json_pack("{s:[{s:i, s:i}]}", "recoveries", "processes", 3, "ranks", 3);
    assert_true(find_of(run, times, 4, 400, &found)); // a rank is left out
    json_decref(run.details);
    run = (struct run_folder){
        .job = json_pack("{s:{s:i, s:i}}", "options", "workers", 4, "processes", 3)};
    assert_false(find_of(run, times, 4, 400, &found));
    json_decref(run.job);
}

static void where_all_are_about_as_fast_there_is_none(void **state)
{
    (void)state;
    struct straggler_found found;
    assert_false(find((const double[]){10, 12, 13, 11}, 4, &found));
    assert_false(find((const double[]){10}, 1, &found));
    assert_false(find(NULL, 0, &found));
}

static void a_few_steps_tell_nothing(void **state)
{
    (void)state;
    struct straggler_found found;
    const double compute_ms[] = {20, 10};
    assert_true(find_in(compute_ms, 2, STRAGGLER_STEPS_MIN, &found));
    assert_false(find_in(compute_ms, 2, STRAGGLER_STEPS_MIN - 4, &found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_is_named_with_how_slow_it_is),
        cmocka_unit_test(a_process_that_carries_more_ranks_is_not_slow),
        cmocka_unit_test(where_all_are_about_as_fast_there_is_none),
        cmocka_unit_test(a_few_steps_tell_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
