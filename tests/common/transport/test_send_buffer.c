/* Tests of fitting send buffers: the size by the formula, and connections over loopback. */
#include "common/transport/send_buffer.h"
#include "tests/support/common/tcp_ends.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <sys/socket.h>
#include <unistd.h>

static void it_holds_what_is_on_its_way_and_half_a_millisecond_more(void **state)
{
    (void)state;
    // 1 Gbit/s and 100 us; 10 Gbit/s and the same; 1 Gbit/s and 10 ms.
    assert_int_equal(send_buffer_bytes(125000000, 100, 1448), 75000);
    assert_int_equal(send_buffer_bytes(1250000000, 100, 1448), 750000);
    assert_int_equal(send_buffer_bytes(125000000, 10000, 1448), 1312500);
}

static void it_is_neither_too_small_nor_too_large(void **state)
{
    (void)state;
    assert_int_equal(send_buffer_bytes(0, 0, 0), SEND_BUFFER_MIN);
    assert_int_equal(send_buffer_bytes(1000000, 100, 1448), SEND_BUFFER_MIN);
    assert_int_equal(send_buffer_bytes(UINT64_MAX, UINT32_MAX, UINT32_MAX), SEND_BUFFER_MAX);
}

static void it_always_holds_several_segments(void **state)
{
    (void)state;
    assert_int_equal(send_buffer_bytes(1000000, 100, 65483), 4 * 65483); // of loopback
    assert_int_equal(send_buffer_bytes(1000000, 100, 8948), 4 * 8948);
    assert_int_equal(send_buffer_bytes(0, 0, UINT32_MAX), SEND_BUFFER_MAX);
}

/* Of a connection over a path of 2 ms, whose rate is right for 70,000 bytes. */
static int grown(int bytes, uint64_t busy_us, uint64_t held_us)
{
    const struct send_buffer_past past = {
        .bytes = bytes, .rtt_us = 2000, .busy_us = busy_us, .held_us = held_us};
    return send_buffer_grow(70000, &past);
}

static void a_buffer_that_has_held_its_connection_back_grows_up_to_its_first_size(void **state)
{
    (void)state;
    assert_int_equal(grown(70000, 16000, 1001), 140000);
    assert_int_equal(grown(300000, 16000, 1001), SEND_BUFFER_START);
    assert_int_equal(grown(SEND_BUFFER_START, 16000, 1001), SEND_BUFFER_START);
    assert_int_equal(grown(20000, 16000, 1001), 70000);  // its path's is more
    assert_int_equal(grown(140000, 16000, 1000), 70000); // hardly held back
    assert_int_equal(grown(140000, 0, 0), 70000);        // not said
    assert_int_equal(grown(INT32_MAX, UINT64_MAX, UINT64_MAX), SEND_BUFFER_START);
}

static void on_a_short_path_a_buffer_that_holds_back_stays_small(void **state)
{
    (void)state;
    const struct send_buffer_past past = {
        .bytes = 70000, .rtt_us = 60, .busy_us = 16000, .held_us = 8000};
    assert_int_equal(send_buffer_grow(70000, &past), 70000);
}

static int buffer_of(int descriptor)
{
    int bytes;
    socklen_t size = sizeof(bytes);
    assert_int_equal(getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, &size), 0);
    return bytes;
}

/* More than both ends hold at once: there is always something left to be sent, so that the rate is
 * that of the way, not of the sender. */
static void send_much(const int ends[2])
{
    static char bytes[1 << 16];
    for (int i = 0; i < 512; i++) {
        while (send(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
        }
        assert_true(recv(ends[1], bytes, sizeof(bytes), 0) > 0);
    }
}

static void a_connection_that_was_busy_gets_a_buffer_of_its_own_size(void **state)
{
    (void)state;
    int ends[2];
    tcp_ends_open(ends);
    send_much(ends);
    if (!send_buffer_fit(ends[0])) {
        skip(); // a kernel that does not say at what rate it delivers
    }
    // Linux doubles what it is told. A segment of loopback has nearly 64 KiB.
    assert_in_range(buffer_of(ends[0]), 2 * 4 * 60000, 2 * SEND_BUFFER_MAX);
    // A buffer that was set no longer grows by itself.
    int before = buffer_of(ends[0]);
    send_much(ends);
    assert_int_equal(buffer_of(ends[0]), before);
    close(ends[0]);
    close(ends[1]);
}

static void a_connection_that_has_sent_nothing_is_left_alone(void **state)
{
    (void)state;
    int ends[2];
    tcp_ends_open(ends);
    int before = buffer_of(ends[0]);
    assert_false(send_buffer_fit(ends[0]));
    assert_int_equal(buffer_of(ends[0]), before);
    close(ends[0]);
    close(ends[1]);
}

static void a_connection_is_fitted_to_what_others_have_measured_of_its_way(void **state)
{
    (void)state;
    int ends[2];
    tcp_ends_open(ends);
    // Nothing was sent on it; a segment of loopback has nearly 64 KiB, and Linux allows so much.
    assert_true(send_buffer_fit_to(ends[0], 1000000, 100));
    int least = buffer_of(ends[0]);
    assert_in_range(least, 2 * SEND_BUFFER_MIN, 2 * 4 * 65536);
    assert_true(send_buffer_fit_to(ends[0], UINT64_MAX, 100));
    assert_in_range(buffer_of(ends[0]), least, 2 * SEND_BUFFER_MAX);
    close(ends[0]);
    close(ends[1]);
}

static void what_is_not_of_tcp_is_left_alone(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    int before = buffer_of(ends[0]);
    assert_false(send_buffer_fit(ends[0]));
    assert_int_equal(buffer_of(ends[0]), before);
    close(ends[0]);
    close(ends[1]);
    assert_false(send_buffer_fit(ends[0])); // closed
    assert_false(send_buffer_fit(-1));
    assert_false(send_buffer_fit_to(-1, 1000000, 100));
    assert_int_equal(pipe(ends), 0);
    assert_false(send_buffer_fit(ends[1]));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_what_is_on_its_way_and_half_a_millisecond_more),
        cmocka_unit_test(it_is_neither_too_small_nor_too_large),
        cmocka_unit_test(it_always_holds_several_segments),
        cmocka_unit_test(a_buffer_that_has_held_its_connection_back_grows_up_to_its_first_size),
        cmocka_unit_test(on_a_short_path_a_buffer_that_holds_back_stays_small),
        cmocka_unit_test(a_connection_that_was_busy_gets_a_buffer_of_its_own_size),
        cmocka_unit_test(a_connection_that_has_sent_nothing_is_left_alone),
        cmocka_unit_test(a_connection_is_fitted_to_what_others_have_measured_of_its_way),
        cmocka_unit_test(what_is_not_of_tcp_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
