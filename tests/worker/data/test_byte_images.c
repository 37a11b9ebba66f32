/* Tests of images of bytes, over several pieces of memory. */
#include "worker/data/byte_images.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define PIXELS       12 // (2, 2, 3)
#define RECORD_BYTES ((size_t)PIXELS + 1)

static const struct dataset_ops ops = {.read = byte_images_read, .close = byte_images_close};

static const struct byte_format format = {
    .ops = &ops,
    .sample = {.channels = 2, .rows = 2, .columns = 3},
    .class_count = 4,
    // Scales that floats hold exactly: 255 * deviation is 1 and 2.
    .mean = {0, 0.5f},
    .deviation = {1.0f / 255, 2.0f / 255},
};

static struct byte_images *create(void)
{
    struct byte_images *images = NULL;
    assert_int_equal(byte_images_create(&format, &images), STATUS_OK);
    return images;
}

/* Records of a label and PIXELS bytes, numbered from `first`. */
static void fill(uint8_t *bytes, uint32_t count, uint32_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i * RECORD_BYTES] = (uint8_t)((first + i) % 4);
        memset(bytes + i * RECORD_BYTES + 1, (int)(first + i), PIXELS);
    }
}

static enum status add(struct byte_images *images, const uint8_t *bytes, uint32_t count, char *why)
{
    struct byte_records records = {bytes, bytes + 1, RECORD_BYTES, RECORD_BYTES, count};
    return byte_images_add(images, &records, NULL, why, DATA_FILE_WHY_BYTES);
}

static void records_of_all_pieces_are_read_by_one_index(void **state)
{
    (void)state;
    uint8_t first[3 * RECORD_BYTES], second[1 * RECORD_BYTES], third[20 * RECORD_BYTES];
    char why[DATA_FILE_WHY_BYTES];
    fill(first, 3, 0);
    fill(second, 1, 3);
    fill(third, 20, 4);
    struct byte_images *images = create();
    assert_int_equal(add(images, first, 3, why), STATUS_OK);
    assert_int_equal(add(images, second, 1, why), STATUS_OK);
    assert_int_equal(add(images, third, 20, why), STATUS_OK);
    struct dataset *dataset = byte_images_dataset(images);
    assert_int_equal(dataset->sample_count, 24);
    for (uint32_t i = 0; i < 24; i++) {
        float pixels[PIXELS];
        uint32_t label;
        assert_int_equal(dataset_read(dataset, i, pixels, &label), STATUS_OK);
        assert_int_equal(label, i % 4);
        for (uint32_t k = 0; k < PIXELS; k++) {
            float expected = k < 6 ? (float)i : ((float)i - 127.5f) / 2;
            assert_true(pixels[k] - expected < 1e-4f && expected - pixels[k] < 1e-4f);
        }
    }
    dataset_close(dataset);
}

static void every_byte_value_keeps_its_order(void **state)
{
    (void)state;
    static uint8_t bytes[256 * RECORD_BYTES];
    char why[DATA_FILE_WHY_BYTES];
    fill(bytes, 256, 0);
    struct byte_images *images = create();
    assert_int_equal(add(images, bytes, 256, why), STATUS_OK);
    float before = -1000;
    for (uint32_t i = 0; i < 256; i++) {
        float pixels[PIXELS];
        uint32_t label;
        assert_int_equal(dataset_read(byte_images_dataset(images), i, pixels, &label), STATUS_OK);
        assert_true(pixels[PIXELS - 1] > before);
        before = pixels[PIXELS - 1];
    }
    byte_images_destroy(images);
    byte_images_destroy(NULL);
}

static void a_label_out_of_range_adds_nothing(void **state)
{
    (void)state;
    uint8_t bytes[5 * RECORD_BYTES];
    char why[DATA_FILE_WHY_BYTES] = "";
    fill(bytes, 5, 0);
    bytes[4 * RECORD_BYTES] = 4;
    struct byte_images *images = create();
    assert_int_equal(add(images, bytes, 5, why), STATUS_MALFORMED);
    assert_string_equal(why, "record 4 (from 0) has label 4; labels are below 4");
    assert_int_equal(byte_images_dataset(images)->sample_count, 0);
    assert_int_equal(add(images, bytes, 4, why), STATUS_OK);
    assert_int_equal(byte_images_dataset(images)->sample_count, 4);
    byte_images_destroy(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_all_pieces_are_read_by_one_index),
        cmocka_unit_test(every_byte_value_keeps_its_order),
        cmocka_unit_test(a_label_out_of_range_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
