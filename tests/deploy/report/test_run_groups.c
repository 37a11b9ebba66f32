/* Tests of the groups of a report, and of what they are called. */
#include "deploy/report/run_groups.h"
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

/* Equal to within a thousandth. */
static void check_near(double value, double expected)
{
    if (fabs(value - expected) > 0.001) {
        fail_msg("%g is not %g", value, expected);
    }
}

#define RUNS_MAX 8

struct groups_test {
    char *folder;
    struct run_folder runs[RUNS_MAX];
    size_t count;
    struct run_groups groups;
};

static int set_up(void **state)
{
    static struct groups_test test;
    test = (struct groups_test){.folder = temp_folder_create()};
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct groups_test *test = *state;
    run_groups_finish(&test->groups);
    for (size_t i = 0; i < test->count; i++) {
        run_folder_close(&test->runs[i]);
    }
    temp_folder_destroy(test->folder);
    return 0;
}

/* A run with options in its job.json; NULL: without a job.json. */
static void add(struct groups_test *test, const struct sample_run *sample, int seed,
                json_t *options)
{
    char name[16];
    struct run_folder *run = &test->runs[test->count];
    snprintf(name, sizeof(name), "run-%zu", test->count++);
    sample_runs_open(test->folder, name, sample, run);
    json_object_set_new(run->summary, "seed", json_integer(seed));
    if (options != NULL) {
        json_object_set_new(options, "seed", json_integer(seed));
        run->job = json_pack("{s:o}", "options", options);
    }
}

static void group(struct groups_test *test)
{
    assert_int_equal(run_groups_of(test->runs, test->count, &test->groups), STATUS_OK);
}

static void check_labels(const struct groups_test *test, const char *const *labels, size_t count)
{
    assert_int_equal(test->groups.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(test->groups.list[i].label, labels[i]);
    }
}

static void seeds_are_one_group_with_an_interval(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.images_per_second = 90}, 1, NULL);
    add(test, &(struct sample_run){.images_per_second = 110}, 2, NULL);
    add(test, &(struct sample_run){.outcome = "failed"}, 3, NULL);
    group(test);
    check_labels(test, (const char *const[]){"ring"}, 1);
    const struct run_group *first = &test->groups.list[0];
    assert_int_equal(first->completed, 2);
    assert_int_equal(first->failed, 1);
    check_near(first->rate.mean, 100);
    check_near(first->rate.half_width, 12.706 * 10); // Student's t of two runs
}

/* Two runs that were completed, of which the second lost a worker, and one that failed. */
static void accuracies_of_fewer_images_are_counted(void **state)
{
    struct groups_test *test = *state;
    for (int seed = 1; seed <= 3; seed++) {
        add(test, &(struct sample_run){.outcome = seed == 3 ? "failed" : NULL}, seed,
            json_object());
        const struct run_folder *run = &test->runs[seed - 1];
        json_t *last = json_array_get(json_object_get(run->summary, "epochs"), 1);
        json_object_set_new(run->job, "test_samples", json_integer(2000));
        json_object_set_new(last, "test_images", json_integer(seed == 1 ? 2000 : 500));
    }
    group(test);
    assert_int_equal(test->groups.count, 1);
    assert_int_equal(test->groups.list[0].completed, 2);
    assert_int_equal(test->groups.list[0].part_tested, 1);
}

static void the_same_job_twice_is_told_apart_by_its_folders(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.mode = "ring"}, 1, NULL);
    add(test, &(struct sample_run){.mode = "ring"}, 1, NULL);
    group(test);
    check_labels(test, (const char *const[]){"ring, run-0", "ring, run-1"}, 2);
}

static void modes_have_one_order_and_colours_of_their_own(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-async", .servers = 1}, 1, NULL);
    add(test, &(struct sample_run){.mode = "ring"}, 1, NULL);
    add(test, &(struct sample_run){.mode = "local", .workers = 1}, 1, NULL);
    group(test);
    check_labels(test, (const char *const[]){"local", "ring", "ps-async"}, 3);
    size_t ring = test->groups.list[1].stroke.colour;
    run_groups_finish(&test->groups);
    assert_int_equal(run_groups_of(test->runs + 1, 1, &test->groups), STATUS_OK);
    assert_int_equal(test->groups.list[0].stroke.colour, ring);
}

static void settings_of_a_mode_have_its_colour_and_other_dashes(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.mode = "ring", .workers = 2}, 1, NULL);
    add(test, &(struct sample_run){.mode = "ring", .workers = 4}, 1, NULL);
    group(test);
    const struct run_group *list = test->groups.list;
    assert_false(test->groups.has_mode_colours); // a colour for each says more
    assert_int_not_equal(list[0].stroke.colour, list[1].stroke.colour);
    run_groups_finish(&test->groups);
    add(test, &(struct sample_run){.mode = "ps-sync", .workers = 2}, 1, NULL);
    group(test);
    list = test->groups.list;
    assert_true(test->groups.has_mode_colours);
    assert_int_equal(list[0].stroke.colour, list[1].stroke.colour);
    assert_int_not_equal(list[0].stroke.dash, list[1].stroke.dash);
    assert_int_not_equal(list[0].stroke.colour, list[2].stroke.colour);
    assert_int_equal(list[0].stroke.dash, list[2].stroke.dash);
}

