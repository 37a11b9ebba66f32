/* Tests of decoding: colours and ramps that are known, within what JPEG loses. */
#include "tests/support/data/jpeg_maker.h"
#include "worker/data/images/decoder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define LOSS 6 // of one value, at quality 95

static const uint8_t orange[3] = {230, 120, 30};

static enum status decode(uint32_t size, const uint8_t *jpeg, size_t jpeg_size, uint8_t *ret_pixels,
                          char why[DECODER_WHY_BYTES])
{
    struct decoder *decoder;
    assert_int_equal(decoder_create(size, &decoder), STATUS_OK);
    why[0] = '\0';
    enum status status = decoder_run(decoder, jpeg, jpeg_size, ret_pixels, why, DECODER_WHY_BYTES);
    decoder_destroy(decoder);
    return status;
}

static void check_near(int found, int expected)
{
    assert_in_range(found + LOSS - expected, 0, 2 * LOSS);
}

static void check_flat(const uint8_t *jpeg, size_t jpeg_size, uint32_t size, const uint8_t *colour)
{
    uint8_t *pixels = calloc((size_t)size * size, 3);
    char why[DECODER_WHY_BYTES];
    assert_non_null(pixels);
    assert_int_equal(decode(size, jpeg, jpeg_size, pixels, why), STATUS_OK);
    for (size_t c = 0; c < 3; c++) {
        for (size_t i = 0; i < (size_t)size * size; i++) {
            check_near(pixels[c * size * size + i], colour[c]);
        }
    }
    free(pixels);
}

static void a_colour_comes_back_at_every_size(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 7, 8, 32, 60, 224};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size;
        uint8_t *jpeg = jpeg_maker_flat(orange, 129, 61, &size);
        check_flat(jpeg, size, sizes[i], orange);
        free(jpeg);
    }
}

static void grey_has_three_equal_channels(void **state)
{
    (void)state;
    uint8_t pixels[16 * 16 * 3];
    memset(pixels, 90, sizeof(pixels));
    size_t size;
    uint8_t *jpeg = jpeg_maker_make(JPEG_MAKER_GREY, pixels, 16, 16, &size);
    check_flat(jpeg, size, 8, (const uint8_t[3]){90, 90, 90});
    free(jpeg);
}

static void cmyk_is_ink_unless_adobe_wrote_it(void **state)
{
    (void)state;
    uint8_t pixels[16 * 16 * 4];
    for (size_t i = 0; i < 256; i++) {
        memcpy(pixels + 4 * i, (const uint8_t[4]){200, 100, 0, 51}, 4);
    }
    size_t size;
    uint8_t *jpeg = jpeg_maker_make(JPEG_MAKER_CMYK, pixels, 16, 16, &size);
    // libturbojpeg writes what Adobe's programs do: YCCK that counts light.
    check_flat(jpeg, size, 8, (const uint8_t[3]){200 * 51 / 255, 100 * 51 / 255, 0});
    uint8_t *adobe = memmem(jpeg, size, "Adobe", 5);
    assert_non_null(adobe);
    adobe[0] = 'O';
    // Without the mark the components are ink: Y = 0.299 x 55 + 0.587 x 155 + 0.114 x 255 of the
    // inverted colours, Cb = 128 + 0.564 (255 - Y), Cr = 128 + 0.713 (55 - Y), and K.
    const int ink[3] = {136, 195, 70};
    check_flat(jpeg, size, 8,
               (const uint8_t[3]){(uint8_t)((255 - ink[0]) * 204 / 255),
                                  (uint8_t)((255 - ink[1]) * 204 / 255),
                                  (uint8_t)((255 - ink[2]) * 204 / 255)});
    free(jpeg);
}

/* Red grows to the right, green downwards. */
static uint8_t *make_ramps(enum jpeg_maker_kind kind, size_t *ret_size)
{
    uint8_t pixels[64 * 64 * 3];
    for (size_t i = 0; i < (size_t)64 * 64; i++) {
        pixels[3 * i] = (uint8_t)(4 * (i % 64));
        pixels[3 * i + 1] = (uint8_t)(4 * (i / 64));
        pixels[3 * i + 2] = 128;
    }
    return jpeg_maker_make(kind, pixels, 64, 64, ret_size);
}

