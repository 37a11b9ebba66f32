/* Test of what stands for the dataset `images` in a build without libturbojpeg, which every build
 * can compile. */
#include "tests/support/data/refusal.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void the_dataset_is_refused_with_what_is_missing(void **state)
{
    (void)state;
    refusal_check(
        "images", "/data", DATASET_TRAIN, STATUS_UNSUPPORTED,
        (const char *[3]){"--data images:/data", "cannot read JPEG files", "libturbojpeg0-dev"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dataset_is_refused_with_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
