/* Tests of seals: the next message is taken, and nothing else. */
#include "common/security/seals.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

enum { COORDINATOR = 77, LISTENER = 5 };

static const unsigned char job_key[SEALS_KEY_BYTES] = "the key of the job, of 32 bytes";

/* Two processes, the first of which has connected to the second. */
struct pair {
    struct seals connector, listener;
    struct seal_stream *ours, *theirs; // of the connection, on each side; NULL: not known yet
};

static void open_pair(struct pair *pair)
{
    *pair = (struct pair){0};
    seals_begin(&pair->connector, job_key, COORDINATOR);
    seals_begin(&pair->listener, job_key, COORDINATOR);
    assert_int_equal(seals_connect(&pair->connector, pair->listener.listener, &pair->ours),
                     STATUS_OK);
}

static void close_pair(struct pair *pair)
{
    seals_finish(&pair->connector);
    seals_finish(&pair->listener);
}

static struct sealed sealed_of(const char *header)
{
    return (struct sealed){header, strlen(header), 12};
}

/* The seal of the next message, which counts as sent. */
static void make(struct seals *seals, struct seal_stream *stream, const char *header,
                 unsigned char *ret_seal)
{
    const struct sealed sealed = sealed_of(header);
    assert_int_equal(seals_make(seals, stream, &sealed, ret_seal), STATUS_OK);
    seals_note_sent(stream);
}

/* By a connection of that stream, which is the message's from then on. */
static enum status check(struct seals *seals, struct seal_stream **stream, const char *header,
                         const unsigned char *seal)
{
    const struct sealed sealed = sealed_of(header);
    return seals_check(seals, *stream, &sealed, seal, stream);
}

static void messages_pass_both_ways_in_order(void **state)
{
    (void)state;
    struct pair pair;
    unsigned char seal[SEAL_BYTES];
    open_pair(&pair);
    const struct sealed sealed = sealed_of("too early");
    assert_int_equal(seals_make(&pair.listener, pair.theirs, &sealed, seal), STATUS_UNREACHABLE);
    for (unsigned i = 0; i < 300; i++) {
        make(&pair.connector, pair.ours, "push", seal);
        assert_int_equal(check(&pair.listener, &pair.theirs, "push", seal), STATUS_OK);
        make(&pair.listener, pair.theirs, "params", seal);
        assert_int_equal(check(&pair.connector, &pair.ours, "params", seal), STATUS_OK);
    }
    close_pair(&pair);
}

static void a_message_that_was_not_sent_keeps_its_number(void **state)
{
    (void)state;
    struct pair pair;
    unsigned char seal[SEAL_BYTES];
    const struct sealed sealed = sealed_of("push");
    open_pair(&pair);
    assert_int_equal(seals_make(&pair.connector, pair.ours, &sealed, seal), STATUS_OK);
    make(&pair.connector, pair.ours, "pull", seal);
    assert_int_equal(check(&pair.listener, &pair.theirs, "pull", seal), STATUS_OK);
    close_pair(&pair);
}

static void every_bit_counts(void **state)
{
    (void)state;
    struct pair pair;
    unsigned char seal[SEAL_BYTES];
    open_pair(&pair);
    make(&pair.connector, pair.ours, "push", seal);
    for (unsigned bit = 0; bit < 8 * SEAL_BYTES; bit++) {
        unsigned char other[SEAL_BYTES];
        memcpy(other, seal, SEAL_BYTES);
        other[bit / 8] ^= (unsigned char)(1U << bit % 8);
        assert_int_equal(check(&pair.listener, &pair.theirs, "push", other), STATUS_MALFORMED);
    }
    assert_int_equal(check(&pair.listener, &pair.theirs, "pusH", seal), STATUS_MALFORMED);
    assert_int_equal(check(&pair.listener, &pair.theirs, "pus", seal), STATUS_MALFORMED);
    const struct sealed longer = {"push", 4, 16};
    assert_int_equal(seals_check(&pair.listener, NULL, &longer, seal, &pair.theirs),
                     STATUS_MALFORMED);
    assert_int_equal(pair.listener.stream_count, 0);
    // What failed has taken nothing from what is right.
    assert_int_equal(check(&pair.listener, &pair.theirs, "push", seal), STATUS_OK);
    close_pair(&pair);
}

