/* Tests of how the figures of a normalisation are read. */
#include "common/plan/normalization.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <string.h>

static enum status parse(const char *text, struct normalization *ret_normalization, char why[256])
{
    why[0] = '\0';
    return normalization_parse(text, ret_normalization, why, 256);
}

static void figures_are_one_for_each_channel(void **state)
{
    (void)state;
    char why[256];
    struct normalization given;
    assert_int_equal(parse("0.5,0,1/0.25,1,10", &given, why), STATUS_OK);
    assert_int_equal(given.kind, NORMALIZATION_GIVEN);
    assert_int_equal(given.channels, 3);
    const float mean[] = {0.5F, 0, 1}, deviation[] = {0.25F, 1, 10};
    assert_memory_equal(given.mean, mean, sizeof(mean));
    assert_memory_equal(given.deviation, deviation, sizeof(deviation));
    assert_int_equal(parse("0.1307/0.3081", &given, why), STATUS_OK);
    assert_int_equal(given.channels, 1);
}

static void three_words_need_no_figures(void **state)
{
    (void)state;
    char why[256];
    struct normalization given;
    assert_int_equal(parse("usual", &given, why), STATUS_OK);
    assert_int_equal(given.kind, NORMALIZATION_USUAL);
    assert_int_equal(parse("dataset", &given, why), STATUS_OK);
    assert_int_equal(given.kind, NORMALIZATION_DATASET);
    assert_int_equal(parse("none", &given, why), STATUS_OK);
    assert_int_equal(given.kind, NORMALIZATION_NONE);
}

static void what_is_wrong_is_refused_with_advice(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "M,M,M/D,D,D"},
        {"imagenet", "M,M,M/D,D,D"},
        {"0.5", "M,M,M/D,D,D"},
        {"0.5,/1", "M,M,M/D,D,D"},
        {"1.5/1", "from 0 to 1"},
        {"-0.5/1", "from 0 to 1"},
        {"0.5,0.5,0.5,0.5/1,1,1,1", "M,M,M/D,D,D"},
        {"0.5.5/1", "from 0 to 1"},
        {"0.5/", "a deviation for each mean (1 here)"},
        {"0.5/0", "from 0.0001 to 10"},
        {"0.5/11", "from 0.0001 to 10"},
        {"0.5/1/1", "a deviation for each mean"},
        {"0.5/1,1", "a deviation for each mean (1 here)"},
        {"0.5,0.5,0.5/1,1", "a deviation for each mean (3 here)"},
        {"0.5/nan", "from 0.0001 to 10"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char why[256];
        struct normalization given;
        if (parse(cases[i].text, &given, why) != STATUS_INVALID ||
            strstr(why, cases[i].why) == NULL) {
            fail_msg("'%s': %s", cases[i].text, why);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_one_for_each_channel),
        cmocka_unit_test(three_words_need_no_figures),
        cmocka_unit_test(what_is_wrong_is_refused_with_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