static void check_ramps(const uint8_t *pixels, size_t size)
{
    size_t step = 64 / size, plane = size * size;
    for (size_t row = 1; row + 1 < size; row++) {
        for (size_t column = 1; column + 1 < size; column++) {
            size_t at = row * size + column;
            check_near(pixels[at], (int)(4 * (step * column) + 2 * (step - 1)));
            check_near(pixels[plane + at], (int)(4 * (step * row) + 2 * (step - 1)));
            check_near(pixels[2 * plane + at], 128);
        }
    }
}

static void ramps_come_back_progressive_or_not_and_at_a_smaller_scale(void **state)
{
    (void)state;
    for (int kind = JPEG_MAKER_COLOUR; kind <= JPEG_MAKER_PROGRESSIVE; kind++) {
        for (uint32_t size = 16; size <= 64; size *= 2) {
            uint8_t pixels[3 * 64 * 64];
            char why[DECODER_WHY_BYTES];
            size_t jpeg_size;
            uint8_t *jpeg = make_ramps((enum jpeg_maker_kind)kind, &jpeg_size);
            assert_int_equal(decode(size, jpeg, jpeg_size, pixels, why), STATUS_OK);
            check_ramps(pixels, size);
            free(jpeg);
        }
    }
}

/* Where the pixels of a part come from is read off the ramps, whatever scale they were decoded at.
 */
static void a_part_comes_from_its_place_at_every_scale(void **state)
{
    (void)state;
    size_t jpeg_size;
    uint8_t *jpeg = make_ramps(JPEG_MAKER_COLOUR, &jpeg_size);
    for (uint32_t size = 4; size <= 32; size *= 2) {
        struct decoder *decoder;
        assert_int_equal(decoder_create(size, &decoder), STATUS_OK);
        for (uint64_t key = 0; key < 30; key++) {
            uint8_t pixels[3 * 32 * 32];
            char why[DECODER_WHY_BYTES];
            const struct crop_draw draw = {0.1, 1, key};
            struct crop_box box = crop_draw_box(&draw, 64, 64);
            decoder_set_part(decoder, &draw);
            assert_int_equal(decoder_run(decoder, jpeg, jpeg_size, pixels, why, sizeof(why)),
                             STATUS_OK);
            uint32_t middle = size / 2;
            double x = box.left + (middle + 0.5) * box.width / size - 0.5;
            double y = box.top + (middle + 0.5) * box.height / size - 0.5;
            check_near(pixels[(size_t)middle * size + middle], (int)(4 * x + 0.5));
            check_near(pixels[(size_t)(size + middle) * size + middle], (int)(4 * y + 0.5));
        }
        // And the whole again.
        uint8_t pixels[3 * 32 * 32];
        char why[DECODER_WHY_BYTES];
        decoder_set_part(decoder, NULL);
        assert_int_equal(decoder_run(decoder, jpeg, jpeg_size, pixels, why, sizeof(why)),
                         STATUS_OK);
        check_ramps(pixels, size);
        decoder_destroy(decoder);
    }
    free(jpeg);
}

/* Stripes of four pixels, which have two at half the size, and would be blurred by way of a
 * quarter. */
static void an_image_is_not_decoded_smaller_than_the_target(void **state)
{
    (void)state;
    uint8_t pixels[64 * 64 * 3], result[3 * 32 * 32];
    char why[DECODER_WHY_BYTES];
    size_t size;
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = i / 3 % 8 < 4 ? 0 : 255;
    }
    uint8_t *jpeg = jpeg_maker_make(JPEG_MAKER_COLOUR, pixels, 64, 64, &size);
    assert_int_equal(decode(32, jpeg, size, result, why), STATUS_OK);
    for (size_t i = 0; i < sizeof(result); i++) {
        assert_in_range(result[i] + 1, i % 4 < 2 ? 0 : 216, i % 4 < 2 ? 40 : 256);
    }
    free(jpeg);
}

