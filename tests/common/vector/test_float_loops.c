/* Tests of bytes as floats: each variant against the definition. */
#include "common/vector/float_loops.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

enum { LONGEST = 2200, STEP = 37 }; // lengths that are tried

static void check_loop(float_loop *loop, const uint8_t *bytes, size_t count)
{
    const float scale = 1 / (255 * 0.229f), shift = -0.485f / 0.229f;
    float pixels[LONGEST + 1];
    pixels[count] = 7;
    loop(bytes, count, scale, shift, pixels);
    for (size_t i = 0; i < count; i++) {
        volatile float product = (float)bytes[i] * scale; // rounded by itself
        float expected = product + shift;
        assert_memory_equal(&pixels[i], &expected, sizeof(expected));
    }
    assert_true(pixels[count] == 7);
}

static void all_instruction_sets_give_the_same_bits(void **state)
{
    (void)state;
    uint8_t bytes[LONGEST];
    for (size_t i = 0; i < LONGEST; i++) {
        bytes[i] = (uint8_t)i;
    }
    for (uint32_t i = 0; i < VARIANT_COUNT; i++) {
        for (size_t count = 0; count <= LONGEST && variant_is_supported((enum variant)i);
             count += count < 300 ? 1 : STEP) {
            check_loop(float_loops[i], bytes, count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_instruction_sets_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
