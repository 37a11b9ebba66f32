/* Tests of the parameter digest against BLAKE2b-256 as Python's hashlib computes it. */
#include "common/vector/digest.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void an_empty_vector_has_the_digest_of_no_bytes(void **state)
{
    (void)state;
    char text[DIGEST_TEXT_BYTES];
    digest_floats(NULL, 0, text);
    assert_string_equal(text, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
}

static void a_short_vector_has_its_known_digest(void **state)
{
    (void)state;
    const float values[] = {1.0F, -2.5F, 0.0F, -0.0F};
    char text[DIGEST_TEXT_BYTES];
    digest_floats(values, 4, text);
    assert_string_equal(text, "1a32de4ae5d72777e4513e366b739156cc02d0f7586a054c628be8864ae74846");
}

static void a_vector_of_several_blocks_has_its_known_digest(void **state)
{
    (void)state;
    static float values[10000];
    for (unsigned i = 0; i < 10000; i++) {
        values[i] = 0.5F * (float)i;
    }
    char text[DIGEST_TEXT_BYTES];
    digest_floats(values, 10000, text);
    assert_string_equal(text, "0f9f4f69e1ca578c6ea02aaedde5d82a26f91e24c2e5478932b62aa9639c934d");
}

static void one_sign_of_zero_changes_the_digest(void **state)
{
    (void)state;
    const float values[] = {0.0F, -0.0F};
    char plus[DIGEST_TEXT_BYTES], minus[DIGEST_TEXT_BYTES];
    digest_floats(&values[0], 1, plus);
    digest_floats(&values[1], 1, minus);
    assert_string_not_equal(plus, minus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_vector_has_the_digest_of_no_bytes),
        cmocka_unit_test(a_short_vector_has_its_known_digest),
        cmocka_unit_test(a_vector_of_several_blocks_has_its_known_digest),
        cmocka_unit_test(one_sign_of_zero_changes_the_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
