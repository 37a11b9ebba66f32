/* Tests of how reports of intervals are added up. */
#include "common/channel/report_sum.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void everything_that_is_counted_is_added_and_the_last_rate_stays(void **state)
{
    (void)state;
    const struct wire_report report = {.steps = 1,
                                       .images = 2,
                                       .images_dropped = 3,
                                       .loss_sum = 4,
                                       .compute_ns = 5,
                                       .exchange_wait_ns = 6,
                                       .input_wait_ns = 7,
                                       .total_ns = 8,
                                       .copy_ns = 9,
                                       .wire_ns = 10,
                                       .bytes_sent = 11,
                                       .bytes_received = 12,
                                       .staleness_sum = 13,
                                       .epoch = 14,
                                       .rate = 0.5,
                                       .loader_threads = 2};
    struct wire_report sum = {.rate = 1, .loader_threads = 1};
    report_sum_add(&sum, &report);
    report_sum_add(&sum, &report);
    assert_int_equal(sum.steps, 2);
    assert_int_equal(sum.images, 4);
    assert_true(sum.images_dropped == 6 && sum.loss_sum == 8 && sum.rate == 0.5);
    assert_int_equal(sum.compute_ns, 10);
    assert_int_equal(sum.exchange_wait_ns, 12);
    assert_int_equal(sum.input_wait_ns, 14);
    assert_int_equal(sum.total_ns, 16);
    assert_int_equal(sum.copy_ns, 18);
    assert_int_equal(sum.wire_ns, 20);
    assert_int_equal(sum.bytes_sent, 22);
    assert_int_equal(sum.bytes_received, 24);
    assert_int_equal(sum.staleness_sum, 26);
    assert_int_equal(sum.epoch, 0); // of one interval alone
    assert_int_equal(sum.loader_threads, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_that_is_counted_is_added_and_the_last_rate_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
