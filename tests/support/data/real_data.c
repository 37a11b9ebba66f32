/* Datasets from $RINGSIDE_DATA. */
#include "tests/support/data/real_data.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH_BYTES   4096
#define PIXELS_MAX   3072
#define CHANNELS_MAX 3
#define CLASSES_MAX  10

struct dataset *real_data_open(const char *name, enum dataset_split split)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment.
    const char *folder = getenv("RINGSIDE_DATA");
    if (folder == NULL || folder[0] == '\0') {
        print_message("skipped: needs %s/ in the folder that RINGSIDE_DATA names\n", name);
        skip();
    }
    char data[PATH_BYTES];
    snprintf(data, sizeof(data), "%s:%s/%s", name, folder, name);
    struct dataset *dataset = NULL;
    assert_int_equal(
        dataset_open(data, &(struct dataset_options){.seed = 1, .split = split}, &dataset),
        STATUS_OK);
    return dataset;
}

struct moments {
    double sum, sum_of_squares;
};

static void add_channel(const float *pixels, uint32_t count, struct moments *moments)
{
    for (uint32_t i = 0; i < count; i++) {
        moments->sum += (double)pixels[i];
        moments->sum_of_squares += (double)pixels[i] * (double)pixels[i];
    }
}

void real_data_check(const struct dataset *dataset, uint64_t sample_count)
{
    assert_int_equal(dataset->sample_count, sample_count);
    assert_int_equal(dataset->class_count, CLASSES_MAX);
    uint32_t channel_pixels = dataset->sample.rows * dataset->sample.columns;
    struct moments moments[CHANNELS_MAX] = {0};
    uint64_t class_sizes[CLASSES_MAX] = {0};
    for (uint64_t i = 0; i < sample_count; i++) {
        float pixels[PIXELS_MAX];
        uint32_t label;
        assert_int_equal(dataset_read(dataset, i, pixels, &label), STATUS_OK);
        class_sizes[label]++;
        for (uint32_t c = 0; c < dataset->sample.channels; c++) {
            add_channel(pixels + (size_t)c * channel_pixels, channel_pixels, &moments[c]);
        }
    }
    for (uint32_t i = 0; i < CLASSES_MAX; i++) {
        assert_int_equal(class_sizes[i], sample_count / CLASSES_MAX);
    }
    for (uint32_t c = 0; c < dataset->sample.channels; c++) {
        double count = (double)sample_count * channel_pixels;
        double mean = moments[c].sum / count;
        double deviation = sqrt(moments[c].sum_of_squares / count - mean * mean);
        assert_true(fabs(mean) < 0.01);
        assert_true(fabs(deviation - 1) < 0.01);
    }
}
