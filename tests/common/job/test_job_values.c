/* Tests of values that have a form of their own: --checkpoint-every. */
#include "common/job/job_choices.h"
#include "common/job/job_values.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void every_kind_comes_back_as_it_was_written(void **state)
{
    (void)state;
    static const char *const texts[] = {"none", "1", "100", "5m", "epoch", "1000000000000000"};
    static const enum checkpoint_kind kinds[] = {CHECKPOINT_NEVER, CHECKPOINT_STEPS,
                                                 CHECKPOINT_STEPS, CHECKPOINT_MINUTES,
                                                 CHECKPOINT_EPOCH, CHECKPOINT_STEPS};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct checkpoint_every every;
        char why[128], text[32];
        assert_true(job_checkpoints_parse(texts[i], &every, why, sizeof(why)));
        assert_int_equal(every.kind, kinds[i]);
        job_checkpoints_format(&every, text, sizeof(text));
        assert_string_equal(text, texts[i]);
    }
}

static void what_is_no_interval_is_refused_with_what_is(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "0", "0m", "m", "-5", "1.5", "5s", "Epoch", "5 ", "99999999999999999999", "100001m"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct checkpoint_every every = {CHECKPOINT_EPOCH, 7};
        char why[128] = "";
        assert_false(job_checkpoints_parse(texts[i], &every, why, sizeof(why)));
        assert_non_null(strstr(why, "5m (at most 100000m), or epoch"));
        assert_non_null(strstr(why, "at most 1000000000000000)"));
        assert_int_equal(every.kind, CHECKPOINT_EPOCH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_as_it_was_written),
        cmocka_unit_test(what_is_no_interval_is_refused_with_what_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
