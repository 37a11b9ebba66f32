/* Tests of scaling: against values that can be worked out by hand. */
#include "worker/data/images/square.h"
#include "worker/data/images/square_loops.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

static void scale(const uint8_t *pixels, uint32_t width, uint32_t height, uint32_t size,
                  uint32_t orientation, uint8_t *ret_pixels)
{
    struct square *square;
    struct square_source source = {
        .pixels = pixels, .width = width, .height = height, .orientation = orientation};
    assert_int_equal(square_create(size, &square), STATUS_OK);
    assert_int_equal(square_make(square, &source, ret_pixels), STATUS_OK);
    square_destroy(square);
}

static void an_image_of_the_size_stays_as_it_is(void **state)
{
    (void)state;
    uint8_t pixels[5 * 5 * 3], result[3 * 25];
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = (uint8_t)(i * 37);
    }
    scale(pixels, 5, 5, 5, 1, result);
    for (size_t i = 0; i < 25; i++) {
        for (size_t c = 0; c < 3; c++) {
            assert_int_equal(result[c * 25 + i], pixels[3 * i + c]);
        }
    }
}

static void the_middle_of_the_long_side_is_kept(void **state)
{
    (void)state;
    uint8_t wide[2 * 8 * 3] = {0}, tall[8 * 2 * 3] = {0}, result[3 * 4];
    for (size_t row = 0; row < 2; row++) {
        for (size_t column = 0; column < 8; column++) {
            wide[3 * (8 * row + column)] = (uint8_t)(10 * column);
            tall[3 * (2 * column + row)] = (uint8_t)(10 * column);
        }
    }
    scale(wide, 8, 2, 2, 1, result);
    assert_int_equal(result[0], 30);
    assert_int_equal(result[1], 40);
    assert_int_equal(result[2], 30);
    scale(tall, 2, 8, 2, 1, result);
    assert_int_equal(result[0], 30);
    assert_int_equal(result[1], 30);
    assert_int_equal(result[2], 40);
}

/* A linear ramp is its own picture at any scale, but for its ends. */
static void a_ramp_stays_a_ramp(void **state)
{
    (void)state;
    enum { SIDE = 96 };
    static const uint32_t sizes[] = {12, 31, 48, 95, 150};
    uint8_t *pixels = calloc((size_t)SIDE * SIDE, 3);
    uint8_t *result = calloc((size_t)150 * 150, 3);
    assert_non_null(pixels);
    assert_non_null(result);
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        pixels[3 * i] = (uint8_t)(2 * (i % SIDE));
        pixels[3 * i + 1] = (uint8_t)(2 * (i / SIDE));
        pixels[3 * i + 2] = 77;
    }
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        uint32_t size = sizes[k];
        double step = (double)SIDE / size;
        scale(pixels, SIDE, SIDE, size, 1, result);
        for (uint32_t i = 0; i < size; i++) {
            double expected = 2 * ((i + 0.5) * step - 0.5);
            if (expected < 2 * step || expected > 2 * (SIDE - 1 - step)) {
                continue;
            }
            size_t middle = size / 2;
            assert_in_range(result[middle * size + i] + 1, (int)expected, (int)(expected + 2.5));
            assert_in_range(result[size * size + i * size + middle] + 1, (int)expected,
                            (int)(expected + 2.5));
            assert_int_equal(result[2 * size * size + i * size + i], 77);
        }
    }
    free(pixels);
    free(result);
}

/* One column in four is bright. Each pixel of the result stands for four columns, over twice as
 * many: those at distances of 1.5 and 2.5 have 0.625 and 0.375 of a weight, of 4 in all. */
static void nothing_is_skipped_where_an_image_shrinks(void **state)
{
    (void)state;
    uint8_t pixels[32 * 32 * 3] = {0}, result[3 * 64];
    for (size_t i = 0; i < (size_t)32 * 32; i++) {
        pixels[3 * i] = i % 4 == 0 ? 252 : 0;
    }
    scale(pixels, 32, 32, 8, 1, result);
    for (size_t i = 0; i < 64; i++) {
        if (i % 8 != 0 && i % 8 != 7) {
            assert_in_range(result[i], 62, 64);
        }
    }
}

