/* Test of what makes no PNG in a build without libpng, which every build can compile. */
#include "worker/data/images/encode_png.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void an_image_is_refused_with_what_is_missing(void **state)
{
    (void)state;
    const struct encode_png_image image = {(const uint8_t[1]){0}, 1, 1, 1};
    char why[ENCODE_PNG_WHY_BYTES] = "";
    uint8_t *bytes;
    size_t size;
    assert_int_equal(encode_png_is_there(why, sizeof(why)), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why, "install libpng (libpng-dev"));
    why[0] = '\0';
    assert_int_equal(encode_png(&image, &bytes, &size, why, sizeof(why)), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why, "install libpng (libpng-dev"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_is_refused_with_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
