/* Tests of parts of stored images: against Pillow. */
#include "worker/data/augment/resized_crop.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define BYTES 189 // (3, 9, 7)

static const struct augment_image image = {3, 9, 7, {0}};

static void crop(const struct crop_draw *draw, uint8_t *ret_bytes)
{
    void *scratch = malloc(resized_crop_scratch(&image));
    assert_non_null(scratch);
    for (size_t i = 0; i < BYTES; i++) {
        ret_bytes[i] = (uint8_t)(i * 37 + i / 63 * 5 + 64);
    }
    resized_crop(&image, draw, scratch, ret_bytes);
    free(scratch);
}

/* What Pillow 13.0.0 makes of each plane: crop((0, 0, 5, 6)).resize((7, 9), BILINEAR). */
static void it_is_the_same_as_pillow_makes(void **state)
{
    (void)state;
    static const uint8_t recorded[BYTES] = {
        64,  85,  112, 138, 164, 191, 212, 66,  87,  114, 140, 166, 193, 214, 68,  89,  116, 142,
        168, 195, 216, 69,  90,  117, 143, 169, 196, 217, 72,  93,  120, 146, 172, 199, 220, 74,
        95,  122, 148, 174, 201, 222, 75,  96,  123, 149, 175, 202, 223, 78,  99,  126, 152, 178,
        205, 226, 79,  100, 127, 153, 179, 206, 227, 96,  117, 144, 170, 196, 223, 244, 98,  119,
        146, 172, 198, 225, 246, 100, 121, 148, 174, 200, 227, 248, 101, 122, 149, 175, 201, 228,
        249, 104, 125, 152, 178, 204, 231, 252, 106, 127, 154, 180, 206, 214, 211, 107, 128, 155,
        181, 207, 143, 42,  110, 131, 158, 184, 210, 127, 2,   111, 132, 159, 185, 211, 128, 3,
        128, 149, 176, 202, 228, 145, 20,  130, 151, 178, 204, 230, 147, 22,  132, 153, 180, 206,
        232, 149, 24,  133, 154, 181, 207, 233, 150, 25,  136, 157, 184, 210, 236, 153, 28,  138,
        159, 186, 212, 238, 155, 30,  139, 160, 187, 213, 239, 156, 31,  142, 163, 190, 216, 242,
        159, 34,  143, 164, 191, 217, 243, 160, 35};
    const struct crop_draw draw = {0.2, 0.9, 4244};
    struct crop_box box = crop_draw_box(&draw, 7, 9);
    assert_true(box.left == 0 && box.top == 0 && box.width == 5 && box.height == 6);
    uint8_t bytes[BYTES];
    crop(&draw, bytes);
    assert_memory_equal(bytes, recorded, sizeof(recorded));
}

static void the_whole_image_stays_as_it_is(void **state)
{
    (void)state;
    static const struct augment_image square = {1, 4, 4, {0}};
    uint8_t bytes[16], before[16];
    void *scratch = malloc(resized_crop_scratch(&square));
    assert_non_null(scratch);
    uint32_t whole = 0;
    for (uint64_t key = 0; key < 50; key++) {
        const struct crop_draw draw = {1, 1, key};
        struct crop_box box = crop_draw_box(&draw, 4, 4);
        for (size_t i = 0; i < 16; i++) {
            before[i] = bytes[i] = (uint8_t)(i * 91);
        }
        resized_crop(&square, &draw, scratch, bytes);
        if (box.width == 4 && box.height == 4) {
            assert_memory_equal(bytes, before, 16);
            whole++;
        }
    }
    assert_true(whole > 0);
    free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_same_as_pillow_makes),
        cmocka_unit_test(the_whole_image_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
