/* Tests of who may see the live page. */
#include "common/live/live_request.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void a_token_is_the_whole_token(void **state)
{
    const char token[] = "0123456789abcdef0123456789abcdef";
    (void)state;
    assert_true(live_token_is(token, "0123456789abcdef0123456789abcdef"));
    assert_false(live_token_is(token, "0123456789abcdef0123456789abcdee"));
    assert_false(live_token_is(token, "0123456789abcdef0123456789abcde"));
    assert_false(live_token_is(token, "0123456789abcdef0123456789abcdef0"));
    assert_false(live_token_is(token, ""));
    assert_false(live_token_is(token, NULL));
}

static void a_header_with_a_token_is_a_bearer(void **state)
{
    (void)state;
    assert_string_equal(live_token_of_header("Bearer abc"), "abc");
    assert_string_equal(live_token_of_header("bearer abc"), "abc");
    assert_null(live_token_of_header("Basic abc"));
    assert_null(live_token_of_header("Bearer"));
    assert_null(live_token_of_header(NULL));
}

static void only_addresses_and_own_names_are_hosts(void **state)
{
    static const char *const ours[] = {"127.0.0.1",   "127.0.0.1:80",   "10.1.2.3:65535",
                                       "[::1]",       "[fe80::1]:8080", "localhost",
                                       "LocalHost:1", "node7:80"};
    static const char *const others[] = {"",
                                         "evil.example",
                                         "node7.evil.example",
                                         "127.0.0.1.evil.example",
                                         "[::1",
                                         "[::1]x",
                                         "[]",
                                         "localhost:",
                                         "localhost:99999",
                                         "localhost:8a",
                                         "127.0.0.1@",
                                         "[evil]",
                                         ":80",
                                         "node77"};
    (void)state;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (!live_host_is_ours(ours[i], "node7")) {
            fail_msg("%s is refused", ours[i]);
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (live_host_is_ours(others[i], "node7")) {
            fail_msg("'%s' is taken", others[i]);
        }
    }
    assert_false(live_host_is_ours(NULL, "node7"));
    assert_false(live_host_is_ours("", ""));
}

static void a_port_alone_is_on_the_loopback_interface(void **state)
{
    char address[LIVE_ADDRESS_BYTES], why[128];
    uint32_t port;
    (void)state;
    assert_true(live_read_address("0", address, &port, why, sizeof(why)));
    assert_string_equal(address, "127.0.0.1");
    assert_int_equal(port, 0);
    assert_true(live_read_address("0.0.0.0:8080", address, &port, why, sizeof(why)));
    assert_string_equal(address, "0.0.0.0");
    assert_int_equal(port, 8080);
    assert_true(live_read_address("[::1]:8080", address, &port, why, sizeof(why)));
    assert_string_equal(address, "::1");
}

static void what_is_no_address_is_refused(void **state)
{
    static const char *const texts[] = {"",   "70000",    "-1",      "x",      ":80", "host:80",
                                        "::", "1.2.3.4:", "[::1:80", "[]x:80", "1 ",  "80:x"};
    char address[LIVE_ADDRESS_BYTES], why[128];
    uint32_t port;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (live_read_address(texts[i], address, &port, why, sizeof(why))) {
            fail_msg("'%s' is taken", texts[i]);
        }
        assert_non_null(strstr(why, "ADDRESS:PORT"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_the_whole_token),
        cmocka_unit_test(a_header_with_a_token_is_a_bearer),
        cmocka_unit_test(only_addresses_and_own_names_are_hosts),
        cmocka_unit_test(a_port_alone_is_on_the_loopback_interface),
        cmocka_unit_test(what_is_no_address_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
