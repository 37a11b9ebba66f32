/* Tests of ranges of ports: read, chosen, and listened in. */
#include "common/transport/endpoints.h"
#include "common/transport/port_range.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/insecure.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_range_is_two_ports_in_order(void **state)
{
    (void)state;
    struct port_range range;
    char why[128];
    assert_true(port_range_parse("40000-40100", &range));
    assert_int_equal(range.first, 40000);
    assert_int_equal(range.last, 40100);
    assert_true(port_range_parse("7-7", &range));
    static const char *const wrong[] = {"40000",   "-",    "1-",   "-1",    "0-5", "5-4",
                                        "1-65536", "1 -2", "+1-2", "1-2-3", "a-b", "40000-4000x"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(port_range_parse(wrong[i], &range));
        assert_false(port_range_is_valid(wrong[i], why, sizeof(why)));
        assert_non_null(strstr(why, "FIRST-LAST"));
    }
    assert_true(port_range_is_valid("", why, sizeof(why)));
}

static void a_port_wins_over_a_range_and_a_range_over_any(void **state)
{
    (void)state;
    char ports[PORT_RANGE_BYTES];
    port_range_choose(5555, "1-2", ports);
    assert_string_equal(ports, "5555");
    port_range_choose(0, "65000-65535", ports);
    assert_string_equal(ports, "65000-65535");
    port_range_choose(0, "", ports);
    assert_string_equal(ports, "*");
}

static void each_port_of_a_range_is_picked_once(void **state)
{
    (void)state;
    char one[64];
    assert_true(port_range_pick("tcp://h:7-8", 0, one, sizeof(one)));
    assert_string_equal(one, "tcp://h:7");
    assert_true(port_range_pick("tcp://h:7-8", 1, one, sizeof(one)));
    assert_string_equal(one, "tcp://h:8");
    assert_false(port_range_pick("tcp://h:7-8", 2, one, sizeof(one)));
    assert_true(port_range_pick("ipc://@a-b", 0, one, sizeof(one)));
    assert_string_equal(one, "ipc://@a-b");
    assert_false(port_range_pick("tcp://h:*", 1, one, sizeof(one)));
}

/* A port that was free a moment ago, so that the range below is of this test alone. */
static unsigned free_port(void)
{
    struct transport *transport;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(transport_create(&transport), STATUS_OK);
    assert_int_equal(transport_secure(transport, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind(transport, "tcp://127.0.0.1:*", endpoint), STATUS_OK);
    transport_destroy(transport, 0);
    return (unsigned)strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
}

static void sockets_take_the_ports_of_a_range_and_say_when_it_is_used_up(void **state)
{
    (void)state;
    struct transport *transports[2];
    char range[32], place[ENDPOINTS_PLACE_BYTES], end[32];
    unsigned port = free_port();
    snprintf(range, sizeof(range), "%u-%u", port, port);
    snprintf(end, sizeof(end), "tcp://127.0.0.1:%u", port);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(transport_create(&transports[i]), STATUS_OK);
        assert_int_equal(transport_secure(transports[i], &test_insecure), STATUS_OK);
    }
    const struct endpoints_wish wish = {.address = "127.0.0.1", .port_range = range};
    assert_int_equal(endpoints_bind(transports[0], TRANSPORT_TCP, &wish, place), STATUS_OK);
    assert_non_null(strstr(place, end));
    captured_log_begin();
    enum status status = endpoints_bind(transports[1], TRANSPORT_TCP, &wish, place);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(log, range));
    assert_non_null(strstr(log, "--port-range"));
    for (unsigned i = 0; i < 2; i++) {
        transport_destroy(transports[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_two_ports_in_order),
        cmocka_unit_test(a_port_wins_over_a_range_and_a_range_over_any),
        cmocka_unit_test(each_port_of_a_range_is_picked_once),
        cmocka_unit_test(sockets_take_the_ports_of_a_range_and_say_when_it_is_used_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
