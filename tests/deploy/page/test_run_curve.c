/* Tests of reading losses from metrics. */
#include "deploy/page/run_curve.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Equal to within a thousandth. */
static void check_near(double value, double expected)
{
    if (fabs(value - expected) > 0.001) {
        fail_msg("%g is not %g", value, expected);
    }
}

/* Reads the losses of a run with these metrics; NULL: it has none. */
static struct curve_point *read_curve(const char *metrics, size_t most, size_t *ret_count)
{
    char *folder = temp_folder_create();
    struct run_folder run = {.summary = NULL};
    struct curve_point *points;
    snprintf(run.path, sizeof(run.path), "%s", folder);
    if (metrics != NULL) {
        temp_folder_write(folder, "metrics.jsonl", metrics, strlen(metrics));
    }
    assert_int_equal(run_curve_read(&run, most, false, &points, ret_count), STATUS_OK);
    temp_folder_destroy(folder);
    return points;
}

static void ranks_that_interleave_are_averaged_by_step(void **state)
{
    (void)state;
    size_t count;
    struct curve_point *points = read_curve("{\"step\":2,\"loss\":1,\"seconds\":4}\n"
                                            "{\"step\":1,\"loss\":3,\"seconds\":1}\n"
                                            "{\"step\":1,\"loss\":5,\"seconds\":2}\n",
                                            10, &count);
    assert_int_equal(count, 2);
    check_near(points[0].step, 1);
    check_near(points[0].loss, 4);
    check_near(points[0].seconds, 1.5);
    check_near(points[1].loss, 1);
    free(points);
}

static void neighbours_are_averaged_where_there_are_too_many(void **state)
{
    (void)state;
    char metrics[4096] = "";
    size_t used = 0, count;
    for (int step = 1; step <= 5; step++) {
        used += (size_t)snprintf(metrics + used, sizeof(metrics) - used,
                                 "{\"step\":%d,\"loss\":%d,\"seconds\":0}\n", step, 10 * step);
    }
    struct curve_point *points = read_curve(metrics, 3, &count);
    assert_int_equal(count, 3);
    check_near(points[0].step, 1.5);
    check_near(points[1].loss, 35);
    check_near(points[2].step, 5);
    free(points);
}

static void lines_that_are_no_losses_are_left_out(void **state)
{
    (void)state;
    size_t count;
    struct curve_point *points =
        read_curve("{\"step\":1,\"loss\":null}\n[1]\nnonsense\n\n{\"loss\":4}\n"
                   "{\"step\":3,\"loss\":2}\n{\"step\":4,\"lo",
                   10, &count);
    assert_int_equal(count, 1);
    check_near(points[0].step, 3);
    free(points);
}

static void a_run_without_metrics_has_no_points(void **state)
{
    (void)state;
    size_t count = 7;
    free(read_curve(NULL, 10, &count));
    assert_int_equal(count, 0);
    free(read_curve("", 10, &count));
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_interleave_are_averaged_by_step),
        cmocka_unit_test(neighbours_are_averaged_where_there_are_too_many),
        cmocka_unit_test(lines_that_are_no_losses_are_left_out),
        cmocka_unit_test(a_run_without_metrics_has_no_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
