/* Tests of steps to a target by a sweep's table: what rows say, what lies between them, and what is
 * not known. */
#include "common/job/job_options.h"
#include "deploy/predict/convergence/convergence.h"
#include "tests/support/common/captured_log.h"
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

#define HEADINGS                                                                               \
    "setting,runs,reached,mean staleness mean,steps to target mean,mode,workers,global batch," \
    "gradients per update\n"

/* Updates of 64 and of 256 images, each at several values of staleness. */
static const char table[] = HEADINGS
    "mode=ps-sync,3,3,0,1000,ps-sync,2,64,1\n"
    "mode=ps-async order=seeded:constant:4,3,3,4,500,ps-async,4,256,1\n" // 2000 updates of 64
    "mode=ps-async order=seeded:constant:8,3,3,8,1e+03,ps-async,4,256,1\n"
    "mode=ps-async order=seeded:constant:16,3,2,16,900,ps-async,4,256,1\n"
    "mode=ring,3,3,0,250,ring,4,256,1\n";

struct convergence_test {
    char *folder;
    char path[4096];
    struct convergence convergence;
};

static void open_test(struct convergence_test *test, const char *text)
{
    test->folder = temp_folder_create();
    snprintf(test->path, sizeof(test->path), "%s/sweep.csv", test->folder);
    FILE *file = fopen(test->path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(convergence_read(test->path, &test->convergence), STATUS_OK);
}

static void close_test(struct convergence_test *test)
{
    convergence_finish(&test->convergence);
    temp_folder_destroy(test->folder);
}

static struct target find(const struct convergence_test *test, const char *mode, uint32_t workers,
                          uint32_t batch, double staleness)
{
    struct job job = {.workers = 0};
    struct option_set set = job_option_set(&job);
    struct target target;
    options_reset(&set);
    assert_int_equal(mode_parse(mode, &job.mode), STATUS_OK);
    job.workers = workers;
    convergence_find(&test->convergence, &job, batch, staleness, 0.5, &target);
    return target;
}

static void has_steps(const struct target *target, double steps)
{
    if (!(fabs(target->steps - steps) <= 1e-6 * steps)) {
        fail_msg("%.9g steps instead of %.9g (%s)", target->steps, steps, target->why);
    }
    assert_float_equal(target->seconds, (0.5 * steps), 1e-3);
}

static void test_rows_say_what_they_have(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, table);
    struct target target = find(&test, "ps-sync", 4, 16, 0);
    has_steps(&target, 1000);
    target = find(&test, "ring", 4, 64, 0);
    has_steps(&target, 250);
    target = find(&test, "ps-async", 4, 64, 4);
    has_steps(&target, 500);
    close_test(&test);
}

static void test_an_update_counts_by_its_images_whoever_makes_it(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, table);
    struct target target = find(&test, "ps-async", 8, 64, 4); // twice the updates in each step
    has_steps(&target, 250);
    target = find(&test, "ps-ssp:3", 2, 64, 4);
    has_steps(&target, 1000);
    target = find(&test, "ps-async", 8, 64, 0); // without staleness: as updates of 64 in turn
    has_steps(&target, 125);
    close_test(&test);
}

static void test_between_rows_updates_are_linear_in_the_staleness(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, table);
    struct target target = find(&test, "ps-async", 1, 64, 6);
    has_steps(&target, 3000); // 2000 at 4, 4000 at 8
    target = find(&test, "ps-async", 1, 64, 2);
    has_steps(&target, 1500); // 1000 at 0
    close_test(&test);
}

static void test_between_rows_logarithms_are_linear_in_the_images(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, table);
    struct target target = find(&test, "ring", 4, 32, 0); // 128 images: half of the way
    has_steps(&target, 500);
    close_test(&test);
}

static void is_unknown(const struct target *target, const char *why)
{
    assert_float_equal(target->steps, 0, 0);
    if (strstr(target->why, why) == NULL) {
        fail_msg("'%s' instead of '%s'", target->why, why);
    }
}

static void test_beyond_rows_nothing_is_said(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, table);
    struct target target = find(&test, "ring", 8, 64, 0);
    is_unknown(&target, "no row has updates of 512 images; the largest are of 256");
    target = find(&test, "ring", 1, 32, 0);
    is_unknown(&target, "no row has updates of 32 images; the smallest are of 64");
    target = find(&test, "ps-async", 8, 64, 20);
    is_unknown(&target, "no row has a staleness of 20 at 64 images an update; the highest has 16");
    target = find(&test, "ps-async", 8, 64, 12);
    is_unknown(&target, "runs at a staleness of 16 and 64 images an update did not reach");
    close_test(&test);
}