/* What Pillow 13.0.0 makes of the same image: resize((5, 5), BILINEAR, box=(2, 0, 11, 9)). */
static void it_is_the_same_as_pillow_makes(void **state)
{
    (void)state;
    static const uint8_t recorded[75] = {
        138, 118, 104, 103, 130, 121, 108, 118, 137, 131, 152, 139, 110, 121, 101,
        102, 103, 146, 159, 138, 120, 147, 138, 112, 104, 124, 156, 137, 115, 114,
        130, 109, 106, 125, 151, 150, 147, 137, 129, 108, 137, 116, 116, 96,  129,
        98,  130, 166, 141, 128, 105, 133, 175, 149, 129, 146, 147, 128, 114, 118,
        107, 105, 128, 151, 147, 122, 140, 128, 110, 111, 126, 108, 78,  123, 151};
    uint8_t pixels[13 * 9 * 3], result[75];
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = (uint8_t)(i * 37 + i / 7 * 11);
    }
    scale(pixels, 13, 9, 5, 1, result);
    assert_memory_equal(result, recorded, sizeof(recorded));
}

/* The same of crop(box).resize((5, 5), BILINEAR), which uses no pixel outside of the box. */
static void a_part_is_the_same_as_pillow_makes(void **state)
{
    (void)state;
    static const struct {
        struct square_part part;
        uint8_t recorded[75];
    } cases[] = {
        {{1, 0, 11, 8},
         {142, 127, 104, 104, 156, 105, 103, 112, 140, 138, 141, 154, 125, 108, 94,
          140, 109, 116, 156, 128, 91,  123, 160, 132, 100, 118, 153, 141, 112, 119,
          134, 120, 104, 129, 165, 111, 134, 134, 138, 127, 160, 146, 118, 97,  104,
          133, 98,  141, 129, 138, 110, 122, 173, 149, 118, 142, 152, 133, 114, 96,
          122, 109, 116, 150, 158, 86,  119, 143, 131, 115, 131, 138, 106, 95,  134}},
        {{4, 3, 3, 2}, {107, 151, 218, 138, 84,  104, 148, 215, 135, 80,  94,  138, 205, 121, 65,
                        83,  127, 194, 107, 50,  80,  124, 191, 104, 46,  144, 90,  10,  77,  121,
                        141, 97,  32,  84,  118, 131, 126, 119, 113, 108, 120, 154, 206, 141, 97,
                        117, 161, 228, 148, 94,  181, 127, 47,  114, 158, 178, 124, 43,  111, 155,
                        168, 112, 28,  98,  145, 157, 99,  13,  85,  134, 154, 96,  9,   82,  131}},
    };
    uint8_t pixels[13 * 9 * 3], result[75];
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = (uint8_t)(i * 37 + i / 7 * 11);
    }
    struct square *square;
    assert_int_equal(square_create(5, &square), STATUS_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct square_source source = {
            .pixels = pixels, .width = 13, .height = 9, .orientation = 1, .part = cases[i].part};
        assert_int_equal(square_make(square, &source, result), STATUS_OK);
        assert_memory_equal(result, cases[i].recorded, sizeof(result));
    }
    square_destroy(square);
}

/* Where the corner that is stored first comes to lie, and the one stored to its right, as the
 * standard (EXIF 2.3, tag 0x0112) says of row 0 and column 0. */
static void each_orientation_turns_as_the_standard_says(void **state)
{
    (void)state;
    static const struct {
        size_t first, right;
    } places[9] = {[1] = {0, 1}, [2] = {1, 0}, [3] = {3, 2}, [4] = {2, 3},
                   [5] = {0, 2}, [6] = {1, 3}, [7] = {3, 1}, [8] = {2, 0}};
    const uint8_t pixels[2 * 2 * 3] = {100, 100, 100, 200, 200, 200};
    for (uint32_t orientation = 1; orientation <= 8; orientation++) {
        uint8_t result[3 * 4];
        scale(pixels, 2, 2, 2, orientation, result);
        for (size_t i = 0; i < 4; i++) {
            int expected = i == places[orientation].first   ? 100
                           : i == places[orientation].right ? 200
                                                            : 0;
            assert_int_equal(result[i], expected);
        }
    }
}

