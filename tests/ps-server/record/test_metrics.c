/* Tests of how reports become lines, of which there are not too many. */
#include "ps-server/record/metrics.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Steps of a job of one rank, reported every `every` of them; counts its lines, and checks that
 * they have all steps. */
static uint64_t count_lines(uint32_t workers, uint64_t every, uint64_t steps, uint64_t *ret_longest)
{
    struct metrics metrics;
    struct metrics_line line;
    uint64_t lines = 0, seen = 0;
    assert_int_equal(metrics_init(&metrics, workers, every, steps), STATUS_OK);
    *ret_longest = 0;
    for (uint64_t step = every; step <= steps; step += every) {
        const struct wire_report report = {.steps = every, .images = 8 * every};
        const struct message message = {.kind = MESSAGE_REPORT, .step = step, .report = &report};
        bool is_due = metrics_add(&metrics, workers - 1, &message, (double)step);
        bool is_last = step + every > steps;
        if ((is_due || is_last) && metrics_take(&metrics, workers - 1, &line)) {
            assert_int_equal(line.step, step);
            assert_true(line.seconds == (double)step);
            assert_int_equal(line.report.images, 8 * line.report.steps);
            *ret_longest = line.report.steps > *ret_longest ? line.report.steps : *ret_longest;
            seen += line.report.steps;
            lines++;
        }
    }
    assert_int_equal(seen, steps / every * every);
    assert_false(metrics_take(&metrics, workers - 1, &line));
    metrics_finish(&metrics);
    return lines;
}

static void a_short_job_has_a_line_for_each_report(void **state)
{
    (void)state;
    uint64_t longest;
    assert_int_equal(count_lines(4, 10, 50000, &longest), 5000);
    assert_int_equal(longest, 10);
}

static void lines_of_a_long_job_are_bounded(void **state)
{
    (void)state;
    static const uint64_t steps[] = {100000, 1000000, 10000000};
    static const uint32_t workers[] = {1, 4, 64};
    for (size_t i = 0; i < 9; i++) {
        uint64_t longest, most = METRICS_LINES_MAX / workers[i % 3];
        uint64_t lines = count_lines(workers[i % 3], 2, steps[i / 3], &longest);
        assert_in_range(lines, most / 4, most + 1);
        assert_true(longest > 2);
    }
}

static void a_job_of_very_many_ranks_has_a_few_lines_of_each(void **state)
{
    (void)state;
    uint64_t longest, lines = count_lines(4096, 1, 1000000, &longest);
    assert_in_range(lines, METRICS_RANK_LINES_MIN / 4, METRICS_RANK_LINES_MIN + 1);
}

/* All ranks that are in step have their lines at the same steps, at first the finest. */
static void lines_grow_from_the_reporting_interval_on(void **state)
{
    (void)state;
    struct metrics metrics;
    assert_int_equal(metrics_init(&metrics, 4, 10, 10000000), STATUS_OK);
    uint64_t last = 0;
    assert_int_equal(metrics_interval(&metrics, 10), 10);
    for (uint64_t step = 10; step <= 10000000; step *= 10) {
        uint64_t interval = metrics_interval(&metrics, step);
        assert_true(interval >= last && interval % 10 == 0);
        last = interval;
    }
    assert_true(last > 1000);
    assert_true(metrics_interval(&metrics, UINT64_MAX) > last);
    metrics_finish(&metrics);
}

