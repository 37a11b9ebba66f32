/* Tests of long texts: cut, joined, and pieces that do not belong together. */
#include "common/channel/long_text.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define PIECE_MAX (LONG_TEXT_PIECE_BYTES - 1) // without the '\0'

/* Cuts a text, and puts it together; returns the number of pieces. */
static size_t check_journey(const char *sent)
{
    char piece[LONG_TEXT_PIECE_BYTES];
    struct long_text text = {0};
    size_t size = strlen(sent), count = 0;
    for (size_t offset = 0; offset < size; count++) {
        size_t cut = long_text_cut(sent, offset, piece);
        assert_int_equal(strlen(piece), cut);
        assert_int_equal(long_text_add(&text, offset, size, piece), STATUS_OK);
        offset += cut;
        assert_int_equal(long_text_whole(&text) != NULL, offset == size);
    }
    assert_string_equal(long_text_whole(&text), sent);
    long_text_finish(&text);
    assert_null(long_text_whole(&text));
    return count;
}

static void a_text_of_any_length_comes_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, PIECE_MAX - 1, PIECE_MAX, PIECE_MAX + 1, 5 * PIECE_MAX + 7};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *text = calloc(sizes[i] + 1, 1);
        for (size_t k = 0; k < sizes[i]; k++) {
            text[k] = (char)('a' + k % 23);
        }
        assert_int_equal(check_journey(text), (sizes[i] + PIECE_MAX - 1) / PIECE_MAX);
        free(text);
    }
}

static void no_character_is_cut(void **state)
{
    (void)state;
    char piece[LONG_TEXT_PIECE_BYTES], text[LONG_TEXT_PIECE_BYTES + 8];
    for (size_t i = 0; i < 4; i++) {
        memset(text, 'x', sizeof(text));
        memcpy(text + PIECE_MAX - i, "\xF0\x9F\x90\x88", 5); // a cat
        assert_int_equal(long_text_cut(text, 0, piece), PIECE_MAX - i);
        assert_int_equal(check_journey(text), 2);
    }
    // What is no UTF-8 is cut somewhere.
    memset(text, 0x80, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(check_journey(text), 2);
}

static void pieces_that_do_not_belong_together_leave_nothing(void **state)
{
    (void)state;
    struct long_text text = {0};
    assert_int_equal(long_text_add(&text, 3, 6, "def"), STATUS_MALFORMED); // the first is missing
    assert_null(long_text_whole(&text));
    static const struct {
        uint64_t offset, size;
        const char *piece;
    } bad[] = {{2, 6, "cdef"}, {4, 6, "ef"}, {3, 7, "def"}, {3, 6, "defg"}, {UINT64_MAX, 6, ""}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(long_text_add(&text, 0, 6, "abc"), STATUS_OK);
        assert_int_equal(long_text_add(&text, bad[i].offset, bad[i].size, bad[i].piece),
                         STATUS_MALFORMED);
        assert_int_equal(long_text_add(&text, 3, 6, "def"), STATUS_MALFORMED);
        assert_null(long_text_whole(&text));
    }
    assert_int_equal(long_text_add(&text, 0, 2, "abc"), STATUS_MALFORMED);
    long_text_finish(&text);
}

static void a_first_piece_begins_anew(void **state)
{
    (void)state;
    struct long_text text = {0};
    assert_int_equal(long_text_add(&text, 0, 6, "abc"), STATUS_OK);
    assert_int_equal(long_text_add(&text, 0, 2, "xy"), STATUS_OK);
    assert_string_equal(long_text_whole(&text), "xy");
    long_text_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_of_any_length_comes_whole),
        cmocka_unit_test(no_character_is_cut),
        cmocka_unit_test(pieces_that_do_not_belong_together_leave_nothing),
        cmocka_unit_test(a_first_piece_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
