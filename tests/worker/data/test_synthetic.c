/* Tests of the noise. */
#include "tests/support/common/temp_folder.h"
#include "worker/data/dataset.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS 3072

static struct dataset *open_noise(uint64_t seed, enum dataset_split split)
{
    struct dataset *dataset = NULL;
    assert_int_equal(dataset_open("synthetic",
                                  &(struct dataset_options){.seed = seed, .split = split},
                                  &dataset),
                     STATUS_OK);
    return dataset;
}

static bool is_same(const struct dataset *a, const struct dataset *b)
{
    float from_a[PIXELS], from_b[PIXELS];
    uint32_t label_a, label_b;
    assert_int_equal(dataset_read(a, 5, from_a, &label_a), STATUS_OK);
    assert_int_equal(dataset_read(b, 5, from_b, &label_b), STATUS_OK);
    uint32_t same_count = 0;
    for (uint32_t i = 0; i < PIXELS; i++) {
        same_count += from_a[i] == from_b[i];
    }
    return same_count == PIXELS;
}

static void noise_follows_from_seed_and_split(void **state)
{
    (void)state;
    struct dataset *one = open_noise(1, DATASET_TRAIN);
    struct dataset *again = open_noise(1, DATASET_TRAIN);
    struct dataset *test = open_noise(1, DATASET_TEST);
    struct dataset *two = open_noise(2, DATASET_TRAIN);
    assert_true(is_same(one, again));
    assert_false(is_same(one, test));
    assert_false(is_same(one, two));
    dataset_close(two);
    dataset_close(test);
    dataset_close(again);
    dataset_close(one);
}

static void labels_are_spread_over_the_classes(void **state)
{
    (void)state;
    struct dataset *dataset = open_noise(3, DATASET_TRAIN);
    assert_int_equal(dataset->sample_count, 8192);
    uint32_t sizes[10] = {0};
    for (uint64_t i = 0; i < dataset->sample_count; i++) {
        float pixels[PIXELS];
        uint32_t label;
        assert_int_equal(dataset_read(dataset, i, pixels, &label), STATUS_OK);
        sizes[label]++;
    }
    for (uint32_t i = 0; i < 10; i++) {
        assert_in_range(sizes[i], 819 - 140, 819 + 140); // five deviations
    }
    dataset_close(dataset);
}

#define RECORD_BYTES_100 (2 + PIXELS)
#define SCALED_SIDE      40
#define SCALED_PIXELS    (3 * SCALED_SIDE * SCALED_SIDE)

/* Both splits of a CIFAR-100 whose pixels and labels are all 0. */
static char *write_cifar100(void)
{
    static const uint8_t bytes[7 * RECORD_BYTES_100];
    char *folder = temp_folder_create();
    temp_folder_write(folder, "train.bin", bytes, sizeof(bytes));
    temp_folder_write(folder, "test.bin", bytes, (size_t)3 * RECORD_BYTES_100);
    return folder;
}

static struct dataset *open_like(const char *data, enum dataset_split split, uint32_t image_size)
{
    struct dataset *dataset = NULL;
    const struct dataset_options options = {.seed = 1, .split = split, .image_size = image_size};
    assert_int_equal(dataset_open(data, &options, &dataset), STATUS_OK);
    return dataset;
}

static void noise_takes_shape_classes_and_count_from_another_dataset(void **state)
{
    (void)state;
    char *folder = write_cifar100(), data[512];
    snprintf(data, sizeof(data), "synthetic:cifar100:%s", folder);
    struct dataset *dataset = open_like(data, DATASET_TEST, 0);
    assert_int_equal(dataset->sample_count, 3);
    assert_int_equal(dataset->sample.rows, 32);
    dataset_close(dataset);
    dataset = open_like(data, DATASET_TRAIN, SCALED_SIDE);
    assert_int_equal(dataset->sample_count, 7);
    assert_int_equal(dataset->class_count, 100);
    assert_int_equal(dataset->sample.channels, 3);
    assert_int_equal(dataset->sample.rows, SCALED_SIDE);
    assert_int_equal(dataset->sample.columns, SCALED_SIDE);
    uint32_t label_sum = 0;
    for (uint64_t i = 0; i < dataset->sample_count; i++) {
        float pixels[SCALED_PIXELS];
        uint32_t label;
        assert_int_equal(dataset_read(dataset, i, pixels, &label), STATUS_OK);
        label_sum += label; // those of the file are 0
    }
    assert_true(label_sum > 0);
    dataset_close(dataset);
    temp_folder_destroy(folder);
}

/* So a device that makes pixels of bytes computes with what others copy. */
static void pixels_of_noise_are_those_that_its_bytes_make(void **state)
{
    (void)state;
    char *folder = write_cifar100(), data[512];
    snprintf(data, sizeof(data), "synthetic:cifar100:%s", folder);
    struct dataset *dataset = open_like(data, DATASET_TRAIN, SCALED_SIDE);
    struct pixels_source source;
    assert_true(dataset_describe(dataset, &source));
    assert_int_equal(pixels_bytes(&source), PIXELS); // as stored, before they are scaled
    for (uint64_t i = 0; i < dataset->sample_count; i++) {
        float read[SCALED_PIXELS], made[SCALED_PIXELS];
        uint8_t bytes[PIXELS], zeros[PIXELS] = {0};
        uint32_t label, label_of_bytes;
        assert_int_equal(dataset_read(dataset, i, read, &label), STATUS_OK);
        assert_int_equal(dataset_read_bytes(dataset, i, bytes, &label_of_bytes), STATUS_OK);
        dataset_convert(dataset, bytes, made);
        assert_memory_equal(read, made, sizeof(read));
        assert_int_equal(label, label_of_bytes);
        assert_memory_not_equal(bytes, zeros, sizeof(bytes)); // those of the file
    }
    dataset_close(dataset);
    temp_folder_destroy(folder);
}

static void drawn_datasets_lend_their_shape_too(void **state)
{
    (void)state;
    struct dataset *shapes = open_like("shapes", DATASET_TRAIN, 0);
    struct dataset *dataset = open_like("synthetic:shapes", DATASET_TRAIN, 0);
    struct pixels_source source;
    assert_false(dataset_describe(dataset, &source));
    assert_int_equal(dataset->sample_count, shapes->sample_count);
    assert_false(is_same(dataset, shapes));
    dataset_close(dataset);
    dataset_close(shapes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_follows_from_seed_and_split),
        cmocka_unit_test(labels_are_spread_over_the_classes),
        cmocka_unit_test(noise_takes_shape_classes_and_count_from_another_dataset),
        cmocka_unit_test(pixels_of_noise_are_those_that_its_bytes_make),
        cmocka_unit_test(drawn_datasets_lend_their_shape_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
