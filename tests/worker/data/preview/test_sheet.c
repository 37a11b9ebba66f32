/* Tests of sheets: where tiles lie, and what bytes pixels become. */
#include "worker/data/preview/sheet.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define ROWS     2
#define COLUMNS  3
#define CHANNELS 3
#define PIXELS   (CHANNELS * ROWS * COLUMNS)

static const struct sheet_tones tones = {{0.5f, 0.25f, 2}, {-1, 0, 3}};

static uint8_t byte_of(uint32_t tile, uint32_t channel, uint32_t row, uint32_t column)
{
    return (uint8_t)(tile * 3 + channel * 50 + row * 7 + column);
}

/* Pixels of a tile whose bytes are byte_of. */
static void put(struct sheet *sheet, uint32_t tile)
{
    float pixels[PIXELS], *at = pixels;
    for (uint32_t c = 0; c < CHANNELS; c++) {
        for (uint32_t row = 0; row < ROWS; row++) {
            for (uint32_t column = 0; column < COLUMNS; column++) {
                *at++ = (float)byte_of(tile, c, row, column) * tones.scale[c] + tones.shift[c];
            }
        }
    }
    sheet_put(sheet, tile, pixels, &tones);
}

/* What a pixel of a sheet has to be, from the definition: the tile that it lies on, if on any. */
static uint8_t expected(uint32_t x, uint32_t y, uint32_t channel, uint32_t zoom, uint32_t tiles)
{
    uint32_t width = COLUMNS * zoom + SHEET_GAP, height = ROWS * zoom + SHEET_GAP;
    if (x % width < SHEET_GAP || y % height < SHEET_GAP) {
        return SHEET_WHITE;
    }
    uint32_t tile = y / height * SHEET_ACROSS + x / width;
    return tile >= tiles ? SHEET_WHITE
                         : byte_of(tile, channel, (y % height - SHEET_GAP) / zoom,
                                   (x % width - SHEET_GAP) / zoom);
}

static void check_layout(uint32_t zoom, uint32_t tiles)
{
    struct sheet sheet;
    assert_int_equal(sheet_init(&sheet, CHANNELS, ROWS, COLUMNS, zoom), STATUS_OK);
    assert_int_equal(sheet.width, SHEET_ACROSS * (COLUMNS * zoom + SHEET_GAP) + SHEET_GAP);
    assert_int_equal(sheet.height, SHEET_ACROSS * (ROWS * zoom + SHEET_GAP) + SHEET_GAP);
    for (uint32_t tile = 0; tile < tiles; tile++) {
        put(&sheet, tile);
    }
    for (uint32_t y = 0; y < sheet.height; y++) {
        for (uint32_t x = 0; x < sheet.width; x++) {
            for (uint32_t c = 0; c < CHANNELS; c++) {
                assert_int_equal(sheet.pixels[((size_t)y * sheet.width + x) * CHANNELS + c],
                                 expected(x, y, c, zoom, tiles));
            }
        }
    }
    sheet_finish(&sheet);
}

static void tiles_lie_row_by_row_between_white_gaps(void **state)
{
    (void)state;
    check_layout(1, SHEET_TILES);
    check_layout(1, 11);
    check_layout(3, SHEET_TILES);
    check_layout(3, 1);
}

static void every_byte_comes_back_of_the_pixel_made_of_it(void **state)
{
    (void)state;
    static const float deviations[] = {0.2f, 0.2470f, 0.3081f, 1, 0.0001f, 10};
    struct sheet sheet;
    assert_int_equal(sheet_init(&sheet, 1, 16, 16, 1), STATUS_OK);
    for (size_t i = 0; i < sizeof(deviations) / sizeof(deviations[0]); i++) {
        const struct sheet_tones own = {{1 / (255 * deviations[i])}, {-0.4822f / deviations[i]}};
        float pixels[256];
        for (int byte = 0; byte < 256; byte++) {
            pixels[byte] = (float)byte * own.scale[0] + own.shift[0];
        }
        sheet_put(&sheet, 0, pixels, &own);
        for (size_t byte = 0; byte < 256; byte++) {
            size_t place = (SHEET_GAP + byte / 16) * sheet.width + SHEET_GAP + byte % 16;
            assert_int_equal(sheet.pixels[place], byte);
        }
    }
    sheet_finish(&sheet);
}

static void what_is_beyond_black_and_white_is_that(void **state)
{
    (void)state;
    static const struct {
        float pixel;
        uint8_t byte;
    } cases[] = {{-1000, 0}, {-0.6f, 0},      {0.4f, 0},    {0.6f, 1},      {254.4f, 254},
                 {300, 255}, {INFINITY, 255}, {1e30f, 255}, {-INFINITY, 0}, {NAN, 0}};
    const struct sheet_tones plain = {{1}, {0}};
    struct sheet sheet;
    assert_int_equal(sheet_init(&sheet, 1, 1, 1, 1), STATUS_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sheet_put(&sheet, 0, &cases[i].pixel, &plain);
        assert_int_equal(sheet.pixels[SHEET_GAP * sheet.width + SHEET_GAP], cases[i].byte);
    }
    sheet_finish(&sheet);
}

static void the_zoom_follows_from_the_size_unless_it_is_given(void **state)
{
    (void)state;
    static const struct {
        uint32_t rows, columns, given, zoom;
    } cases[] = {{28, 28, 0, 4},   {32, 32, 0, 4},   {128, 128, 0, 1},
                 {129, 129, 0, 1}, {224, 224, 0, 1}, {1, 1, 0, 128},
                 {20, 64, 0, 2},   {28, 28, 2, 2},   {1024, 1024, 0, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sheet sheet;
        assert_int_equal(sheet_init(&sheet, 1, cases[i].rows, cases[i].columns, cases[i].given),
                         STATUS_OK);
        assert_int_equal(sheet.zoom, cases[i].zoom);
        sheet_finish(&sheet);
    }
}

static void a_sheet_too_large_is_refused_with_its_size(void **state)
{
    (void)state;
    struct sheet sheet;
    assert_int_equal(sheet_init(&sheet, 3, 1024, 100, 2), STATUS_INVALID);
    assert_int_equal(sheet.height, 8 * (2048 + SHEET_GAP) + SHEET_GAP);
    assert_int_equal(sheet.width, 8 * (200 + SHEET_GAP) + SHEET_GAP);
    sheet_finish(&sheet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_lie_row_by_row_between_white_gaps),
        cmocka_unit_test(every_byte_comes_back_of_the_pixel_made_of_it),
        cmocka_unit_test(what_is_beyond_black_and_white_is_that),
        cmocka_unit_test(the_zoom_follows_from_the_size_unless_it_is_given),
        cmocka_unit_test(a_sheet_too_large_is_refused_with_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
