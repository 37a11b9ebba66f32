/* Tests of the noise. */
#include "worker/data/dataset.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_follows_from_seed_and_split),
        cmocka_unit_test(labels_are_spread_over_the_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
