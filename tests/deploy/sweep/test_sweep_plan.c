/* Tests of the plan of a sweep: what is crossed, what is left out, and how runs are called. */
#include "common/job/job_options.h"
#include "deploy/sweep/experiment.h"
#include "deploy/sweep/sweep_plan.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 16

/* Takes the arguments (after "sweep"), which must be right; *ret_left gets what is left of them. */
static void take(const char *const *arguments, struct sweep_arguments *ret_arguments, int *ret_left)
{
    static char storage[ARGUMENTS_MAX][128];
    static char *argv[ARGUMENTS_MAX], *rest[ARGUMENTS_MAX + 1];
    char error[OPTION_ERROR_BYTES] = "";
    int argc = 1;
    static char name[] = "sweep";
    argv[0] = name;
    for (; arguments[argc - 1] != NULL; argc++) {
        snprintf(storage[argc], sizeof(storage[argc]), "%s", arguments[argc - 1]);
        argv[argc] = storage[argc];
    }
    if (sweep_take_arguments(argc, argv, ret_arguments, ret_left, rest, error) != STATUS_OK) {
        fail_msg("%s", error);
    }
}

static void make(const char *const *arguments, struct sweep_plan *ret_plan)
{
    static struct job job;
    struct sweep_arguments taken;
    char error[OPTION_ERROR_BYTES] = "";
    int left;
    memset(&job, 0, sizeof(job));
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    take(arguments, &taken, &left);
    if (sweep_make_plan(&job, &taken, ret_plan, error) != STATUS_OK) {
        fail_msg("%s", error);
    }
}

#define TAKE(...) ((const char *const[]){__VA_ARGS__, NULL})

static void grids_and_repeats_are_taken_and_the_rest_is_left(void **state)
{
    (void)state;
    struct sweep_arguments taken;
    int left;
    take(TAKE("--grid", "mode=ring,ps-sync", "--model", "cnn", "--repeat=3", "--grid=workers=1,2"),
         &taken, &left);
    assert_int_equal(left, 3);
    assert_int_equal(taken.repeat, 3);
    assert_int_equal(taken.axis_count, 2);
    assert_string_equal(taken.axes[0].name, "mode");
    assert_string_equal(taken.axes[1].values, "1,2");
}

static void axes_are_crossed_and_every_combination_has_its_seeds(void **state)
{
    (void)state;
    struct sweep_plan plan;
    make(TAKE("--grid", "mode=ring,ps-async", "--grid", "workers=2,4", "--repeat", "3"), &plan);
    assert_int_equal(plan.count, 12);
    assert_int_equal(plan.group_count, 4);
    assert_string_equal(plan.runs[0].label, "mode=ring workers=2");
    assert_string_equal(plan.runs[0].name, "0001-ring-2-seed1");
    assert_string_equal(plan.runs[11].label, "mode=ps-async workers=4");
    assert_string_equal(plan.runs[11].name, "0012-ps-async-4-seed3");
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(plan.runs[i].group, i / 3);
        assert_int_equal(plan.runs[i].job.seed, 1 + i % 3);
        assert_int_equal(plan.runs[i].job.workers, i / 3 % 2 == 0 ? 2 : 4);
    }
    sweep_plan_free(&plan);
}

static void what_contradicts_itself_is_left_out_and_equal_runs_are_there_once(void **state)
{
    (void)state;
    struct sweep_plan plan;
    make(TAKE("--grid", "mode=local,ring,ps-async", "--grid", "order=free,seeded:constant:2",
              "--grid", "servers=1,2"),
         &plan);
    // local and ring have no servers and no order: one run each. ps-async has all four.
    assert_int_equal(plan.count, 6);
    assert_int_equal(plan.group_count, 6);
    sweep_plan_free(&plan);
}

static void values_that_hold_commas_are_separated_by_bars(void **state)
{
    (void)state;
    struct sweep_plan plan;
    make(TAKE("--grid", "straggler=none|rank=1,factor=2|dist=exponential:mean=5ms,share=0.1"),
         &plan);
    assert_int_equal(plan.count, 3);
    assert_string_equal(plan.runs[1].job.straggler, "rank=1,factor=2");
    assert_string_equal(plan.runs[2].name, "0003-dist-exponential-mean-5ms-share-0.1-seed1");
    sweep_plan_free(&plan);
    make(TAKE("--grid", "fault=none|rank=1,step=3,kill|rank=1,step=3,kill;shard=0,step=2,stop=1s"),
         &plan);
    assert_int_equal(plan.count, 3);
    assert_string_equal(plan.runs[1].job.faults, "rank=1,step=3,kill");
    assert_string_equal(plan.runs[2].job.faults, "rank=1,step=3,kill;shard=0,step=2,stop=1s");
    sweep_plan_free(&plan);
}

