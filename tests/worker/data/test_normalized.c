/* Tests of pixels by other figures than those that a dataset has. */
#include "tests/support/common/captured_log.h"
#include "worker/data/byte_images.h"
#include "worker/data/normalized.h"
#include "worker/data/resized.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <string.h>

#define PLANE  4
#define PIXELS ((size_t)3 * PLANE)

static const struct dataset_ops byte_ops = {
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};

// Two images of 3x2x2, each behind its label.
static const uint8_t records[2 * (1 + PIXELS)] = {
    0, 0, 51, 102, 255, 0,   1,   2,   3,   128, 127, 126, 125,
    1, 9, 8,  7,   6,   250, 251, 252, 253, 5,   4,   3,   2,
};

static struct dataset *open_records(void)
{
    static const struct byte_format format = {
        .ops = &byte_ops,
        .sample = {.channels = 3, .rows = 2, .columns = 2},
        .class_count = 2,
        .mean = {0.4914f, 0.4822f, 0.4465f},
        .deviation = {0.2470f, 0.2435f, 0.2616f},
    };
    const struct byte_records all = {records, records + 1, 1 + PIXELS, 1 + PIXELS, 2};
    struct byte_images *images;
    char why[DATA_FILE_WHY_BYTES];
    assert_int_equal(byte_images_create(&format, &images), STATUS_OK);
    assert_int_equal(byte_images_add(images, &all, NULL, why, sizeof(why)), STATUS_OK);
    return byte_images_dataset(images);
}

static struct normalization parse(const char *text)
{
    struct normalization normalization;
    char why[256];
    assert_int_equal(normalization_parse(text, &normalization, why, sizeof(why)), STATUS_OK);
    return normalization;
}

static struct dataset *open_as(const char *text)
{
    struct normalization normalization = parse(text);
    struct dataset *dataset;
    assert_int_equal(dataset_normalize(open_records(), &normalization, &dataset), STATUS_OK);
    return dataset;
}

/* What is read of the second image, which has label 1. */
static void read_second(const struct dataset *dataset, float ret_pixels[PIXELS])
{
    uint32_t label;
    assert_int_equal(dataset_read(dataset, 1, ret_pixels, &label), STATUS_OK);
    assert_int_equal(label, 1);
}

static void each_channel_has_its_own_figures(void **state)
{
    (void)state;
    struct dataset *dataset = open_as("0,0.5,1/1,0.5,2");
    float pixels[PIXELS];
    read_second(dataset, pixels);
    for (uint32_t i = 0; i < PIXELS; i++) {
        float share = (float)records[1 + PIXELS + 1 + i] / 255;
        float expected = i < PLANE ? share : i < 2 * PLANE ? share * 2 - 1 : (share - 1) / 2;
        assert_float_equal(pixels[i], expected, 1e-6F);
    }
    dataset_close(dataset);
}

static void none_makes_shares_of_255(void **state)
{
    (void)state;
    struct dataset *dataset = open_as("none");
    float pixels[PIXELS];
    read_second(dataset, pixels);
    for (uint32_t i = 0; i < PIXELS; i++) {
        assert_float_equal(pixels[i], (float)records[1 + PIXELS + 1 + i] / 255, 1e-7F);
    }
    dataset_close(dataset);
}

static void the_usual_figures_given_make_the_usual_bits(void **state)
{
    (void)state;
    struct dataset *usual = open_as("usual");
    struct dataset *given = open_as("0.4914,0.4822,0.4465/0.2470,0.2435,0.2616");
    float pixels[2][PIXELS];
    read_second(usual, pixels[0]);
    read_second(given, pixels[1]);
    assert_memory_equal(pixels[0], pixels[1], sizeof(pixels[0]));
    assert_ptr_equal(usual->ops, &byte_ops); // nothing is in between
    dataset_close(usual);
    dataset_close(given);
}

/* A device that makes pixels itself gets the figures by `describe`, and must get the same bits. */
static void whoever_converts_bytes_gets_the_same_pixels(void **state)
{
    (void)state;
    struct dataset *dataset = open_as("0.1,0.2,0.3/0.4,0.5,0.6");
    struct pixels_source source;
    uint8_t bytes[PIXELS];
    uint32_t label;
    float pixels[PIXELS], converted[PIXELS];
    read_second(dataset, pixels);
    assert_true(dataset_describe(dataset, &source));
    assert_int_equal(pixels_bytes(&source), PIXELS);
    assert_int_equal(dataset_read_bytes(dataset, 1, bytes, &label), STATUS_OK);
    assert_memory_equal(bytes, records + 1 + PIXELS + 1, sizeof(bytes));
    dataset_convert(dataset, bytes, converted);
    assert_memory_equal(converted, pixels, sizeof(pixels));
    for (uint32_t i = 0; i < PIXELS; i++) {
        float made = (float)bytes[i] * source.scale[i / PLANE] + source.shift[i / PLANE];
        assert_memory_equal(&made, &pixels[i], sizeof(made));
    }
    dataset_close(dataset);
}

static void scaled_images_have_the_figures_too(void **state)
{
    (void)state;
    struct dataset *dataset;
    struct pixels_source source;
    float pixels[PIXELS * 4];
    uint32_t label;
    assert_int_equal(dataset_resize(open_as("none"), 4, &dataset), STATUS_OK);
    assert_true(dataset_describe(dataset, &source));
    assert_true(source.shift[0] == 0 && source.row_taps != NULL);
    assert_int_equal(dataset_read(dataset, 0, pixels, &label), STATUS_OK);
    assert_float_equal(pixels[0], 0, 1e-7F); // the corner's own pixel
    assert_float_equal(pixels[15], 1, 1e-7F);
    dataset_close(dataset);
}

static void what_does_not_fit_the_images_is_refused(void **state)
{
    (void)state;
    struct normalization grey = parse("0.5/0.5"), none = parse("none");
    static const struct dataset_options options = {.split = DATASET_TRAIN, .seed = 1};
    struct dataset *dataset, *drawn;
    captured_log_begin();
    assert_int_equal(dataset_normalize(open_records(), &grey, &dataset), STATUS_INVALID);
    assert_non_null(
        strstr(captured_log_end(), "means for 1 channel; the images have 3: give a mean"));
    assert_int_equal(dataset_open("shapes", &options, &drawn), STATUS_OK);
    captured_log_begin();
    assert_int_equal(dataset_normalize(drawn, &none, &dataset), STATUS_INVALID);
    assert_non_null(
        strstr(captured_log_end(), "--normalize needs images that are stored as bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_channel_has_its_own_figures),
        cmocka_unit_test(none_makes_shares_of_255),
        cmocka_unit_test(the_usual_figures_given_make_the_usual_bits),
        cmocka_unit_test(whoever_converts_bytes_gets_the_same_pixels),
        cmocka_unit_test(scaled_images_have_the_figures_too),
        cmocka_unit_test(what_does_not_fit_the_images_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
