/* Tests of which congestion control connections get: the rule, and connections over loopback. */
#include "common/transport/congestion.h"
#include "tests/support/common/tcp_ends.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void only_bbr_on_a_short_way_is_unfit(void **state)
{
    (void)state;
    assert_true(congestion_is_unfit("bbr", 0));
    assert_true(congestion_is_unfit("bbr", CONGESTION_SHORT_US - 1));
    assert_true(congestion_is_unfit("bbr3", 100));
    assert_false(congestion_is_unfit("bbr", CONGESTION_SHORT_US));
    const char *const others[] = {"cubic", "reno", "dctcp", "vegas", ""};
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(congestion_is_unfit(others[i], 100));
    }
}

static bool choose(int descriptor, const char *name)
{
    return setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

static void expect(int descriptor, const char *expected)
{
    char name[32] = {0};
    socklen_t size = sizeof(name) - 1;
    assert_int_equal(getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
    assert_string_equal(name, expected);
}

static void a_connection_with_bbr_gets_cubic_and_others_keep_theirs(void **state)
{
    (void)state;
    int ends[2];
    tcp_ends_open(ends);
    // What a kernel lacks, or keeps to itself, cannot be chosen.
    if (!choose(ends[0], "cubic") || !choose(ends[0], "bbr")) {
        print_message("no bbr and cubic to choose from here\n");
        close(ends[0]);
        close(ends[1]);
        skip();
    }
    assert_true(congestion_fit(ends[0]));
    expect(ends[0], "cubic");
    assert_false(congestion_fit(ends[0]));
    assert_true(choose(ends[1], "reno"));
    assert_false(congestion_fit(ends[1]));
    expect(ends[1], "reno");
    close(ends[0]);
    close(ends[1]);
}

static void what_is_not_of_tcp_is_left_alone(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_false(congestion_fit(ends[0]));
    assert_false(congestion_fit(-1));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_bbr_on_a_short_way_is_unfit),
        cmocka_unit_test(a_connection_with_bbr_gets_cubic_and_others_keep_theirs),
        cmocka_unit_test(what_is_not_of_tcp_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