static void options_may_change_together(void **state)
{
    (void)state;
    struct sweep_plan plan;
    make(TAKE("--grid", "optimizer+lr=sgd+0.5,adam+0.25", "--grid=mode=ring"), &plan);
    assert_int_equal(plan.count, 2);
    assert_string_equal(plan.runs[0].label, "optimizer=sgd lr=0.5 mode=ring");
    assert_int_equal(plan.runs[1].job.optimizer, OPTIMIZER_ADAM);
    assert_true(plan.runs[1].job.lr == 0.25);
    sweep_plan_free(&plan);
    make(TAKE("--grid", "lr=1e-2,1e+2", "--grid=mode=ring"), &plan);
    assert_true(plan.runs[1].job.lr == 100);
    sweep_plan_free(&plan);
}

static void an_axis_of_the_command_line_wins_over_that_of_an_experiment(void **state)
{
    (void)state;
    struct sweep_plan plan;
    make(TAKE("--" EXPERIMENT_GRID "=mode=ring,ps-sync", "--grid=mode=ps-async"), &plan);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.runs[0].job.mode.kind, MODE_PS_ASYNC);
    sweep_plan_free(&plan);
}

static void a_value_that_can_be_right_in_no_job_is_refused(void **state)
{
    (void)state;
    static struct job job;
    struct sweep_arguments taken;
    struct sweep_plan plan;
    char error[OPTION_ERROR_BYTES] = "";
    int left;
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    take(TAKE("--grid=mode=ring,ps-sync", "--grid", "lr=0.1,x"), &taken, &left);
    assert_int_equal(sweep_make_plan(&job, &taken, &plan, error), STATUS_INVALID);
    assert_non_null(strstr(error, "lr is 'x'"));
}

static void without_a_grid_there_is_one_setting(void **state)
{
    (void)state;
    struct sweep_plan plan;
    make(TAKE("--repeat", "2"), &plan);
    assert_int_equal(plan.count, 2);
    assert_string_equal(plan.runs[0].label, "(one setting)");
    assert_string_equal(plan.runs[1].name, "0002-seed2");
    sweep_plan_free(&plan);
}

static void what_is_no_grid_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"--grid", "mode", "--grid workers=1,2,4"},
        {"--grid", "mode=", "--grid workers=1,2,4"},
        {"--grid", "=1", "--grid workers=1,2,4"},
        {"--repeat", "0", "from 1 to 100"},
        {"--repeat", "x", "from 1 to 100"},
        {"--repeat", "101", "from 1 to 100"},
        {"--grid", "seed=1,2", "--repeat"},
        {"--grid=lr=0.1", "--grid=lr=0.2", "given twice"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char storage[3][64], *argv[] = {storage[0], storage[1], storage[2]}, *rest[4];
        char error[OPTION_ERROR_BYTES] = "";
        struct sweep_arguments taken;
        int left;
        snprintf(storage[0], sizeof(storage[0]), "sweep");
        snprintf(storage[1], sizeof(storage[1]), "%s", cases[i][0]);
        snprintf(storage[2], sizeof(storage[2]), "%s", cases[i][1]);
        assert_int_equal(sweep_take_arguments(3, argv, &taken, &left, rest, error), STATUS_INVALID);
        assert_non_null(strstr(error, cases[i][2]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_and_repeats_are_taken_and_the_rest_is_left),
        cmocka_unit_test(axes_are_crossed_and_every_combination_has_its_seeds),
        cmocka_unit_test(what_contradicts_itself_is_left_out_and_equal_runs_are_there_once),
        cmocka_unit_test(values_that_hold_commas_are_separated_by_bars),
        cmocka_unit_test(options_may_change_together),
        cmocka_unit_test(an_axis_of_the_command_line_wins_over_that_of_an_experiment),
        cmocka_unit_test(a_value_that_can_be_right_in_no_job_is_refused),
        cmocka_unit_test(without_a_grid_there_is_one_setting),
        cmocka_unit_test(what_is_no_grid_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