/* From the definition, one byte after the other. */
static uint8_t sum_taps(const struct scale_tap *tap, const int32_t *weights, const uint8_t *from,
                        size_t stride)
{
    int64_t sum = 1 << (SCALE_WEIGHT_BITS - 1);
    for (uint32_t k = 0; k < tap->count; k++) {
        sum += (int64_t)weights[tap->weights_at + k] * from[k * stride];
    }
    sum >>= SCALE_WEIGHT_BITS;
    return sum > 255 ? 255 : (uint8_t)sum;
}

enum { LONGEST = 201, MOST_TAPS = 5 };

/* A band of rows, each of which begins a byte behind the one before. */
static void check_narrow(const struct square_loops *loops, const struct scale_axis *axis,
                         uint32_t size, const uint8_t *row)
{
    static uint8_t narrow[3 * SQUARE_BAND * (LONGEST + SQUARE_BAND)];
    enum { FIRST = 2 }; // columns that nothing takes from
    uint32_t end = FIRST + size + MOST_TAPS - 1;
    const struct square_band band = {.axis = axis,
                                     .size = size,
                                     .first = FIRST,
                                     .end = end,
                                     .source = malloc(square_room_source(end - FIRST)),
                                     .result = calloc(1, square_room_result(size))};
    const uint8_t *from[SQUARE_BAND];
    for (size_t i = 0; i < SQUARE_BAND; i++) {
        from[i] = row + i;
    }
    assert_non_null(band.source);
    assert_non_null(band.result);
    loops->narrow(&band, from, narrow);
    for (size_t at = 0; at < (size_t)3 * SQUARE_BAND * size; at++) {
        size_t band_row = at / size / 3, c = at / size % 3, i = at % size;
        const struct scale_tap *tap = &axis->taps[i];
        const uint8_t *first = row + band_row + (size_t)3 * tap->first + c;
        assert_int_equal(narrow[(band_row * 3 + c) * square_pitch(size) + i],
                         sum_taps(tap, axis->weights, first, 3));
    }
    free(band.source);
    free(band.result);
}

static void check_loops(const struct square_loops *loops, uint32_t size)
{
    struct scale_tap taps[LONGEST];
    int32_t weights[LONGEST * MOST_TAPS];
    uint8_t row[3 * (LONGEST + 2 * MOST_TAPS) + SQUARE_BAND + SQUARE_BEHIND];
    uint8_t narrow[3 * (LONGEST + SQUARE_BAND)], joined[LONGEST];
    const struct scale_axis axis = {.taps = taps, .weights = weights};
    for (size_t i = 0; i < sizeof(row); i++) {
        row[i] = i % 7 == 0 || i % 11 == 0 ? 255 : (uint8_t)(i * i * 31);
    }
    for (uint32_t i = 0; i < LONGEST; i++) {
        taps[i] = (struct scale_tap){2 + i, 1 + i % MOST_TAPS, (size_t)i * MOST_TAPS};
        for (uint32_t k = 0; k < MOST_TAPS; k++) {
            // As much too large as rounded weights can be.
            weights[i * MOST_TAPS + k] =
                (1 << SCALE_WEIGHT_BITS) / (int32_t)taps[i].count + (i % 2 == 0 ? 9 : 1600);
        }
    }
    check_narrow(loops, &axis, size, row);
    size_t pitch = square_pitch(size);
    loops->part(row, size, pitch, narrow);
    for (uint32_t i = 0; i < 3 * size; i++) {
        assert_int_equal(narrow[i / size * pitch + i % size], row[3 * (i % size) + i / size]);
    }
    for (uint32_t t = 0; t < 2 * MOST_TAPS; t++) {
        const struct scale_tap tap = {0, taps[t].count, taps[t].weights_at};
        loops->join(&tap, weights + tap.weights_at, row, 7, size, joined);
        for (uint32_t i = 0; i < size; i++) {
            assert_int_equal(joined[i], sum_taps(&tap, weights, row + i, 7));
        }
    }
}

