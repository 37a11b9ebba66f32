/* Tests of drawn parts of images: against torchvision's rule, and against what is asked for. */
#include "common/base/random.h"
#include "worker/data/crop.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

/* RandomResizedCrop.get_params of torchvision 0.28, run on the same draws: boxes are (left, top,
 * width, height). Some shapes fit in no try, and get its fallback. */
static void boxes_are_those_of_torchvision(void **state)
{
    (void)state;
    static const struct {
        struct crop_draw draw;
        uint32_t width, height;
        struct crop_box box;
    } cases[] = {
        {{0.08, 1, 0x1}, 500, 375, {135, 8, 271, 258}},
        {{0.08, 1, 0x2}, 500, 375, {19, 27, 232, 207}},
        {{0.35, 1, 0x3}, 500, 375, {24, 10, 407, 318}},
        {{0.08, 0.1, 0x123456789abcdef}, 64, 64, {9, 25, 22, 16}},
        {{0.25, 1, 0x5}, 32, 32, {4, 1, 28, 31}},
        {{0.08, 1, 0x6}, 1000, 20, {486, 0, 27, 20}},
        {{0.5, 1, 0x7}, 9, 300, {0, 144, 9, 12}},
        {{0.01, 0.01, 0x8}, 3, 3, {0, 0, 3, 3}},
        {{1, 1, 0x9}, 224, 224, {0, 0, 224, 224}},
        {{0.9, 1, 0xa}, 640, 480, {4, 2, 628, 476}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct crop_box box = crop_draw_box(&cases[i].draw, cases[i].width, cases[i].height);
        assert_int_equal(box.left, cases[i].box.left);
        assert_int_equal(box.top, cases[i].box.top);
        assert_int_equal(box.width, cases[i].box.width);
        assert_int_equal(box.height, cases[i].box.height);
    }
}

/* A share that is uniform from A to B has the mean (A + B) / 2; the logarithm of a shape that is as
 * often wide as high has the mean 0. Small parts fit at the first try. */
static void shares_and_shapes_are_spread_evenly(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    double shares = 0, shapes = 0, squares = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        const struct crop_draw draw = {0.1, 0.3, random_mix(i)};
        struct crop_box box = crop_draw_box(&draw, 4000, 4000);
        double shape = log((double)box.width / box.height);
        assert_true(box.left + box.width <= 4000 && box.top + box.height <= 4000);
        shares += (double)box.width * box.height / 16e6 / COUNT;
        shapes += shape / COUNT;
        squares += shape * shape / COUNT;
    }
    assert_true(fabs(shares - 0.2) < 0.002); // five standard deviations
    assert_true(fabs(shapes) < 0.006);
    double reach = log(4.0 / 3);
    assert_true(fabs(squares / (reach * reach / 3) - 1) < 0.04);
}

static void every_image_has_a_part(void **state)
{
    (void)state;
    for (uint32_t width = 1; width <= 20; width++) {
        for (uint32_t height = 1; height <= 20; height++) {
            for (uint64_t key = 0; key < 20; key++) {
                const struct crop_draw draw = {0.01, 1, random_mix(key)};
                struct crop_box box = crop_draw_box(&draw, width, height);
                assert_in_range(box.width, 1, width - box.left);
                assert_in_range(box.height, 1, height - box.top);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_those_of_torchvision),
        cmocka_unit_test(shares_and_shapes_are_spread_evenly),
        cmocka_unit_test(every_image_has_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