/* Orientation 6: what is stored as the first row is the right side, the first column the top. */
static void a_turned_camera_is_turned_back(void **state)
{
    (void)state;
    for (int is_little = 0; is_little < 2; is_little++) {
        uint8_t pixels[3 * 64 * 64];
        char why[DECODER_WHY_BYTES];
        size_t size;
        uint8_t *jpeg =
            jpeg_maker_orient(make_ramps(JPEG_MAKER_COLOUR, &size), &size, 6, is_little);
        assert_int_equal(decode(64, jpeg, size, pixels, why), STATUS_OK);
        for (size_t row = 1; row < 63; row++) {
            for (size_t column = 1; column < 63; column++) {
                check_near(pixels[row * 64 + column], (int)(4 * row));
                check_near(pixels[4096 + row * 64 + column], (int)(4 * (63 - column)));
            }
        }
        free(jpeg);
    }
}

static void check_refused(const uint8_t *jpeg, size_t size, const char *text)
{
    uint8_t pixels[3 * 16 * 16];
    char why[DECODER_WHY_BYTES];
    assert_int_equal(decode(16, jpeg, size, pixels, why), STATUS_MALFORMED);
    if (strstr(why, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, why);
    }
}

static void what_is_broken_is_refused_with_what_is_wrong(void **state)
{
    (void)state;
    size_t size;
    uint8_t *jpeg = make_ramps(JPEG_MAKER_COLOUR, &size);
    check_refused(jpeg, size / 2, "its data are broken: ");
    check_refused(jpeg, 40, "it ends in its head");
    check_refused((const uint8_t *)"GIF89a..", 8, "does not begin as a JPEG file does");
    const uint8_t *frame = memmem(jpeg, size, "\xFF\xC0", 2);
    assert_non_null(frame);
    size_t at = (size_t)(frame - jpeg);
    jpeg[at + 4] = 12;
    check_refused(jpeg, size, "12 bits for a sample");
    jpeg[at + 4] = 8;
    jpeg[at + 1] = 0xC3;
    check_refused(jpeg, size, "frame 0xC3, lossless");
    jpeg[at + 1] = 0xC0;
    memset(jpeg + at + 5, 0xFF, 4);
    check_refused(jpeg, size, "it has 65535 x 65535 pixels");
    free(jpeg);
}

/* An image has no part of the one that was decoded before it: which one that is depends on who
 * reads what. */
static void an_image_without_tables_does_not_get_those_of_another(void **state)
{
    (void)state;
    uint8_t pixels[3 * 16 * 16];
    char why[DECODER_WHY_BYTES] = "";
    struct decoder *decoder;
    size_t size;
    uint8_t *jpeg = jpeg_maker_flat(orange, 32, 32, &size);
    assert_int_equal(decoder_create(16, &decoder), STATUS_OK);
    assert_int_equal(decoder_run(decoder, jpeg, size, pixels, why, sizeof(why)), STATUS_OK);
    for (uint8_t *at = jpeg;
         (at = memmem(at, size - (size_t)(at - jpeg), "\xFF\xDB", 2)) != NULL;) {
        at[1] = 0xFE; // tables become a comment
    }
    enum status status = decoder_run(decoder, jpeg, size, pixels, why, sizeof(why));
    assert_int_equal(status, STATUS_MALFORMED);
    assert_non_null(strstr(why, "its data are broken: "));
    decoder_destroy(decoder);
    free(jpeg);
}

static void bytes_of_no_use_between_segments_do_no_harm(void **state)
{
    (void)state;
    size_t size;
    uint8_t *jpeg = jpeg_maker_flat(orange, 32, 32, &size);
    uint8_t *grown = calloc(1, size + 4);
    assert_non_null(grown);
    memcpy(grown, jpeg, size - 2);
    grown[size + 2] = 0xFF;
    grown[size + 3] = 0xD9;
    check_flat(grown, size + 4, 16, orange);
    free(grown);
    free(jpeg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_colour_comes_back_at_every_size),
        cmocka_unit_test(grey_has_three_equal_channels),
        cmocka_unit_test(cmyk_is_ink_unless_adobe_wrote_it),
        cmocka_unit_test(ramps_come_back_progressive_or_not_and_at_a_smaller_scale),
        cmocka_unit_test(a_part_comes_from_its_place_at_every_scale),
        cmocka_unit_test(an_image_is_not_decoded_smaller_than_the_target),
        cmocka_unit_test(a_turned_camera_is_turned_back),
        cmocka_unit_test(what_is_broken_is_refused_with_what_is_wrong),
        cmocka_unit_test(an_image_without_tables_does_not_get_those_of_another),
        cmocka_unit_test(bytes_of_no_use_between_segments_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