static void a_line_has_sums_of_its_reports_and_the_last_rate(void **state)
{
    (void)state;
    struct metrics metrics;
    struct metrics_line line;
    assert_int_equal(metrics_init(&metrics, 2, 1, 1000), STATUS_OK);
    for (uint64_t step = 1; step <= 3; step++) {
        const struct wire_report report = {.steps = 1,
                                           .images = 8,
                                           .loss_sum = (double)step,
                                           .images_dropped = 0.5,
                                           .staleness_sum = 2,
                                           .compute_ns = 3,
                                           .exchange_wait_ns = 4,
                                           .input_wait_ns = 5,
                                           .total_ns = 12,
                                           .copy_ns = 1,
                                           .wire_ns = 2,
                                           .bytes_sent = 6,
                                           .bytes_received = 7,
                                           .epoch = step - 1,
                                           .rate = 0.1 * (double)step};
        const struct message message = {.kind = MESSAGE_REPORT, .step = step, .report = &report};
        (void)metrics_add(&metrics, 1, &message, 100 * (double)step);
    }
    assert_false(metrics_take(&metrics, 0, &line));
    assert_true(metrics_take(&metrics, 1, &line));
    const struct wire_report expected = {.steps = 3,
                                         .images = 24,
                                         .loss_sum = 6,
                                         .images_dropped = 1.5,
                                         .staleness_sum = 6,
                                         .compute_ns = 9,
                                         .exchange_wait_ns = 12,
                                         .input_wait_ns = 15,
                                         .total_ns = 36,
                                         .copy_ns = 3,
                                         .wire_ns = 6,
                                         .bytes_sent = 18,
                                         .bytes_received = 21,
                                         .rate = 0.1 * 3.0};
    assert_memory_equal(&line.report, &expected, sizeof(expected));
    assert_int_equal(line.step, 3);
    assert_int_equal(line.epoch, 2);
    assert_true(line.seconds == 300);
    metrics_finish(&metrics);
}

static void the_rest_of_a_sum_is_what_no_line_has(void **state)
{
    (void)state;
    const struct wire_report sum = {.steps = 40,
                                    .images = 400,
                                    .loss_sum = 800,
                                    .compute_ns = 4000,
                                    .rate = 0.5,
                                    .is_repeated = true};
    struct wire_report rest;
    assert_false(metrics_rest(&sum, 40, 80, &rest));
    assert_false(metrics_rest(&sum, 50, 80, &rest));
    assert_true(metrics_rest(&sum, 30, 75, &rest)); // 300 images with a mean loss of 2.5
    assert_int_equal(rest.steps, 10);
    assert_int_equal(rest.images, 100);
    assert_true(rest.loss_sum == 50);
    assert_int_equal(rest.compute_ns, 1000);
    assert_true(rest.rate == 0.5);
    assert_true(rest.is_repeated);
}

static void a_line_says_whether_it_has_a_sum_that_was_kept(void **state)
{
    (void)state;
    struct metrics metrics;
    struct metrics_line line;
    const struct wire_report sum = {.steps = 4, .is_repeated = true}, next = {.steps = 1};
    const struct message told = {.kind = MESSAGE_REPORT, .step = 4, .report = &sum};
    const struct message since = {.kind = MESSAGE_REPORT, .step = 5, .report = &next};
    assert_int_equal(metrics_init(&metrics, 1, 1, 1000), STATUS_OK);
    (void)metrics_add(&metrics, 0, &told, 100);
    (void)metrics_add(&metrics, 0, &since, 100);
    assert_true(metrics_take(&metrics, 0, &line));
    assert_true(line.is_restored && line.report.steps == 5);
    (void)metrics_add(&metrics, 0, &since, 100);
    assert_true(metrics_take(&metrics, 0, &line));
    assert_false(line.is_restored);
    metrics_finish(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_of_a_sum_is_what_no_line_has),
        cmocka_unit_test(a_line_says_whether_it_has_a_sum_that_was_kept),
        cmocka_unit_test(a_short_job_has_a_line_for_each_report),
        cmocka_unit_test(lines_of_a_long_job_are_bounded),
        cmocka_unit_test(a_job_of_very_many_ranks_has_a_few_lines_of_each),
        cmocka_unit_test(lines_grow_from_the_reporting_interval_on),
        cmocka_unit_test(a_line_has_sums_of_its_reports_and_the_last_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