static void nothing_is_taken_twice_or_out_of_order(void **state)
{
    (void)state;
    struct pair pair;
    unsigned char first[SEAL_BYTES], second[SEAL_BYTES], third[SEAL_BYTES];
    open_pair(&pair);
    make(&pair.connector, pair.ours, "push 1", first);
    make(&pair.connector, pair.ours, "push 2", second);
    make(&pair.connector, pair.ours, "push 3", third);
    assert_int_equal(check(&pair.listener, &pair.theirs, "push 2", second), STATUS_MALFORMED);
    assert_int_equal(check(&pair.listener, &pair.theirs, "push 1", first), STATUS_OK);
    assert_int_equal(check(&pair.listener, &pair.theirs, "push 1", first), STATUS_MALFORMED);
    assert_int_equal(check(&pair.listener, &pair.theirs, "push 3", third), STATUS_MALFORMED);
    assert_int_equal(check(&pair.listener, &pair.theirs, "push 2", second), STATUS_OK);
    assert_int_equal(check(&pair.listener, &pair.theirs, "push 3", third), STATUS_OK);
    // On another connection it is as old.
    struct seal_stream *unknown = NULL;
    assert_int_equal(check(&pair.listener, &unknown, "push 1", first), STATUS_MALFORMED);
    close_pair(&pair);
}

static void what_was_said_to_one_is_no_seal_for_another(void **state)
{
    (void)state;
    struct pair pair, others;
    unsigned char seal[SEAL_BYTES];
    open_pair(&pair);
    open_pair(&others); // of the same job
    make(&pair.connector, pair.ours, "push", seal);
    assert_int_equal(check(&others.listener, &others.theirs, "push", seal), STATUS_MALFORMED);
    // Nor for who made it: neither way round.
    assert_int_equal(check(&pair.connector, &pair.ours, "push", seal), STATUS_MALFORMED);
    struct seal_stream *unknown = NULL;
    assert_int_equal(check(&pair.connector, &unknown, "push", seal), STATUS_MALFORMED);
    close_pair(&pair);
    close_pair(&others);
}

static void a_connection_that_is_made_anew_goes_on(void **state)
{
    (void)state;
    struct pair pair;
    unsigned char seal[SEAL_BYTES];
    open_pair(&pair);
    make(&pair.connector, pair.ours, "push", seal);
    assert_int_equal(check(&pair.listener, &pair.theirs, "push", seal), STATUS_OK);
    make(&pair.connector, pair.ours, "hello", seal);
    struct seal_stream *anew = NULL;
    assert_int_equal(check(&pair.listener, &anew, "hello", seal), STATUS_OK);
    assert_ptr_equal(anew, pair.theirs);
    make(&pair.listener, anew, "params", seal);
    assert_int_equal(check(&pair.connector, &pair.ours, "params", seal), STATUS_OK);
    close_pair(&pair);
}

static void without_the_key_there_is_no_seal(void **state)
{
    (void)state;
    struct pair pair;
    unsigned char other_key[SEALS_KEY_BYTES], seal[SEAL_BYTES];
    struct seals stranger = {0};
    struct seal_stream *stream;
    open_pair(&pair);
    memcpy(other_key, job_key, SEALS_KEY_BYTES);
    other_key[0] ^= 1;
    seals_begin(&stranger, other_key, COORDINATOR);
    assert_int_equal(seals_connect(&stranger, pair.listener.listener, &stream), STATUS_OK);
    make(&stranger, stream, "push", seal);
    assert_int_equal(check(&pair.listener, &pair.theirs, "push", seal), STATUS_MALFORMED);
    close_pair(&pair);
    seals_finish(&stranger);
}

static void only_the_coordinators_messages_go_without(void **state)
{
    (void)state;
    struct seals seals = {0};
    assert_false(seals_apply(&seals, LISTENER)); // not begun
    seals_begin(&seals, job_key, COORDINATOR);
    assert_false(seals_apply(&seals, COORDINATOR));
    assert_true(seals_apply(&seals, LISTENER));
    seals_finish(&seals);
    const unsigned char zeros[SEALS_KEY_BYTES] = {0};
    assert_memory_equal(seals.key, zeros, SEALS_KEY_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_pass_both_ways_in_order),
        cmocka_unit_test(a_message_that_was_not_sent_keeps_its_number),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(nothing_is_taken_twice_or_out_of_order),
        cmocka_unit_test(what_was_said_to_one_is_no_seal_for_another),
        cmocka_unit_test(a_connection_that_is_made_anew_goes_on),
        cmocka_unit_test(without_the_key_there_is_no_seal),
        cmocka_unit_test(only_the_coordinators_messages_go_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
