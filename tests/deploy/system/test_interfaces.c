/* Tests of choosing network interfaces. */
#include "deploy/system/interfaces.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct interfaces sample = {
    .list = {{"lo", "127.0.0.1"},
             {"eth0", "192.168.1.7"},
             {"ib0", "10.20.0.7"},
             {"ib0", "10.21.0.7"}},
    .count = 4,
};

static void the_first_item_that_the_host_has_is_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *wanted, *address;
    } cases[] = {
        {"eth0", "192.168.1.7"},     {"ib0", "10.20.0.7"},
        {"enp3s0,ib0", "10.20.0.7"}, {"10.21.0.0/16", "10.21.0.7"},
        {"10.0.0.0/8", "10.20.0.7"}, {"172.16.0.0/12,192.168.0.0/16", "192.168.1.7"},
        {"0.0.0.0/0", "127.0.0.1"},  {"10.20.0.7/32", "10.20.0.7"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct interface *interface = interfaces_choose(&sample, cases[i].wanted);
        assert_non_null(interface);
        assert_string_equal(interface->address, cases[i].address);
    }
    static const char *const absent[] = {"", "eth", "eth01", "11.0.0.0/8", "wlan0,10.22.0.0/16"};
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        assert_null(interfaces_choose(&sample, absent[i]));
    }
}

static void what_is_neither_a_name_nor_a_network_is_refused(void **state)
{
    (void)state;
    char why[128];
    static const char *const wrong[] = {
        ",",         "eth0,",  "10.0.0.0/33", "10.0.0/8",
        "10.0.0.0/", "eth0/8", "/8",          "a-name-of-more-than-thirty-two-characters"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(interfaces_wanted_is_valid(wrong[i], why, sizeof(why)));
    }
    assert_true(interfaces_wanted_is_valid("", why, sizeof(why)));
    assert_true(interfaces_wanted_is_valid("eth0,10.0.0.0/8", why, sizeof(why)));
}

static void loopback_is_told_from_the_rest(void **state)
{
    (void)state;
    char text[64];
    assert_true(address_is_loopback("127.0.1.1"));
    assert_false(address_is_loopback("128.0.0.1"));
    assert_false(address_is_loopback("::1x"));
    assert_string_equal(interfaces_first(&sample)->name, "eth0");
    assert_string_equal(interfaces_with(&sample, "10.21.0.7")->name, "ib0");
    assert_null(interfaces_with(&sample, "10.21.0.8"));
    interfaces_describe(&sample, text, 30);
    assert_string_equal(text, "lo 127.0.0.1, eth0 192.168.1."); // cut
}

static void this_host_has_loopback_and_a_way_to_it(void **state)
{
    (void)state;
    struct interfaces own;
    char address[INTERFACE_ADDRESS_BYTES];
    assert_int_equal(interfaces_find(&own), STATUS_OK);
    assert_non_null(interfaces_with(&own, "127.0.0.1"));
    assert_int_equal(interfaces_route("127.0.0.1", address), STATUS_OK);
    assert_string_equal(address, "127.0.0.1");
    assert_int_equal(interfaces_route("localhost", address), STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_item_that_the_host_has_is_chosen),
        cmocka_unit_test(what_is_neither_a_name_nor_a_network_is_refused),
        cmocka_unit_test(loopback_is_told_from_the_rest),
        cmocka_unit_test(this_host_has_loopback_and_a_way_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
