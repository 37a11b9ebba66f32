/* Tests of the largest rate that was survived. */
#include "deploy/report/sweep_rates.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/sample_runs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

#define RUNS_MAX 8

struct rates_test {
    char *folder;
    struct sweep_run runs[RUNS_MAX];
    struct sweep_plan plan;
    struct run_folder folders[RUNS_MAX];
    struct run_folder *summaries[RUNS_MAX];
    struct sweep_results results;
};

static int set_up(void **state)
{
    static struct rates_test test;
    memset(&test, 0, sizeof(test));
    test.folder = temp_folder_create();
    test.plan.runs = test.runs;
    test.results = (struct sweep_results){&test.plan, test.summaries};
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct rates_test *test = *state;
    for (size_t i = 0; i < test->plan.count; i++) {
        run_folder_close(&test->folders[i]);
    }
    temp_folder_destroy(test->folder);
    return 0;
}

static void add(struct rates_test *test, const char *label, double lr, uint64_t seed,
                const struct sample_run *sample)
{
    size_t i = test->plan.count++;
    struct sweep_run *run = &test->runs[i];
    snprintf(run->label, sizeof(run->label), "%s", label);
    snprintf(run->name, sizeof(run->name), "run-%zu", i);
    run->job.lr = lr;
    run->job.seed = seed;
    sample_runs_open(test->folder, run->name, sample, &test->folders[i]);
    test->summaries[i] = &test->folders[i];
}

static void the_largest_rate_of_each_seed_counts(void **state)
{
    struct rates_test *test = *state;
    struct sweep_rate rates[SWEEP_RATES_MAX];
    add(test, "lr=0.1 order=b", 0.1, 1, &(struct sample_run){.accuracy = 0.8, .staleness = 4});
    add(test, "lr=0.2 order=b", 0.2, 1, &(struct sample_run){.accuracy = 0.1, .staleness = 4});
    add(test, "lr=0.1 order=a", 0.1, 1, &(struct sample_run){.accuracy = 0.8});
    add(test, "lr=0.1 order=a", 0.1, 2, &(struct sample_run){.accuracy = 0.9});
    add(test, "lr=0.2 order=a", 0.2, 1, &(struct sample_run){.accuracy = 0.5});
    add(test, "lr=0.2 order=a", 0.2, 2, &(struct sample_run){.accuracy = 0.4});
    add(test, "lr=0.4 order=a", 0.4, 2, &(struct sample_run){.outcome = "failed", .accuracy = 0.9});
    assert_int_equal(sweep_rates_of(&test->results, rates), 2);
    assert_string_equal(rates[0].label, "order=a");
    assert_int_equal(rates[0].rate.count, 2);
    assert_true(fabs(rates[0].rate.mean - 0.15) < 1e-12);
    assert_true(rates[0].relative == 1 && rates[0].theory == 1);
    assert_string_equal(rates[1].label, "order=b");
    assert_true(fabs(rates[1].relative - 0.1 / 0.15) < 1e-12);
    assert_true(fabs(rates[1].theory - sin(acos(-1.0) / 18)) < 1e-12);
}

static void without_several_rates_there_is_nothing(void **state)
{
    struct rates_test *test = *state;
    struct sweep_rate rates[SWEEP_RATES_MAX];
    add(test, "order=a", 0.1, 1, &(struct sample_run){.accuracy = 0.8});
    assert_int_equal(sweep_rates_of(&test->results, rates), 0);
}

#define RATES_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RATES_TEST(the_largest_rate_of_each_seed_counts),
        RATES_TEST(without_several_rates_there_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
