/* Tests of making PNG: libpng's own reader has the same pixels, in the same number of channels. */
#include "worker/data/images/encode_png.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <png.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH  37
#define HEIGHT 11
#define BYTES  ((size_t)3 * WIDTH * HEIGHT)

static void check(uint32_t channels)
{
    uint8_t pixels[BYTES], result[BYTES], *bytes;
    char why[ENCODE_PNG_WHY_BYTES];
    size_t size;
    for (size_t i = 0; i < BYTES; i++) {
        pixels[i] = (uint8_t)(i * i * 31 + i); // noise, which does not compress
    }
    const struct encode_png_image image = {pixels, WIDTH, HEIGHT, channels};
    png_image png = {.version = PNG_IMAGE_VERSION};
    assert_int_equal(encode_png(&image, &bytes, &size, why, sizeof(why)), STATUS_OK);
    assert_int_not_equal(png_image_begin_read_from_memory(&png, bytes, size), 0);
    assert_int_equal(png.width, WIDTH);
    assert_int_equal(png.height, HEIGHT);
    assert_int_equal(png.format, channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB);
    assert_int_not_equal(png_image_finish_read(&png, NULL, result, 0, NULL), 0);
    assert_memory_equal(result, pixels, (size_t)channels * WIDTH * HEIGHT);
    free(bytes);
}

static void grey_and_colour_come_back_bit_by_bit(void **state)
{
    (void)state;
    check(1);
    check(3);
}

static void this_build_says_that_it_can(void **state)
{
    (void)state;
    char why[ENCODE_PNG_WHY_BYTES];
    assert_int_equal(encode_png_is_there(why, sizeof(why)), STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grey_and_colour_come_back_bit_by_bit),
        cmocka_unit_test(this_build_says_that_it_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