static void test_a_row_that_is_as_good_as_there_counts(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, HEADINGS "x,1,1,0,1000,ps-async,1,64,1\n"
                              "x,1,1,1.98,1500,ps-async,1,64,1\n"); // a constant staleness of 2
    struct target target = find(&test, "ps-async", 1, 64, 2);
    has_steps(&target, 1500);
    target = find(&test, "ps-async", 1, 64, 2.1);
    is_unknown(&target, "the highest has 1.98");
    close_test(&test);
}

static void test_recipes_are_not_mixed_and_the_quickest_counts(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, HEADINGS "mode=ps-async lr=0.1,1,1,0,1000,ps-async,1,64,1\n"
                              "mode=ps-async lr=0.01,1,1,0,1500,ps-async,1,64,1\n"
                              "mode=ps-async lr=0.01,1,1,8,2000,ps-async,1,64,1\n");
    struct target target = find(&test, "ps-async", 1, 64, 0);
    has_steps(&target, 1000);
    assert_string_equal(target.recipe, "lr=0.1");
    target = find(&test, "ps-async", 1, 64, 4);
    has_steps(&target, 1750);
    assert_string_equal(target.recipe, "lr=0.01");
    close_test(&test);
}

static void test_rows_of_another_algorithm_do_not_count(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, HEADINGS "sync-every=4,1,1,0,400,ring,2,64,1\n"
                              "sync-every=1,1,1,0,700,ring,2,64,1\n");
    struct target target = find(&test, "ring", 2, 32, 0);
    has_steps(&target, 700);
    close_test(&test);
}

static void test_softsync_takes_the_images_of_several_gradients(void **state)
{
    (void)state;
    struct convergence_test test;
    open_test(&test, HEADINGS "gradients-per-update=2,1,1,0,300,ps-async,4,128,2\n");
    struct target target = find(&test, "ring", 2, 32, 0); // updates of 64, two in each step
    has_steps(&target, 600);
    close_test(&test);
}

static void refuses(const char *text, const char *why)
{
    struct convergence_test test = {.folder = temp_folder_create()};
    snprintf(test.path, sizeof(test.path), "%s/sweep.csv", test.folder);
    FILE *file = fopen(test.path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    captured_log_begin();
    enum status status = convergence_read(test.path, &test.convergence);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    if (strstr(log, why) == NULL) {
        fail_msg("'%s' instead of '%s'", log, why);
    }
    temp_folder_destroy(test.folder);
}

static void test_what_is_no_table_is_refused_by_name(void **state)
{
    (void)state;
    refuses("", "the table is empty");
    refuses(HEADINGS, "has no settings");
    refuses("setting,runs\nx,1\n", "there is no column 'mode'");
    refuses(HEADINGS "x,1,1,0,100,rings,2,64,1\n", "line 2: mode is none that there is");
    refuses(HEADINGS "x,1,1,0,100,ring,0,64,1\n", "line 2: workers is too small");
    refuses(HEADINGS "x,1,1,0,soon,ring,2,64,1\n", "steps to target mean has to be a number");
    refuses(HEADINGS "x,1,1,-1,100,ring,2,64,1\n", "mean staleness mean has to be a number");
    refuses(HEADINGS "\"x,1\n", "is no line of comma-separated values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_say_what_they_have),
        cmocka_unit_test(test_an_update_counts_by_its_images_whoever_makes_it),
        cmocka_unit_test(test_between_rows_updates_are_linear_in_the_staleness),
        cmocka_unit_test(test_between_rows_logarithms_are_linear_in_the_images),
        cmocka_unit_test(test_beyond_rows_nothing_is_said),
        cmocka_unit_test(test_a_row_that_is_as_good_as_there_counts),
        cmocka_unit_test(test_recipes_are_not_mixed_and_the_quickest_counts),
        cmocka_unit_test(test_rows_of_another_algorithm_do_not_count),
        cmocka_unit_test(test_softsync_takes_the_images_of_several_gradients),
        cmocka_unit_test(test_what_is_no_table_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
