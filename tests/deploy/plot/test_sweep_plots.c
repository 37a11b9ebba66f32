/* Tests of a sweep's plots: gnuplot takes all of them, whatever the settings have, and nothing that
 * they are called is taken for a command. */
#include "deploy/plot/sweep_plots.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/has_gnuplot.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SETTINGS_MAX 12

struct plots_test {
    char *folder;
    struct sweep_setting list[SETTINGS_MAX];
    struct sweep_point points[3];
    size_t rows[SETTINGS_MAX];
    struct sweep_settings settings;
    struct run_group groups[SETTINGS_MAX]; // of no design that scales, unless a test says so
    struct run_groups grouped;
};

/* `count` settings in `series` series, with everything that there can be. */
static void open_test(struct plots_test *test, size_t count, size_t series)
{
    memset(test, 0, sizeof(*test));
    test->folder = temp_folder_create();
    for (size_t i = 0; i < 3; i++) {
        double at = (double)(i + 1);
        test->points[i] = (struct sweep_point){
            10 * at, {3, at, 0.1}, {3, 2.3 / at, 0.2}, {3, 30 * at, i == 1 ? 200 : 5}};
    }
    for (size_t i = 0; i < count; i++) {
        struct sweep_setting *setting = &test->list[i];
        *setting = (struct sweep_setting){
            .label = "mode=ring lr=0.1", .planned = 3, .completed = 3, .reached = 3};
        setting->series_index = i * series / count;
        snprintf(setting->series, sizeof(setting->series), "lr=%zu", setting->series_index);
        snprintf(setting->axis, sizeof(setting->axis), "mode=ps-ssp:%zu", i);
        setting->points = test->points;
        setting->point_count = 3;
        for (size_t m = 0; m < MEASURE_COUNT; m++) {
            setting->measures[m] = (struct statistics){3, (double)(i + 1), 0.5};
        }
        for (size_t k = 0; k < 3; k++) {
            setting->rates[k] = (double)(i + 1) + 0.1 * (double)k;
        }
        setting->relative_steps = setting->relative_seconds = (struct statistics){3, 1.5, 0.25};
        setting->shares[i] = 1;
    }
    for (size_t i = 0; i < count; i++) {
        test->rows[i] = i;
    }
    test->settings = (struct sweep_settings){test->list, count, series, test->rows};
    test->grouped = (struct run_groups){.list = test->groups, .has_mode_colours = true};
}

/* Lines that have the text. */
static size_t count_lines(const char *path, const char *text)
{
    char line[8192];
    size_t count = 0;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        count += strstr(line, text) != NULL;
    }
    fclose(file);
    return count;
}

static bool file_has(const char *path, const char *text)
{
    return count_lines(path, text) > 0;
}

/* Names of the plots that are there. */
static size_t plot_and_count(const struct plots_test *test)
{
    size_t count = 0;
    captured_log_begin();
    enum status status = sweep_plots_write(test->folder, &test->settings, &test->grouped);
    assert_string_equal(captured_log_end(), ""); // gnuplot's warnings are not the user's
    assert_int_equal(status, STATUS_OK);
    for (const struct plot *plot = sweep_plots; plot->name != NULL; plot++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s.svg", test->folder, plot->name);
        bool is_there = access(path, F_OK) == 0;
        snprintf(path, sizeof(path), "%s/%s.png", test->folder, plot->name);
        assert_int_equal(access(path, F_OK) == 0, is_there);
        count += is_there;
    }
    char script[4096];
    snprintf(script, sizeof(script), "%s/plots.gnuplot", test->folder);
    assert_int_not_equal(access(script, F_OK), 0); // it stays if gnuplot has refused it
    return count;
}

static void every_shape_of_a_sweep_has_all_its_plots(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{1, 1}, {4, 1}, {6, 2}, {12, 4}, {12, 12}};
    if (!has_gnuplot()) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct plots_test test;
        open_test(&test, shapes[i][0], shapes[i][1]);
        assert_int_equal(plot_and_count(&test), 8);
        temp_folder_destroy(test.folder);
    }
}

/* All runs have failed: nothing was measured, and nothing is plotted of staleness and targets. */
static void settings_without_any_number_have_the_plots_that_are_left(void **state)
{
    (void)state;
    if (!has_gnuplot()) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
    struct plots_test test;
    open_test(&test, 3, 1);
    for (size_t i = 0; i < 3; i++) {
        test.list[i] = (struct sweep_setting){.label = "mode=ring", .planned = 1, .failed = 1};
    }
    assert_int_equal(plot_and_count(&test), 3); // losses, and images
    temp_folder_destroy(test.folder);
}

