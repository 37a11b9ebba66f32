/* Tests that what a process sends and receives waits for the end of a partition. */
#include "common/base/clock.h"
#include "common/transport/partition.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PARTITION_NS UINT64_C(50000000)

static void open_pair(int ret_pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ret_pair), 0);
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

static void without_a_partition_bytes_pass(void **state)
{
    (void)state;
    int pair[2];
    char got[4] = "";
    open_pair(pair);
    assert_int_equal(partition_send(pair[0], "abc", 3, 0), 3);
    assert_int_equal(partition_receive(pair[1], got, sizeof(got), 0), 3);
    assert_memory_equal(got, "abc", 3);
    assert_int_equal(partition_receive(pair[1], got, sizeof(got), MSG_DONTWAIT), -1);
    close_pair(pair);
}

static void nothing_leaves_or_comes_before_its_end(void **state)
{
    (void)state;
    int pair[2];
    char got[4] = "";
    open_pair(pair);
    assert_int_equal(send(pair[0], "abc", 3, 0), 3); // it lies in the host's buffers
    uint64_t begin_ns = clock_now_ns();
    partition_begin((double)PARTITION_NS / 1e9);
    partition_begin(0.001); // ends no longer one
    assert_int_equal(partition_receive(pair[1], got, sizeof(got), 0), 3);
    assert_true(clock_now_ns() - begin_ns >= PARTITION_NS);
    assert_memory_equal(got, "abc", 3);
    begin_ns = clock_now_ns();
    partition_begin((double)PARTITION_NS / 1e9);
    assert_int_equal(partition_send(pair[0], "abc", 3, 0), 3);
    assert_true(clock_now_ns() - begin_ns >= PARTITION_NS);
    close_pair(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_partition_bytes_pass),
        cmocka_unit_test(nothing_leaves_or_comes_before_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
