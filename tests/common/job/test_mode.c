/* Tests of modes as text, and of what sets one apart from another. */
#include "common/job/mode.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void every_mode_comes_back_from_its_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"local",    "ring",           "ps-sync", "ps-ssp:0",
                                        "ps-ssp:4", "ps-ssp:1000000", "ps-async"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct mode mode;
        assert_int_equal(mode_parse(texts[i], &mode), STATUS_OK);
        assert_string_equal(mode_text(mode).text, texts[i]);
    }
    struct mode mode;
    assert_int_equal(mode_parse("ps-ssp:007", &mode), STATUS_OK);
    assert_int_equal(mode.slack_steps, 7);
    assert_string_equal(mode_text(mode).text, "ps-ssp:7");
}

static void what_is_no_mode_is_refused_and_writes_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"",          "ps",        "ps-sync ",  "PS-SYNC",
                                        "ps-syncx",  "ps-ssp",    "ps-ssp:",   "ps-ssp:x",
                                        "ps-ssp:S",  "ps-ssp:1x", "ps-ssp:-1", "ps-ssp:1000001",
                                        "ps-async:1"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct mode mode = {.kind = MODE_RING, .slack_steps = 7};
        assert_int_equal(mode_parse(texts[i], &mode), STATUS_INVALID);
        assert_true(mode.kind == MODE_RING && mode.slack_steps == 7);
    }
}

static void modes_with_servers_update_on_push_or_when_all_have_pushed(void **state)
{
    (void)state;
    assert_false(mode_has_servers(MODE_LOCAL) || mode_has_servers(MODE_RING));
    assert_true(mode_has_servers(MODE_PS_SYNC) && mode_has_servers(MODE_PS_SSP) &&
                mode_has_servers(MODE_PS_ASYNC));
    assert_true(mode_updates_on_push(MODE_PS_SSP) && mode_updates_on_push(MODE_PS_ASYNC));
    assert_false(mode_updates_on_push(MODE_LOCAL) || mode_updates_on_push(MODE_RING) ||
                 mode_updates_on_push(MODE_PS_SYNC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_comes_back_from_its_text),
        cmocka_unit_test(what_is_no_mode_is_refused_and_writes_nothing),
        cmocka_unit_test(modes_with_servers_update_on_push_or_when_all_have_pushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
