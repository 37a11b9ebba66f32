/* Tests of snapshots: how they are cut into pieces, and that fetches put those together again. */
#include "common/channel/fetch.h"
#include "common/channel/snapshot.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define COUNT (2 * SNAPSHOT_PIECE_FLOATS + 5)

static float expected[COUNT], found[COUNT];

static struct snapshot snapshot_of_two(void)
{
    struct snapshot snapshot = {0};
    assert_int_equal(snapshot_add(&snapshot, "params", COUNT + 10, (struct span){10, COUNT}),
                     STATUS_OK);
    assert_int_equal(snapshot_add(&snapshot, "state-1", 3, (struct span){3, 0}), STATUS_OK);
    assert_int_equal(snapshot_add(&snapshot, "rank-1/statistics", 3, (struct span){0, 3}),
                     STATUS_OK);
    assert_int_equal(snapshot_allocate(&snapshot), STATUS_OK);
    assert_int_equal(snapshot.entry_count, 2); // nothing is left out
    for (uint64_t i = 0; i < COUNT; i++) {
        expected[i] = (float)i;
    }
    memcpy(snapshot_values(&snapshot, 0), expected, sizeof(expected));
    memcpy(snapshot_values(&snapshot, 1), expected, 3 * sizeof(float));
    snapshot_rewind(&snapshot, 42);
    return snapshot;
}

static void pieces_cover_every_span_once_and_the_last_says_how_many_there_were(void **state)
{
    (void)state;
    struct snapshot snapshot = snapshot_of_two();
    struct wire_piece piece;
    struct message message;
    uint64_t next = 10, pieces = 0;
    snapshot.credits = 3;
    while (snapshot_next(&snapshot, &piece, &message)) {
        pieces++;
        assert_int_equal(message.kind, MESSAGE_PIECE);
        assert_int_equal(message.step, 42);
        assert_string_equal(piece.vector, "params");
        assert_int_equal(piece.total, COUNT + 10);
        assert_int_equal(message.span.offset, next);
        assert_memory_equal(message.values, expected + (next - 10),
                            message.span.count * sizeof(float));
        next += message.span.count;
    }
    assert_int_equal(pieces, 3);
    assert_int_equal(next, COUNT + 10);
    snapshot.credits = 9;
    assert_true(snapshot_next(&snapshot, &piece, &message));
    assert_string_equal(piece.vector, "rank-1/statistics");
    assert_false(snapshot.is_over);
    assert_true(snapshot_next(&snapshot, &piece, &message));
    assert_string_equal(piece.vector, "");
    assert_int_equal(piece.total, 4);
    assert_null(message.values);
    assert_true(snapshot.is_over);
    assert_false(snapshot_next(&snapshot, &piece, &message));
    snapshot_finish(&snapshot);
}

static void without_a_credit_nothing_is_sent(void **state)
{
    (void)state;
    struct snapshot snapshot = snapshot_of_two();
    struct wire_piece piece;
    struct message message;
    assert_false(snapshot_next(&snapshot, &piece, &message));
    snapshot.credits = 1;
    assert_true(snapshot_next(&snapshot, &piece, &message));
    assert_false(snapshot_next(&snapshot, &piece, &message));
    snapshot_finish(&snapshot);
}

/* The answer of a coordinator that has the vector. */
static struct message answer_to(const struct message *asked, struct wire_piece *piece)
{
    *piece = *asked->piece;
    return (struct message){.kind = MESSAGE_PIECE,
                            .piece = piece,
                            .span = asked->span,
                            .values = expected + asked->span.offset};
}

static void a_fetch_asks_for_a_few_pieces_and_puts_them_together(void **state)
{
    (void)state;
    struct fetch fetch = fetch_of("params", COUNT, (struct span){1, COUNT - 1}, found + 1);
    struct wire_piece asked, piece;
    struct message questions[SNAPSHOT_CREDITS + 1];
    uint32_t count = 0;
    memset(found, 0, sizeof(found));
    while (fetch_next(&fetch, &asked, &questions[count])) {
        count++;
        assert_true(count <= SNAPSHOT_CREDITS);
    }
    assert_int_equal(count, 3);
    for (uint32_t i = 0; i < count; i++) {
        assert_false(fetch_is_over(&fetch));
        const struct message answer = answer_to(&questions[i], &piece);
        assert_int_equal(fetch_take(&fetch, &answer), STATUS_OK);
    }
    assert_true(fetch_is_over(&fetch));
    assert_memory_equal(found + 1, expected + 1, (COUNT - 1) * sizeof(float));
}

static void answers_that_were_not_asked_for_are_malformed_and_what_lacks_is_said(void **state)
{
    (void)state;
    struct fetch fetch = fetch_of("params", COUNT, (struct span){0, COUNT}, found);
    struct wire_piece asked, piece;
    struct message question;
    assert_true(fetch_next(&fetch, &asked, &question));
    struct message answer = answer_to(&question, &piece);
    piece.vector = "known";
    assert_int_equal(fetch_take(&fetch, &answer), STATUS_MALFORMED);
    answer = answer_to(&question, &piece);
    answer.span.count--;
    assert_int_equal(fetch_take(&fetch, &answer), STATUS_MALFORMED);
    answer = answer_to(&question, &piece);
    piece.total = COUNT + 1;
    assert_int_equal(fetch_take(&fetch, &answer), STATUS_INVALID);
    answer = answer_to(&question, &piece);
    answer.values = NULL;
    assert_int_equal(fetch_take(&fetch, &answer), STATUS_INVALID);
    assert_false(fetch_is_over(&fetch));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_cover_every_span_once_and_the_last_says_how_many_there_were),
        cmocka_unit_test(without_a_credit_nothing_is_sent),
        cmocka_unit_test(a_fetch_asks_for_a_few_pieces_and_puts_them_together),
        cmocka_unit_test(answers_that_were_not_asked_for_are_malformed_and_what_lacks_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