/* An image of one column, and one of few, have less behind a row than is read of a band. */
static void narrow_images_are_scaled_too(void **state)
{
    (void)state;
    for (uint32_t width = 1; width <= 7; width++) {
        for (uint32_t height = 1; height <= 40; height += 13) {
            size_t bytes = (size_t)width * height * 3;
            uint8_t *pixels = malloc(bytes), result[3 * 6 * 6]; // as large as they have to be
            assert_non_null(pixels);
            memset(pixels, 200, bytes);
            scale(pixels, width, height, 6, 1, result);
            for (size_t i = 0; i < sizeof(result); i++) {
                assert_int_equal(result[i], 200);
            }
            free(pixels);
        }
    }
}

/* One square after the other: an axis that was planned for another image is not kept. */
static void each_image_is_scaled_by_its_own_size(void **state)
{
    (void)state;
    static const uint32_t sides[] = {9, 9, 64, 9, 31, 64};
    struct square *square;
    assert_int_equal(square_create(12, &square), STATUS_OK);
    for (size_t k = 0; k < sizeof(sides) / sizeof(sides[0]); k++) {
        uint8_t pixels[64 * 64 * 3], alone[3 * 144], result[3 * 144];
        for (size_t i = 0; i < sizeof(pixels); i++) {
            pixels[i] = (uint8_t)(i * 37 + i / 7 * 11 + k);
        }
        const struct square_source source = {
            .pixels = pixels, .width = sides[k], .height = sides[k], .orientation = 1};
        assert_int_equal(square_make(square, &source, result), STATUS_OK);
        scale(pixels, sides[k], sides[k], 12, 1, alone);
        assert_memory_equal(result, alone, sizeof(result));
    }
    square_destroy(square);
}

static void all_instruction_sets_give_the_same_bytes(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < VARIANT_COUNT; i++) {
        for (uint32_t size = 1; size <= LONGEST && variant_is_supported((enum variant)i); size++) {
            check_loops(&square_loops[i], size);
        }
    }
}

/* However many pixels make one: white stays white, and no sum needs more than 32 bits. */
static void weights_are_never_too_large_together(void **state)
{
    (void)state;
    static const uint32_t sides[] = {1, 2, 3, 1000, 17001, 33000, 60001};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        for (uint32_t size = 1; size <= 3; size++) {
            const struct scale_part part = {.side = sides[i], .high = sides[i]};
            struct scale_tap taps[3];
            size_t capacity = scale_axis_weights(size, &part);
            struct scale_axis axis = {
                .taps = taps, .weights = calloc(capacity, sizeof(int32_t)), .capacity = capacity};
            assert_non_null(axis.weights);
            scale_axis_plan(&axis, size, &part);
            for (uint32_t t = 0; t < size; t++) {
                int64_t sum = 0;
                for (uint32_t k = 0; k < taps[t].count; k++) {
                    sum += axis.weights[taps[t].weights_at + k];
                }
                assert_in_range(sum, (1 << SCALE_WEIGHT_BITS) - 8000, SCALE_WEIGHTS_MAX);
            }
            free(axis.weights);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_of_the_size_stays_as_it_is),
        cmocka_unit_test(the_middle_of_the_long_side_is_kept),
        cmocka_unit_test(a_ramp_stays_a_ramp),
        cmocka_unit_test(nothing_is_skipped_where_an_image_shrinks),
        cmocka_unit_test(it_is_the_same_as_pillow_makes),
        cmocka_unit_test(a_part_is_the_same_as_pillow_makes),
        cmocka_unit_test(each_orientation_turns_as_the_standard_says),
        cmocka_unit_test(all_instruction_sets_give_the_same_bytes),
        cmocka_unit_test(narrow_images_are_scaled_too),
        cmocka_unit_test(weights_are_never_too_large_together),
        cmocka_unit_test(each_image_is_scaled_by_its_own_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