/* Crosses where runs diverged, also of settings that have nothing else, and a histogram whose last
 * bin counts more. */
static void what_diverged_and_what_is_capped_is_in_the_plots(void **state)
{
    (void)state;
    char path[4096];
    if (!has_gnuplot()) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
    for (size_t series = 1; series <= 2; series++) {
        struct plots_test test;
        open_test(&test, 4, series);
        for (size_t i = 0; i < 4; i += 2) {
            test.list[i].diverged = 2;
            test.list[i].diverged_steps[0] = 3;
            test.list[i].diverged_steps[1] = 17;
        }
        test.list[2].completed = test.list[2].point_count = 0;
        test.list[1].capped_bin = 1;
        assert_int_equal(plot_and_count(&test), 8);
        snprintf(path, sizeof(path), "%s/loss-steps.svg", test.folder);
        assert_true(file_has(path, "(2 of 3 diverged)"));
        snprintf(path, sizeof(path), "%s/staleness.svg", test.folder);
        assert_true(file_has(path, "what is older than 1 is counted there"));
        temp_folder_destroy(test.folder);
    }
}

/* Circles, which no other plot of rates has. */
static void two_or_three_runs_are_drawn_on_their_bar(void **state)
{
    (void)state;
    if (!has_gnuplot()) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
    size_t without = 0; // that SVG files of gnuplot have in any case
    for (size_t runs = 1; runs <= 4; runs++) {
        struct plots_test test;
        char path[4096];
        open_test(&test, 4, 1);
        for (size_t i = 0; i < 4; i++) {
            test.list[i].measures[MEASURE_RATE].count = runs;
        }
        plot_and_count(&test);
        snprintf(path, sizeof(path), "%s/images.svg", test.folder);
        bool is_drawn = runs == 2 || runs == 3;
        size_t circles = count_lines(path, "xlink:href='#gpPt5'");
        without = runs == 1 ? circles : without;
        assert_int_equal(circles, without + (is_drawn ? 4 * runs : 0));
        temp_folder_destroy(test.folder);
    }
}

/* Each bar of an interval is a path of its own; a design's name and the ideal are in the legend. */
static void designs_scale_beside_the_ideal(void **state)
{
    (void)state;
    static const char *const names[] = {"speed-up.svg", "efficiency.svg"};
    if (!has_gnuplot()) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
    size_t bars[2][2];
    for (size_t has_seeds = 0; has_seeds < 2; has_seeds++) {
        struct plots_test test;
        open_test(&test, 4, 1);
        for (size_t i = 0; i < 4; i++) {
            struct run_group *group = &test.groups[i];
            snprintf(group->design, sizeof(group->design), i < 2 ? "ring" : "staleness 4, slow");
            group->workers = i % 2 == 0 ? 1 : 4;
            group->stroke.colour = i / 2;
            group->steady_rate =
                (struct statistics){has_seeds ? 3 : 1, 100.0 * group->workers, has_seeds ? 5 : 0};
        }
        test.grouped.count = 4;
        assert_int_equal(plot_and_count(&test), 10);
        for (size_t k = 0; k < 2; k++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", test.folder, names[k]);
            assert_true(file_has(path, "ideal"));
            assert_true(file_has(path, "staleness 4, slow"));
            bars[has_seeds][k] = count_lines(path, "<g id=\"gnuplot_plot_");
        }
        temp_folder_destroy(test.folder);
    }
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(bars[0][k], 3);
        assert_int_equal(bars[1][k], 5); // and the intervals of both designs
    }
}

static void labels_that_read_like_commands_are_not_run(void **state)
{
    (void)state;
    struct plots_test test;
    char planted[4096], label[256];
    open_test(&test, 4, 2);
    snprintf(planted, sizeof(planted), "%s/planted", test.folder);
    snprintf(label, sizeof(label), "`touch %.90s`\" \\", planted);
    for (size_t i = 0; i < 4; i++) {
        test.list[i].label = label;
        memcpy(test.list[i].series, label, sizeof(label));
        memcpy(test.list[i].axis, label, sizeof(label));
    }
    assert_int_equal(sweep_plots_write(test.folder, &test.settings, &test.grouped), STATUS_OK);
    assert_int_not_equal(access(planted, F_OK), 0);
    temp_folder_destroy(test.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_of_a_sweep_has_all_its_plots),
        cmocka_unit_test(settings_without_any_number_have_the_plots_that_are_left),
        cmocka_unit_test(what_diverged_and_what_is_capped_is_in_the_plots),
        cmocka_unit_test(two_or_three_runs_are_drawn_on_their_bar),
        cmocka_unit_test(designs_scale_beside_the_ideal),
        cmocka_unit_test(labels_that_read_like_commands_are_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
