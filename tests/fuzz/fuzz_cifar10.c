/* Fuzzes CIFAR-10's files: what is accepted is exactly what the format allows, and every pixel of
 * it can be told from what was read. */
#include "worker/data/byte_images.h"
#include "worker/data/cifar10.h"

#include <assert.h>
#include <stdbool.h>

#define CHANNEL_PIXELS 1024
#define PIXELS         (3 * CHANNEL_PIXELS)

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool is_cifar10(const uint8_t *bytes, size_t size)
{
    if (size == 0 || size % (1 + PIXELS) != 0 || size / (1 + PIXELS) > CIFAR10_FILE_RECORDS_MAX) {
        return false;
    }
    for (size_t i = 0; i < size; i += 1 + PIXELS) {
        if (bytes[i] > 9) {
            return false;
        }
    }
    return true;
}

static uint8_t byte_of(float pixel, uint32_t channel)
{
    float share = pixel * cifar10_format.deviation[channel] + cifar10_format.mean[channel];
    return (uint8_t)(share * 255 + 0.5f);
}

static void check_record(const struct dataset *dataset, uint64_t index, const uint8_t *record)
{
    float pixels[PIXELS];
    uint32_t label;
    dataset_read(dataset, index, pixels, &label);
    assert(label == record[0]);
    for (uint32_t i = 0; i < PIXELS; i++) {
        assert(byte_of(pixels[i], i / CHANNEL_PIXELS) == record[1 + i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char why[DATA_FILE_WHY_BYTES];
    struct byte_records records;
    struct byte_images *images;
    if (byte_images_create(&cifar10_format, &images) != STATUS_OK) {
        return 0;
    }
    enum status status = cifar10_parse(bytes, size, &records, why, sizeof(why));
    if (status == STATUS_OK) {
        status = byte_images_add(images, &records, NULL, why, sizeof(why));
    }
    assert((status == STATUS_OK) == is_cifar10(bytes, size));
    struct dataset *dataset = byte_images_dataset(images);
    assert(dataset->sample_count == (status == STATUS_OK ? size / (1 + PIXELS) : 0));
    for (uint64_t i = 0; i < dataset->sample_count; i++) {
        check_record(dataset, i, bytes + i * (1 + PIXELS));
    }
    dataset_close(dataset);
    return 0;
}
