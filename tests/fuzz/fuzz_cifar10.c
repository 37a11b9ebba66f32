/* Fuzzes CIFAR's files, of both kinds: what is accepted is exactly what the format allows, and
 * every pixel of it can be told from what was read. */
#include "worker/data/byte_images.h"
#include "worker/data/cifar.h"

#include <assert.h>
#include <stdbool.h>

#define CHANNEL_PIXELS 1024
#define PIXELS         (3 * CHANNEL_PIXELS)

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static size_t record_bytes(const struct cifar *cifar)
{
    return cifar->label_bytes + PIXELS;
}

static bool is_sound(const struct cifar *cifar, const uint8_t *bytes, size_t size)
{
    size_t record = record_bytes(cifar);
    if (size == 0 || size % record != 0 || size / record > cifar->file_records_max) {
        return false;
    }
    for (size_t i = cifar->label_bytes - 1; i < size; i += record) {
        if (bytes[i] >= cifar->format.class_count) {
            return false;
        }
    }
    return true;
}

static uint8_t byte_of(const struct cifar *cifar, float pixel, uint32_t channel)
{
    float share = pixel * cifar->format.deviation[channel] + cifar->format.mean[channel];
    return (uint8_t)(share * 255 + 0.5f);
}

static void check_record(const struct cifar *cifar, const struct dataset *dataset, uint64_t index,
                         const uint8_t *record)
{
    float pixels[PIXELS];
    uint32_t label;
    enum status status = dataset_read(dataset, index, pixels, &label);
    assert(status == STATUS_OK);
    assert(label == record[cifar->label_bytes - 1]);
    for (uint32_t i = 0; i < PIXELS; i++) {
        assert(byte_of(cifar, pixels[i], i / CHANNEL_PIXELS) == record[cifar->label_bytes + i]);
    }
}

static void check_file(const struct cifar *cifar, const uint8_t *bytes, size_t size)
{
    char why[DATA_FILE_WHY_BYTES];
    struct byte_records records;
    struct byte_images *images;
    if (byte_images_create(&cifar->format, &images) != STATUS_OK) {
        return;
    }
    enum status status = cifar_parse(cifar, bytes, size, &records, why, sizeof(why));
    if (status == STATUS_OK) {
        status = byte_images_add(images, &records, NULL, why, sizeof(why));
    }
    assert((status == STATUS_OK) == is_sound(cifar, bytes, size));
    struct dataset *dataset = byte_images_dataset(images);
    assert(dataset->sample_count == (status == STATUS_OK ? size / record_bytes(cifar) : 0));
    for (uint64_t i = 0; i < dataset->sample_count; i++) {
        check_record(cifar, dataset, i, bytes + i * record_bytes(cifar));
    }
    dataset_close(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    check_file(&cifar10, bytes, size);
    check_file(&cifar100, bytes, size);
    return 0;
}
