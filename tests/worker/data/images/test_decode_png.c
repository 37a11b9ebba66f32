/* Tests of decoding PNG: what it stores comes back as it is. */
#include "worker/data/images/decoder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <png.h>
#include <string.h>

#define SIDE        8
#define PLANE       ((size_t)SIDE * SIDE)
#define BYTES_MAX   2048
#define PIXEL_BYTES 4

/* Compresses pixels of a format into ret_bytes. */
static size_t make(uint32_t format, const uint8_t *pixels, uint8_t ret_bytes[BYTES_MAX])
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = SIDE, .height = SIDE, .format = format};
    png_alloc_size_t size = BYTES_MAX;
    assert_int_not_equal(png_image_write_to_memory(&image, ret_bytes, &size, 0, pixels, 0, NULL),
                         0);
    return size;
}

static enum status decode(const uint8_t *bytes, size_t size, uint8_t *ret_pixels,
                          char why[DECODER_WHY_BYTES])
{
    struct decoder *decoder;
    assert_int_equal(decoder_create(SIDE, &decoder), STATUS_OK);
    enum status status = decoder_run(decoder, bytes, size, ret_pixels, why, DECODER_WHY_BYTES);
    decoder_destroy(decoder);
    return status;
}

static void check(uint32_t format, uint32_t channels)
{
    uint8_t pixels[PIXEL_BYTES * PLANE], bytes[BYTES_MAX], result[3 * PLANE];
    char why[DECODER_WHY_BYTES];
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = channels == 4 && i % 4 == 3 ? 255 : (uint8_t)(i * 29);
    }
    size_t size = make(format, pixels, bytes);
    assert_int_equal(decode(bytes, size, result, why), STATUS_OK);
    for (size_t i = 0; i < 3 * PLANE; i++) {
        size_t channel = channels == 1 ? 0 : i / PLANE;
        assert_int_equal(result[i], pixels[i % PLANE * channels + channel]);
    }
}

static void colour_grey_and_opaque_images_come_back_bit_by_bit(void **state)
{
    (void)state;
    check(PNG_FORMAT_RGB, 3);
    check(PNG_FORMAT_RGBA, 4);
    check(PNG_FORMAT_GRAY, 1);
}

static void what_is_transparent_is_white(void **state)
{
    (void)state;
    uint8_t pixels[PIXEL_BYTES * PLANE] = {0}, bytes[BYTES_MAX], result[3 * PLANE];
    char why[DECODER_WHY_BYTES];
    size_t size = make(PNG_FORMAT_RGBA, pixels, bytes);
    assert_int_equal(decode(bytes, size, result, why), STATUS_OK);
    for (size_t i = 0; i < 3 * PLANE; i++) {
        assert_int_equal(result[i], 255);
    }
}

static void what_is_cut_short_or_changed_is_refused(void **state)
{
    (void)state;
    uint8_t pixels[PIXEL_BYTES * PLANE] = {1}, bytes[BYTES_MAX], result[3 * PLANE];
    char why[DECODER_WHY_BYTES] = "";
    size_t size = make(PNG_FORMAT_RGB, pixels, bytes);
    for (size_t cut = 8; cut < size - 12; cut += 7) {
        assert_int_equal(decode(bytes, cut, result, why), STATUS_MALFORMED);
        assert_non_null(strstr(why, "its data are broken: "));
    }
    bytes[17] ^= 1; // of the width
    assert_int_equal(decode(bytes, size, result, why), STATUS_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colour_grey_and_opaque_images_come_back_bit_by_bit),
        cmocka_unit_test(what_is_transparent_is_white),
        cmocka_unit_test(what_is_cut_short_or_changed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
