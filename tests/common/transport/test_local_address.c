/* Tests of this host's addresses: those on the way somewhere, and the only one. */
#include "common/transport/local_address.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <arpa/inet.h>
#include <string.h>

static void the_way_to_loopback_begins_there(void **state)
{
    (void)state;
    char address[LOCAL_ADDRESS_BYTES];
    assert_int_equal(local_address_toward("127.0.0.1", "5555", address), STATUS_OK);
    assert_string_equal(address, "127.0.0.1");
    assert_int_equal(local_address_toward("localhost", "5555", address), STATUS_OK);
    assert_true(strcmp(address, "127.0.0.1") == 0 || strcmp(address, "::1") == 0);
}

static void the_interface_of_loopback_is_found_by_its_address(void **state)
{
    (void)state;
    char name[LOCAL_ADDRESS_BYTES] = "as it was";
    assert_false(local_address_interface("192.0.2.7", name)); // for documentation alone
    assert_string_equal(name, "as it was");
    assert_true(local_address_interface("127.0.0.1", name));
    assert_string_equal(name, "lo");
}

static void a_host_that_is_none_is_named(void **state)
{
    (void)state;
    char address[LOCAL_ADDRESS_BYTES] = "as it was";
    captured_log_begin();
    enum status status = local_address_toward("no.such.host.invalid", "5555", address);
    const char *said = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(said, "no.such.host.invalid"));
    assert_non_null(strstr(said, "give one with --bind"));
    assert_string_equal(address, "as it was");
}

/* Which of the two it is depends on the machine. */
static void the_only_address_is_found_or_all_are_listed(void **state)
{
    (void)state;
    char address[LOCAL_ADDRESS_BYTES];
    struct in_addr bytes;
    captured_log_begin();
    enum status status = local_address_only(address);
    const char *said = captured_log_end();
    if (status == STATUS_OK) {
        assert_int_equal(inet_pton(AF_INET, address, &bytes), 1);
        assert_string_equal(said, "");
    } else {
        assert_int_equal(status, STATUS_INVALID);
        assert_non_null(strstr(said, "has several addresses"));
        assert_non_null(strstr(said, "), ")); // "10.0.0.7 (eth0), 10.1.0.7 (eth1)"
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_to_loopback_begins_there),
        cmocka_unit_test(the_interface_of_loopback_is_found_by_its_address),
        cmocka_unit_test(a_host_that_is_none_is_named),
        cmocka_unit_test(the_only_address_is_found_or_all_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
