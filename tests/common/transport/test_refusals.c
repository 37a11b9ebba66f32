/* Tests of refusals: the first are said one by one, many in a few lines, and none is lost. */
#include "common/base/log.h"
#include "common/transport/refusals.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static unsigned count_lines(const char *text)
{
    unsigned count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

static void the_first_ones_are_said_one_by_one(void **state)
{
    (void)state;
    struct refusals refusals = {0};
    captured_log_begin();
    refusals_add(&refusals, "10.0.0.9:4711", "no key", 1, 1000);
    refusals_add(&refusals, "[2001:db8::7]:9", "garbage", 1, 1001);
    refusals_finish(&refusals);
    const char *said = captured_log_end();
    assert_int_equal(count_lines(said), 2);
    assert_non_null(strstr(said, "from=10.0.0.9:4711 refused_so_far=1 reason=\"no key\""));
    assert_non_null(strstr(said, "from=[2001:db8::7]:9 refused_so_far=2 reason=\"garbage\""));
    assert_int_equal(refusals.count, 2);
}

static void many_are_said_in_few_lines_by_host_and_reason(void **state)
{
    (void)state;
    struct refusals refusals = {0};
    captured_log_begin();
    for (unsigned i = 0; i < 100000; i++) {
        char address[64];
        snprintf(address, sizeof(address), "10.0.0.%u:%u", i % 2 + 1, i % 60000);
        refusals_add(&refusals, address, i % 4 < 2 ? "garbage" : "no key", 1, i / 11);
    }
    refusals_finish(&refusals);
    const char *said = captured_log_end();
    assert_int_equal(count_lines(said), 4 * REFUSALS_SINGLE_MAX + 1);
    assert_non_null(strstr(said, "refused 99988 more connections: refused_so_far=100000 "
                                 "from=10.0.0.1 (24997: garbage), 10.0.0.2 (24997: garbage), "
                                 "10.0.0.1 (24997: no key), 10.0.0.2 (24997: no key)"));
}

static void who_comes_late_is_named_as_well(void **state)
{
    (void)state;
    struct refusals refusals = {0};
    captured_log_begin();
    refusals_add(&refusals, "10.0.0.1:1", "garbage", 5000, 5);
    refusals_add(&refusals, "10.0.0.2:7", "no key", 1, 6);
    const char *said = captured_log_end();
    assert_int_equal(count_lines(said), 1);
    assert_non_null(strstr(said, "from=10.0.0.2:7 refused_so_far=5001"));
}

static void a_flood_of_days_is_said_less_and_less_often(void **state)
{
    (void)state;
    struct refusals refusals = {0};
    const uint64_t day_ms = UINT64_C(24) * 3600 * 1000;
    captured_log_begin();
    for (uint64_t now_ms = 0; now_ms < day_ms; now_ms += 1000) {
        refusals_add(&refusals, "10.0.0.9:1", "garbage", 1000, now_ms);
        refusals_tick(&refusals, now_ms + 500);
    }
    refusals_finish(&refusals);
    unsigned lines = count_lines(captured_log_end());
    assert_in_range(lines, 100, 200);
    assert_int_equal(refusals.count, day_ms);
}

static void more_hosts_than_are_told_apart_are_in_the_sum(void **state)
{
    (void)state;
    struct refusals refusals = {0};
    captured_log_begin();
    for (unsigned i = 0; i < 1000; i++) {
        char address[64];
        snprintf(address, sizeof(address), "10.0.%u.%u:1", i / 250, i % 250);
        refusals_add(&refusals, address, "garbage", 1, 5);
    }
    refusals_finish(&refusals);
    const char *said = captured_log_end();
    assert_int_equal(count_lines(said), REFUSALS_KINDS_MAX + 1);
    assert_non_null(strstr(said, "refused 984 more connections: refused_so_far=1000"));
}

static void a_long_summary_is_cut_between_two_hosts(void **state)
{
    (void)state;
    struct refusals refusals = {0};
    char why[300];
    memset(why, 'y', sizeof(why) - 1);
    why[sizeof(why) - 1] = '\0';
    captured_log_begin();
    for (unsigned i = 0; i < REFUSALS_KINDS_MAX; i++) {
        char address[64];
        snprintf(address, sizeof(address), "10.0.0.%u:1", i);
        refusals_add(&refusals, address, why, 10, 5);
    }
    refusals_finish(&refusals);
    const char *said = captured_log_end();
    assert_int_equal(count_lines(said), 1);
    assert_non_null(strstr(said, "refused 160 more"));
    assert_string_equal(said + strlen(said) - 3, "y)\n");
}

static void nothing_refused_is_nothing_said(void **state)
{
    (void)state;
    struct refusals refusals = {0};
    captured_log_begin();
    refusals_tick(&refusals, 1000000);
    refusals_finish(&refusals);
    assert_string_equal(captured_log_end(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_ones_are_said_one_by_one),
        cmocka_unit_test(many_are_said_in_few_lines_by_host_and_reason),
        cmocka_unit_test(who_comes_late_is_named_as_well),
        cmocka_unit_test(a_flood_of_days_is_said_less_and_less_often),
        cmocka_unit_test(more_hosts_than_are_told_apart_are_in_the_sum),
        cmocka_unit_test(a_long_summary_is_cut_between_two_hosts),
        cmocka_unit_test(nothing_refused_is_nothing_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
