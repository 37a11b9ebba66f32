/* Tests of stragglers: what is drawn has the distribution that was asked for, alike for all. */
#include "common/job/straggler.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

static struct straggler parse(const char *text)
{
    struct straggler straggler;
    char why[256];
    assert_int_equal(straggler_parse(text, &straggler, why, sizeof(why)), STATUS_OK);
    return straggler;
}

static void nobody_is_slow_unless_asked(void **state)
{
    (void)state;
    struct straggler none = parse("none");
    assert_int_equal(straggler_rank_max(&none), -1);
    assert_int_equal(straggler_delay_ns(&none, 1, 0, 5, 1000000), 0);
}

static void a_factor_is_of_the_ranks_own_time(void **state)
{
    (void)state;
    struct straggler straggler = parse("rank=2,factor=3;rank=0,factor=1.5");
    assert_int_equal(straggler_rank_max(&straggler), 2);
    assert_int_equal(straggler_delay_ns(&straggler, 1, 2, 5, 1000), 2000);
    assert_int_equal(straggler_delay_ns(&straggler, 1, 0, 5, 1000), 500);
    assert_int_equal(straggler_delay_ns(&straggler, 1, 1, 5, 1000), 0);
}

static void delays_are_exponential_and_fall_on_their_share_of_steps(void **state)
{
    (void)state;
    struct straggler straggler = parse("dist=exponential:mean=20ms,share=0.25");
    const unsigned steps = 100000;
    unsigned late = 0, longer = 0;
    double sum_ms = 0;
    for (unsigned step = 0; step < steps; step++) {
        double ms = (double)straggler_delay_ns(&straggler, 7, 1, step, 0) / 1e6;
        late += ms > 0;
        longer += ms > 20;
        sum_ms += ms;
    }
    assert_true(fabs((double)late / steps - 0.25) < 0.01);
    assert_true(fabs(sum_ms / late - 20) < 0.6);
    assert_true(fabs((double)longer / late - exp(-1)) < 0.015);
}

static void delays_repeat_and_ranks_and_seeds_have_their_own(void **state)
{
    (void)state;
    struct straggler straggler = parse("dist=exponential:mean=1.5ms,share=1");
    for (uint64_t step = 0; step < 100; step++) {
        uint64_t delay = straggler_delay_ns(&straggler, 1, 0, step, 5);
        assert_int_equal(straggler_delay_ns(&straggler, 1, 0, step, 99), delay);
        assert_int_not_equal(straggler_delay_ns(&straggler, 1, 1, step, 5), delay);
        assert_int_not_equal(straggler_delay_ns(&straggler, 2, 0, step, 5), delay);
    }
}

static void what_is_no_straggler_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "slow",
                                        "rank=1",
                                        "rank=1,factor=0.5",
                                        "rank=1.5,factor=2",
                                        "rank=-1,factor=2",
                                        "rank=1,factor=2000",
                                        "dist=exponential:mean=20ms",
                                        "dist=exponential:mean=20ms,share=2",
                                        "dist=exponential:mean=xms,share=1",
                                        "dist=exponential:mean=20,share=1",
                                        "dist=normal:mean=20ms,share=1",
                                        "mean=20ms,share=1",
                                        "rank=1,factor=2;",
                                        "rank=1,factor=2,",
                                        "dist=exponential:mean=99999ms,share=1"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct straggler straggler = {.count = 7};
        char why[256] = "";
        if (straggler_parse(texts[i], &straggler, why, sizeof(why)) != STATUS_INVALID) {
            fail_msg("'%s' is taken", texts[i]);
        }
        assert_non_null(strstr(why, "rank=R,factor=F"));
        assert_int_equal(straggler.count, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_slow_unless_asked),
        cmocka_unit_test(a_factor_is_of_the_ranks_own_time),
        cmocka_unit_test(delays_are_exponential_and_fall_on_their_share_of_steps),
        cmocka_unit_test(delays_repeat_and_ranks_and_seeds_have_their_own),
        cmocka_unit_test(what_is_no_straggler_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
