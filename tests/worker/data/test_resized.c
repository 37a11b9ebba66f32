/* Scaled images: known weights, planes that stay planes, and what is refused. */
#include "worker/data/resized.h"

#include <math.h>
#include <stdlib.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Images whose pixel (row, column) of channel c is c + 2 row + 3 column + index. */
struct plane_data {
    struct dataset base;
    int *closed;
};

static enum status plane_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                              uint32_t *ret_label)
{
    struct shape sample = dataset->sample;
    for (uint32_t i = 0; i < sample.channels * sample.rows * sample.columns; i++) {
        uint32_t column = i % sample.columns, row = i / sample.columns % sample.rows;
        uint32_t channel = i / sample.columns / sample.rows;
        ret_pixels[i] = (float)(channel + 2 * row + 3 * column + index);
    }
    *ret_label = (uint32_t)index;
    return STATUS_OK;
}

static void plane_close(struct dataset *dataset)
{
    ++*((struct plane_data *)dataset)->closed;
    free(dataset);
}

static const struct dataset_ops plane_ops = {.read = plane_read, .close = plane_close};

static struct dataset *make_planes(struct shape sample, int *closed)
{
    struct plane_data *data = calloc(1, sizeof(*data));
    assert_non_null(data);
    data->base =
        (struct dataset){.ops = &plane_ops, .sample = sample, .sample_count = 3, .class_count = 3};
    data->closed = closed;
    return &data->base;
}

static void twice_the_size_mixes_three_quarters_and_one(void **state)
{
    (void)state;
    int closed = 0;
    struct dataset *dataset;
    float pixels[16];
    uint32_t label;
    assert_int_equal(dataset_resize(make_planes((struct shape){1, 2, 2}, &closed), 4, &dataset),
                     STATUS_OK);
    assert_int_equal(dataset->sample.rows, 4);
    assert_int_equal(dataset->sample.columns, 4);
    assert_int_equal(dataset_read(dataset, 1, pixels, &label), STATUS_OK);
    // Rows 1 4 and 3 6: along a row at 0, 1/4, 3/4 and 1 of the way, likewise from row to row.
    static const float expected[] = {1,    1.75f, 3.25f, 4,    1.5f, 2.25f, 3.75f, 4.5f,
                                     2.5f, 3.25f, 4.75f, 5.5f, 3,    3.75f, 5.25f, 6};
    assert_memory_equal(pixels, expected, sizeof(expected));
    assert_int_equal(label, 1);
    dataset_close(dataset);
    assert_int_equal(closed, 1);
}

static void planes_stay_planes_inside(void **state)
{
    (void)state;
    int closed = 0;
    struct dataset *dataset;
    static float pixels[2 * 11 * 11];
    uint32_t label;
    assert_int_equal(dataset_resize(make_planes((struct shape){2, 5, 7}, &closed), 11, &dataset),
                     STATUS_OK);
    assert_int_equal(dataset_read(dataset, 2, pixels, &label), STATUS_OK);
    for (uint32_t row = 2; row < 9; row++) {
        for (uint32_t column = 1; column < 10; column++) {
            double expected =
                1 + 2 * ((row + 0.5) * 5 / 11 - 0.5) + 3 * ((column + 0.5) * 7 / 11 - 0.5) + 2;
            double pixel = (double)pixels[(11 + row) * 11 + column];
            assert_true(fabs(pixel - expected) < 1e-5);
        }
    }
    dataset_close(dataset);
}

static void smaller_images_take_the_pixels_around_their_centres(void **state)
{
    (void)state;
    int closed = 0;
    struct dataset *dataset;
    float pixels[4];
    uint32_t label;
    assert_int_equal(dataset_resize(make_planes((struct shape){1, 6, 6}, &closed), 2, &dataset),
                     STATUS_OK);
    assert_int_equal(dataset_read(dataset, 0, pixels, &label), STATUS_OK);
    static const float expected[] = {5, 14, 11, 20}; // at 1 and 4 of each side
    assert_memory_equal(pixels, expected, sizeof(expected));
    dataset_close(dataset);
}

static void images_of_that_size_are_left_alone(void **state)
{
    (void)state;
    int closed = 0;
    struct dataset *dataset, *planes = make_planes((struct shape){1, 6, 6}, &closed);
    assert_int_equal(dataset_resize(planes, 6, &dataset), STATUS_OK);
    assert_ptr_equal(dataset, planes);
    assert_int_equal(dataset_resize(planes, 0, &dataset), STATUS_OK);
    assert_ptr_equal(dataset, planes);
    dataset_close(dataset);
}

static void images_too_large_to_scale_are_refused_and_closed(void **state)
{
    (void)state;
    int closed = 0;
    struct dataset *dataset = NULL;
    assert_int_equal(dataset_resize(make_planes((struct shape){3, 500, 500}, &closed), 6, &dataset),
                     STATUS_UNSUPPORTED);
    assert_int_equal(closed, 1);
    assert_null(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twice_the_size_mixes_three_quarters_and_one),
        cmocka_unit_test(planes_stay_planes_inside),
        cmocka_unit_test(smaller_images_take_the_pixels_around_their_centres),
        cmocka_unit_test(images_of_that_size_are_left_alone),
        cmocka_unit_test(images_too_large_to_scale_are_refused_and_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
