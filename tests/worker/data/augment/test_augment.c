/* Tests of changed images: each change against what its words say, computed here another way. */
#include "worker/data/augment/augment.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS     9
#define COLUMNS  7
#define CHANNELS 3
#define PLANE    ((size_t)ROWS * COLUMNS)
#define BYTES    ((size_t)CHANNELS * PLANE)
#define KEYS     400

static const struct augment_image image = {CHANNELS, ROWS, COLUMNS, {11, 22, 33}};

static void fill(uint8_t *bytes)
{
    for (size_t i = 0; i < BYTES; i++) {
        bytes[i] = (uint8_t)(i * 37 + i / PLANE * 5 + 64);
    }
}

static void apply(enum augment_kind kind, double amount, uint64_t key, uint8_t *ret_bytes)
{
    struct augmentation augmentation = {{0}};
    augmentation.amounts[kind] = amount;
    uint8_t spare[BYTES];
    fill(ret_bytes);
    augment_apply(&augmentation, &image, key, ret_bytes, spare);
}

static uint8_t at(const uint8_t *bytes, uint32_t channel, int row, int column)
{
    bool is_inside = row >= 0 && row < ROWS && column >= 0 && column < COLUMNS;
    return is_inside ? bytes[channel * PLANE + (uint32_t)(row * COLUMNS + column)]
                     : image.blank[channel];
}

static void half_of_the_images_are_flipped_and_the_others_are_not(void **state)
{
    (void)state;
    uint8_t plain[BYTES], bytes[BYTES];
    fill(plain);
    uint32_t flipped = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        apply(AUGMENT_FLIP, 1, key, bytes);
        bool is_flipped = memcmp(bytes, plain, BYTES) != 0;
        flipped += is_flipped;
        for (uint32_t channel = 0; channel < CHANNELS; channel++) {
            for (int row = 0; row < ROWS; row++) {
                for (int column = 0; column < COLUMNS; column++) {
                    int from = is_flipped ? COLUMNS - 1 - column : column;
                    assert_int_equal(at(bytes, channel, row, column),
                                     at(plain, channel, row, from));
                }
            }
        }
    }
    assert_in_range(flipped, KEYS / 2 - 60, KEYS / 2 + 60); // six standard deviations
}

