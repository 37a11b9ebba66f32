/* Tests of the plots of predictions: which there are, and that gnuplot takes them. */
#include "deploy/plot/prediction_plots.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/has_gnuplot.h"
#include "tests/support/deploy/small_study.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_plot(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.svg", folder, name);
    bool is_there = access(path, F_OK) == 0;
    snprintf(path, sizeof(path), "%s/%s.png", folder, name);
    assert_int_equal(access(path, F_OK) == 0, is_there);
    return is_there;
}

/* Makes and plots a study. Which of efficiency, to-target and winners there have to be. */
static void plots(const char *modes, const char *workers, const struct convergence *convergence,
                  double compute_error, const bool *wanted)
{
    struct small_study *small = small_study_create(32, modes, "1,2", workers);
    struct winners *winners = calloc(1, sizeof(*winners));
    char *folder = temp_folder_create(), script[4096];
    assert_non_null(small);
    assert_non_null(winners);
    small->study.convergence = convergence;
    small->costs.errors.compute = compute_error;
    assert_int_equal(study_make(&small->study), STATUS_OK);
    assert_int_equal(winners_make(&small->study, winners), STATUS_OK);
    captured_log_begin();
    enum status status = prediction_plots_write(folder, &small->study, winners);
    assert_string_equal(captured_log_end(), "");
    assert_int_equal(status, STATUS_OK);
    snprintf(script, sizeof(script), "%s/plots.gnuplot", folder);
    assert_int_not_equal(access(script, F_OK), 0); // it stays if gnuplot has refused it
    for (size_t i = 0; i < 3; i++) {
        if (has_plot(folder, prediction_plots[i].name) != wanted[i]) {
            fail_msg("%s with %s: %s", modes, workers, prediction_plots[i].name);
        }
    }
    temp_folder_destroy(folder);
    free(winners);
    small_study_destroy(small);
}

static void test_plots_are_there_where_there_is_something_to_plot(void **state)
{
    (void)state;
    struct convergence_row rows[] = {{.images = 32, .updates = 100},
                                     {.images = 1024, .updates = 50},
                                     {.images = 32, .staleness = 100, .updates = 1000}};
    const struct convergence known = {rows, 3}, of_one = {rows, 1};
    if (!has_gnuplot()) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
    plots("ring,ps-sync,ps-async", "2,4", NULL, 0, (bool[]){true, false, true});
    plots("ring,ps-sync,ps-async", "1,2,32", &known, 0, (bool[]){true, true, true});
    plots("ring", "2,4", NULL, 0, (bool[]){true, false, false});
    plots("ring,ps-sync", "4", NULL, 0, (bool[]){false, false, true});
    plots("ring,ps-sync", "1,2,32", &known, 0.1, (bool[]){true, true, true}); // with bands
    plots("ring", "1,2", &of_one, 0, (bool[]){true, false, false});
}

static void a_band_is_a_share_of_the_images(void **state)
{
    (void)state;
    struct study_point point = {.made = {.images_per_s = 200}};
    double low, high;
    assert_false(prediction_plots_band(&point, &low, &high));
    assert_true(low == 1 && high == 1);
    point.has_interval = true;
    point.images_per_s_low = 150;
    point.images_per_s_high = 300;
    assert_true(prediction_plots_band(&point, &low, &high));
    assert_true(low == 0.75 && high == 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plots_are_there_where_there_is_something_to_plot),
        cmocka_unit_test(a_band_is_a_share_of_the_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
