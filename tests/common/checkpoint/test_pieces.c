/* Tests of pieces: any order, no overlap, gaps by place. */
#include "common/checkpoint/pieces.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <string.h>

#define BYTES 24

/* Every order of these spans ends in one of all bytes. */
static void add_in_all_orders(const struct piece *spans, uint32_t *order, uint32_t count,
                              uint32_t fixed)
{
    if (fixed == count) {
        struct pieces pieces = {0};
        for (uint32_t i = 0; i < count; i++) {
            const struct piece *span = &spans[order[i]];
            assert_int_equal(pieces_add(&pieces, span->begin, span->end), STATUS_OK);
        }
        assert_int_equal(pieces.count, 1);
        assert_int_equal(pieces_first_gap(&pieces), BYTES);
        assert_int_equal(pieces_end(&pieces), BYTES);
        pieces_finish(&pieces);
        return;
    }
    for (uint32_t i = fixed; i < count; i++) {
        uint32_t chosen = order[i];
        order[i] = order[fixed];
        order[fixed] = chosen;
        add_in_all_orders(spans, order, count, fixed + 1);
        order[fixed] = order[i];
        order[i] = chosen;
    }
}

static void pieces_may_come_in_any_order(void **state)
{
    (void)state;
    static const struct piece spans[] = {{0, 1}, {1, 5}, {5, 6}, {6, 12}, {12, 23}, {23, BYTES}};
    uint32_t order[] = {0, 1, 2, 3, 4, 5};
    add_in_all_orders(spans, order, 6, 0);
}

/* Against a map of bytes. */
static void an_overlap_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 2000; seed++) {
        struct pieces pieces = {0};
        bool is_there[BYTES] = {false};
        uint32_t value = seed * 2654435761U + 1;
        for (uint32_t i = 0; i < 30; i++) {
            value = value * 1664525U + 1013904223U;
            uint64_t begin = (value >> 8) % BYTES,
                     end = begin + 1 + (value >> 20) % (BYTES - begin);
            bool is_free = memchr(is_there + begin, true, end - begin) == NULL;
            assert_int_equal(pieces_add(&pieces, begin, end),
                             is_free ? STATUS_OK : STATUS_MALFORMED);
            if (is_free) {
                memset(is_there + begin, true, end - begin);
            }
            const bool *gap = memchr(is_there, false, BYTES);
            assert_int_equal(pieces_first_gap(&pieces), gap != NULL ? gap - is_there : BYTES);
            const bool *last = memrchr(is_there, true, BYTES);
            assert_int_equal(pieces_end(&pieces), last - is_there + 1);
        }
        pieces_finish(&pieces);
    }
}

static void too_many_gaps_are_refused(void **state)
{
    (void)state;
    const uint64_t last = UINT64_C(2) * PIECES_MAX;
    struct pieces pieces = {0};
    for (uint64_t i = 0; i < PIECES_MAX; i++) {
        assert_int_equal(pieces_add(&pieces, 2 * i, 2 * i + 1), STATUS_OK);
    }
    assert_int_equal(pieces_add(&pieces, last, last + 1), STATUS_MALFORMED);
    assert_int_equal(pieces_add(&pieces, 1, 2), STATUS_OK); // closes one
    assert_int_equal(pieces_add(&pieces, last, last + 1), STATUS_OK);
    pieces_finish(&pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_may_come_in_any_order),
        cmocka_unit_test(an_overlap_is_refused_and_changes_nothing),
        cmocka_unit_test(too_many_gaps_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
