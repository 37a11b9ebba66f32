/* What a connection sends next: messages overtake each other until the kernel has them. */
#include "deploy/predict/engine/connections.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on

#define BYTES   100e3
#define BUCKETS 4

enum keys { NO_KEYS, ENCRYPTING, ENCRYPTED };

/* The next packet of a connection; `keys` says whether it is encrypted at once. */
static uint32_t next_of(struct connection *connection, struct packet_store *store, double buffer,
                        enum keys keys)
{
    connections_hold(connection, store, buffer);
    uint32_t next = connections_next(connection, store);
    if (keys == ENCRYPTED && next != PACKETS_NONE) {
        connections_read_going(connection, BYTES);
        connections_hold(connection, store, buffer);
    }
    return next;
}

/* Packets of the buckets 0, 1, 2 and 3 come in this order while the first one goes. Returns the
 * buckets in the order in which they go, as digits. */
static unsigned order_by(double buffer, enum keys keys)
{
    struct packet_store store = {.count = 0};
    struct connection connection = {.is_encrypted = keys != NO_KEYS};
    unsigned order = 0;
    uint32_t going = PACKETS_NONE;
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        const struct packet packet = {.bucket = bucket, .bytes = BYTES};
        uint32_t index = packets_keep(&store, &packet);
        if (index == PACKETS_NONE) {
            fail_msg("no memory");
            return 0; // the analyzer does not know that it ends here
        }
        packets_queue_by_bucket(&store, &connection.waiting, index);
        uint32_t next = next_of(&connection, &store, buffer, keys);
        assert_true((next != PACKETS_NONE) == (bucket == 0)); // the others wait for the first
        going = next != PACKETS_NONE ? next : going;
    }
    while (going != PACKETS_NONE) {
        order = 10 * order + store.list[going].bucket;
        connections_release(&connection, store.list[going].bytes);
        going = next_of(&connection, &store, buffer, keys);
    }
    assert_true(connection.held_count == 0 && connection.held_bytes == 0 && !connection.is_busy);
    assert_true(connection.unread == 0 && connection.unread_bytes == 0);
    packets_finish(&store);
    return order;
}

static unsigned order_with(double buffer)
{
    return order_by(buffer, NO_KEYS);
}

static void the_highest_bucket_goes_next(void **state)
{
    (void)state;
    assert_int_equal(order_with(0), 321); // behind bucket 0
    assert_int_equal(order_with(BYTES), 321);
}

static void nothing_overtakes_what_the_kernel_has(void **state)
{
    (void)state;
    assert_int_equal(order_with(BYTES + 1), 132);
    assert_int_equal(order_with(2 * BYTES + 1), 123);
    assert_int_equal(order_with(1e9), 123);
}

/* What is encrypted counts as sent, so one more is handed over, of any size. */
static void with_keys_one_is_held_behind_the_one_that_goes(void **state)
{
    (void)state;
    assert_int_equal(order_by(1, ENCRYPTING), 321); // it is still read
    assert_int_equal(order_by(1, ENCRYPTED), 132);
    assert_int_equal(order_by(CONNECTIONS_WINDOW_BYTES + BYTES, ENCRYPTED), 132);
    assert_int_equal(order_by(CONNECTIONS_WINDOW_BYTES + BYTES + 1, ENCRYPTED), 123); // so is that
    assert_int_equal(order_by(1e9, ENCRYPTED), 123);
}

/* It has no bytes, so that there is room for it. */
static void a_small_one_goes_behind_what_is_held(void **state)
{
    (void)state;
    struct packet_store store = {.count = 0};
    struct connection connection = {.bytes = 0};
    uint32_t indices[3];
    for (uint32_t i = 0; i < 3; i++) {
        const struct packet packet = {.bucket = i, .bytes = i == 1 ? 0 : BYTES};
        indices[i] = packets_keep(&store, &packet);
    }
    if (store.list == NULL) {
        fail_msg("no memory");
        return; // the analyzer does not know that it ends here
    }
    packets_queue_by_bucket(&store, &connection.waiting, indices[0]);
    connections_hold(&connection, &store, 0);
    assert_int_equal(connections_next(&connection, &store), indices[0]);
    connections_hold_small(&connection, &store, indices[1]);
    packets_queue_by_bucket(&store, &connection.waiting, indices[2]);
    connections_hold(&connection, &store, 0); // its bucket waits behind the one that goes
    connections_release(&connection, BYTES);
    assert_int_equal(connections_next(&connection, &store), indices[1]);
    connections_release(&connection, 0);
    assert_int_equal(connection.held_count, 0);
    connections_hold(&connection, &store, 0);
    assert_int_equal(connections_next(&connection, &store), indices[2]);
    packets_finish(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_bucket_goes_next),
        cmocka_unit_test(nothing_overtakes_what_the_kernel_has),
        cmocka_unit_test(with_keys_one_is_held_behind_the_one_that_goes),
        cmocka_unit_test(a_small_one_goes_behind_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
