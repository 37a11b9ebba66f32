/* Tests of --switch as text. */
#include "common/job/switches.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void rules_are_read_in_their_order(void **state)
{
    (void)state;
    struct switch_rules rules;
    char why[256];
    assert_int_equal(switch_parse("epoch:3=ps-ssp:4;step:2000=ring", &rules, why, sizeof(why)),
                     STATUS_OK);
    assert_int_equal(rules.count, 2);
    assert_true(rules.rules[0].is_epoch && !rules.rules[1].is_epoch);
    assert_true(rules.rules[0].at == 3 && rules.rules[1].at == 2000);
    assert_string_equal(mode_text(rules.rules[0].mode).text, "ps-ssp:4");
    assert_string_equal(mode_text(rules.rules[1].mode).text, "ring");
}

static void what_is_no_switch_is_refused_with_what_would_be_right(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"3=ring", "epoch:3=ps-async"},
        {"epoch:=ring", "epoch:3=ps-async"},
        {"epoch:3", "epoch:3=ps-async"},
        {"epoch:3=", "epoch:3=ps-async"},
        {"step:x=ring", "epoch:3=ps-async"},
        {"step:-1=ring", "epoch:3=ps-async"},
        {"step:99999999999999999999=ring", "epoch:3=ps-async"},
        {"step:3=a-name-that-is-longer-than-any-mode-there-is", "ps-ssp:S or ps-async"},
        {"epoch:1=rign", "ps-ssp:S or ps-async"},
        {"epoch:1=ps-ssp", "ps-ssp:S or ps-async"},
        {"epoch:1=local", "ps-ssp:S or ps-async"},
        {"epoch:1=ring;;", "epoch:3=ps-async"},
        {"step:0=ring", "that is --mode"},
    };
    struct switch_rules rules = {.count = 7};
    char why[256];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(switch_parse(cases[i][0], &rules, why, sizeof(why)), STATUS_INVALID);
        if (strstr(why, cases[i][1]) == NULL) {
            fail_msg("'%s' is refused with: %s", cases[i][0], why);
        }
        assert_int_equal(rules.count, 7);
    }
    char many[(SWITCHES_MAX + 1) * 16] = "";
    for (size_t i = 0; i < (SWITCHES_MAX + 1); i++) {
        size_t used = strlen(many);
        snprintf(many + used, sizeof(many) - used, "%sstep:%zu=ring", i > 0 ? ";" : "", i + 1);
    }
    assert_int_equal(switch_parse(many, &rules, why, sizeof(why)), STATUS_INVALID);
    assert_int_equal(switch_parse("none", &rules, why, sizeof(why)), STATUS_OK);
    assert_int_equal(rules.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read_in_their_order),
        cmocka_unit_test(what_is_no_switch_is_refused_with_what_would_be_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