/* The one offset by which the image has been moved; blank where nothing has come from. */
static bool is_moved(const uint8_t *bytes, const uint8_t *plain, int down, int right)
{
    for (uint32_t channel = 0; channel < CHANNELS; channel++) {
        for (int row = 0; row < ROWS; row++) {
            for (int column = 0; column < COLUMNS; column++) {
                if (at(bytes, channel, row, column) !=
                    at(plain, channel, row + down, column + right)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void a_crop_moves_the_image_and_every_offset_comes(void **state)
{
    (void)state;
    enum { REACH = 2, SIDE = 2 * REACH + 1 };
    uint8_t plain[BYTES], bytes[BYTES];
    uint32_t seen[SIDE][SIDE] = {{0}};
    fill(plain);
    for (uint64_t key = 0; key < KEYS; key++) {
        apply(AUGMENT_CROP, REACH, key, bytes);
        uint32_t found = 0;
        for (int down = -REACH; down <= REACH; down++) {
            for (int right = -REACH; right <= REACH; right++) {
                if (is_moved(bytes, plain, down, right)) {
                    seen[down + REACH][right + REACH]++;
                    found++;
                }
            }
        }
        assert_int_equal(found, 1);
    }
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        assert_in_range(seen[i / SIDE][i % SIDE], 1, KEYS / 8); // 16 of 400 on average
    }
}

static void cutout_blanks_a_square_that_the_border_may_cut(void **state)
{
    (void)state;
    uint8_t plain[BYTES], bytes[BYTES];
    fill(plain);
    bool was_whole = false, was_cut = false;
    for (uint64_t key = 0; key < KEYS; key++) {
        apply(AUGMENT_CUTOUT, 3, key, bytes);
        int top = ROWS, bottom = -1, left = COLUMNS, right = -1;
        for (int row = 0; row < ROWS; row++) {
            for (int column = 0; column < COLUMNS; column++) {
                if (at(bytes, 0, row, column) != at(plain, 0, row, column)) {
                    top = row < top ? row : top;
                    bottom = row > bottom ? row : bottom;
                    left = column < left ? column : left;
                    right = column > right ? column : right;
                }
            }
        }
        assert_true(bottom - top < 3 && right - left < 3 && bottom >= top && right >= left);
        was_whole |= bottom - top == 2 && right - left == 2;
        was_cut |= bottom - top < 2 || right - left < 2;
        for (uint32_t i = 0; i < BYTES; i++) {
            int row = (int)(i % PLANE / COLUMNS), column = (int)(i % COLUMNS);
            bool is_blank = row >= top && row <= bottom && column >= left && column <= right;
            assert_int_equal(bytes[i], is_blank ? image.blank[i / PLANE] : plain[i]);
        }
    }
    assert_true(was_whole && was_cut);
}

/* By the definition, in floating point: where a pixel comes from, and the four around it. */
static double turned(const uint8_t *plain, uint32_t channel, int row, int column, double angle)
{
    double y0 = (ROWS - 1) / 2.0, x0 = (COLUMNS - 1) / 2.0;
    double down = row - y0, right = column - x0;
    double y = y0 + cos(angle) * down + sin(angle) * right;
    double x = x0 + cos(angle) * right - sin(angle) * down;
    int above = (int)floor(y), left = (int)floor(x);
    double dy = y - above, dx = x - left;
    return (1 - dy) * ((1 - dx) * at(plain, channel, above, left) +
                       dx * at(plain, channel, above, left + 1)) +
           dy * ((1 - dx) * at(plain, channel, above + 1, left) +
                 dx * at(plain, channel, above + 1, left + 1));
}

/* How far the image is from the plain one turned so, at the worst. */
static double distance(const uint8_t *bytes, const uint8_t *plain, double angle)
{
    double most = 0;
    for (uint32_t i = 0; i < BYTES; i++) {
        int row = (int)(i % PLANE / COLUMNS), column = (int)(i % COLUMNS);
        most = fmax(most, fabs(turned(plain, i / PLANE, row, column, angle) - bytes[i]));
    }
    return most;
}

static void rotation_is_bilinear_about_the_centre_by_an_angle_in_range(void **state)
{
    (void)state;
    uint8_t plain[BYTES], bytes[BYTES];
    const double degree = acos(-1) / 180;
    double least = 30, most = -30;
    fill(plain);
    for (uint64_t key = 0; key < 40; key++) {
        apply(AUGMENT_ROTATE, 30, key, bytes);
        double best = 256, best_angle = 0;
        for (int step = -1500; step <= 1500; step++) {
            double angle = step * 0.02;
            double far = distance(bytes, plain, angle * degree);
            best_angle = far < best ? angle : best_angle;
            best = fmin(best, far);
        }
        assert_true(best < 3); // steps of 0.02 degrees, weights of 8 bits, and rounding
        least = fmin(least, best_angle);
        most = fmax(most, best_angle);
    }
    assert_true(least < -15 && most > 15);
}

static double luma(const double *pixel)
{
    return 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
}

/* Whether some factors within the range make of the plain image what is there. A grey image shows
 * brightness times contrast alone, so one with colours is needed for all three. */
static void colours_keep_within_their_factors(void **state)
{
    (void)state;
    const double amount = 0.5;
    uint8_t plain[BYTES], bytes[BYTES];
    fill(plain);
    bool was_darker = false, was_brighter = false;
    for (uint64_t key = 0; key < KEYS; key++) {
        apply(AUGMENT_COLOUR, amount, key, bytes);
        double before = 0, after = 0;
        for (uint32_t i = 0; i < PLANE; i++) {
            const double old[3] = {plain[i], plain[PLANE + i], plain[2 * PLANE + i]};
            const double new[3] = {bytes[i], bytes[PLANE + i], bytes[2 * PLANE + i]};
            before += luma(old);
            after += luma(new);
        }
        // Contrast and saturation keep the mean grey, but for values that leave the range.
        assert_true(after / before > 1 - amount - 0.1 && after / before < 1 + amount + 0.1);
        was_darker |= after / before < 0.75;
        was_brighter |= after / before > 1.2;
    }
    assert_true(was_darker && was_brighter);
}

static void a_grey_image_stays_grey(void **state)
{
    (void)state;
    const struct augmentation augmentation = {{[AUGMENT_COLOUR] = 0.9}};
    uint8_t bytes[BYTES], spare[BYTES];
    for (uint64_t key = 0; key < KEYS; key++) {
        for (uint32_t i = 0; i < BYTES; i++) {
            bytes[i] = (uint8_t)(i % PLANE * 4);
        }
        augment_apply(&augmentation, &image, key, bytes, spare);
        for (uint32_t i = 0; i < PLANE; i++) {
            assert_int_equal(bytes[i], bytes[PLANE + i]);
            assert_int_equal(bytes[i], bytes[2 * PLANE + i]);
        }
    }
}

static void one_change_more_leaves_the_draws_of_the_others(void **state)
{
    (void)state;
    uint8_t flipped[BYTES], both[BYTES], spare[BYTES];
    const struct augmentation two = {{[AUGMENT_FLIP] = 1, [AUGMENT_CUTOUT] = 3}};
    for (uint64_t key = 0; key < KEYS; key++) {
        apply(AUGMENT_FLIP, 1, key, flipped);
        fill(both);
        augment_apply(&two, &image, key, both, spare);
        uint32_t different = 0;
        for (uint32_t i = 0; i < BYTES; i++) {
            different += both[i] != flipped[i];
            assert_true(both[i] == flipped[i] || both[i] == image.blank[i / PLANE]);
        }
        assert_in_range(different, 1, CHANNELS * 9);
    }
}

static void what_does_not_fit_the_image_is_refused(void **state)
{
    (void)state;
    char why[AUGMENT_WHY_BYTES];
    const struct augmentation crop = {{[AUGMENT_CROP] = 7}}, fits = {{[AUGMENT_CROP] = 6}};
    assert_int_equal(augment_check(&crop, &image, why, sizeof(why)), STATUS_INVALID);
    assert_string_equal(why, "crop:7 does not fit images of 9x7: it must be below 7");
    assert_int_equal(augment_check(&fits, &image, why, sizeof(why)), STATUS_OK);
}

static void blank_is_the_byte_that_becomes_zero(void **state)
{
    (void)state;
    // As CIFAR-10 is normalised: a mean of 0.4914 is 125.3 of 255.
    const struct pixels_source source = {
        .channels = 1,
        .rows = ROWS,
        .columns = COLUMNS,
        .scale = {1 / (255 * 0.2470f)},
        .shift = {-0.4914f / 0.2470f},
    };
    struct augment_image made = augment_image_of(&source);
    assert_int_equal(made.blank[0], 125);
    assert_int_equal(made.rows, ROWS);
    assert_int_equal(made.columns, COLUMNS);
    assert_int_equal(made.channels, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_of_the_images_are_flipped_and_the_others_are_not),
        cmocka_unit_test(a_crop_moves_the_image_and_every_offset_comes),
        cmocka_unit_test(cutout_blanks_a_square_that_the_border_may_cut),
        cmocka_unit_test(rotation_is_bilinear_about_the_centre_by_an_angle_in_range),
        cmocka_unit_test(colours_keep_within_their_factors),
        cmocka_unit_test(a_grey_image_stays_grey),
        cmocka_unit_test(one_change_more_leaves_the_draws_of_the_others),
        cmocka_unit_test(what_does_not_fit_the_image_is_refused),
        cmocka_unit_test(blank_is_the_byte_that_becomes_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