static void a_timeline_is_not_a_setting(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.mode = "ring"}, 1,
        json_pack("{s:s, s:b, s:i}", "mode", "ring", "timeline", 1, "epochs", 1));
    add(test, &(struct sample_run){.mode = "ring"}, 1,
        json_pack("{s:s, s:b, s:i}", "mode", "ring", "timeline", 0, "epochs", 2));
    group(test);
    check_labels(test, (const char *const[]){"1 epoch", "2 epochs"}, 2);
}

static void options_that_differ_are_named_in_words(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-async", .servers = 1}, 1,
        json_pack("{s:s, s:i, s:s, s:i}", "mode", "ps-async", "workers", 2, "order",
                  "seeded:constant:4", "report-every", 10));
    add(test, &(struct sample_run){.mode = "ps-async", .servers = 1}, 1,
        json_pack("{s:s, s:i, s:s, s:i}", "mode", "ps-async", "workers", 2, "order", "free",
                  "report-every", 20));
    add(test, &(struct sample_run){.mode = "ring"}, 1,
        json_pack("{s:s, s:i, s:s, s:i}", "mode", "ring", "workers", 2, "order", "free",
                  "report-every", 20));
    group(test);
    check_labels(
        test, (const char *const[]){"ring", "ps-async, staleness 4", "ps-async, updates race"}, 3);
}

static void the_optimizer_that_the_default_comes_to_is_not_named(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.mode = "ring"}, 1,
        json_pack("{s:s, s:s, s:s}", "mode", "ring", "model", "cnn", "optimizer", "momentum"));
    add(test, &(struct sample_run){.mode = "ps-async", .servers = 1}, 1,
        json_pack("{s:s, s:s, s:s}", "mode", "ps-async", "model", "cnn", "optimizer", "sgd"));
    group(test);
    check_labels(test, (const char *const[]){"ring", "ps-async, sgd"}, 2);
}

/* One program in all modes: servers have the optimizer that it says, and in ring it has its own. */
static void an_optimizer_that_follows_from_the_mode_is_not_named(void **state)
{
    static const struct {
        const char *mode, *optimizer;
        double rate;
    } runs[] = {{"ring", "auto", 0}, {"ps-sync", "sgd", 0.25}, {"ps-async", "sgd", 0.25}};
    struct groups_test *test = *state;
    for (size_t i = 0; i < 3; i++) {
        add(test, &(struct sample_run){.mode = runs[i].mode, .servers = i > 0}, 1,
            json_pack("{s:s, s:s, s:s, s:f}", "mode", runs[i].mode, "model", "external:mine",
                      "optimizer", runs[i].optimizer, "lr", runs[i].rate));
    }
    group(test);
    check_labels(test, (const char *const[]){"ring", "ps-sync", "ps-async"}, 3);
    run_groups_finish(&test->groups);
    add(test, &(struct sample_run){.mode = "ps-async", .servers = 1}, 1,
        json_pack("{s:s, s:s, s:s, s:f}", "mode", "ps-async", "model", "external:mine", "optimizer",
                  "sgd", "lr", 0.5));
    group(test);
    check_labels(
        test, (const char *const[]){"ring", "ps-sync", "ps-async, rate 0.25", "ps-async, rate 0.5"},
        4);
}

static void workers_are_named_where_they_differ(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.mode = "ring", .workers = 2}, 1, NULL);
    add(test, &(struct sample_run){.mode = "ring", .workers = 4}, 1, NULL);
    group(test);
    check_labels(test, (const char *const[]){"2 workers", "4 workers"}, 2);
    assert_string_equal(test->groups.list[0].design, "ring");
}

static void the_first_epoch_is_left_out_of_the_steady_rate(void **state)
{
    struct groups_test *test = *state;
    add(test, &(struct sample_run){.mode = "ring"}, 1, NULL);
    json_t *epochs = json_pack("[{s:f, s:f}, {s:f, s:f}, {s:f, s:f}]", "seconds", 9.0,
                               "images_per_second", 1.0, "seconds", 1.0, "images_per_second", 100.0,
                               "seconds", 3.0, "images_per_second", 200.0);
    json_object_set_new(test->runs[0].summary, "epochs", epochs);
    group(test);
    check_near(test->groups.list[0].steady_rate.mean, 175);
}

#define GROUPS_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GROUPS_TEST(seeds_are_one_group_with_an_interval),
        GROUPS_TEST(accuracies_of_fewer_images_are_counted),
        GROUPS_TEST(the_same_job_twice_is_told_apart_by_its_folders),
        GROUPS_TEST(modes_have_one_order_and_colours_of_their_own),
        GROUPS_TEST(settings_of_a_mode_have_its_colour_and_other_dashes),
        GROUPS_TEST(a_timeline_is_not_a_setting),
        GROUPS_TEST(options_that_differ_are_named_in_words),
        GROUPS_TEST(the_optimizer_that_the_default_comes_to_is_not_named),
        GROUPS_TEST(an_optimizer_that_follows_from_the_mode_is_not_named),
        GROUPS_TEST(workers_are_named_where_they_differ),
        GROUPS_TEST(the_first_epoch_is_left_out_of_the_steady_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
