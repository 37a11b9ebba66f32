/* Dataset `cifar10`: Krizhevsky's 60,000 small photographs (2009), from their binary files.
 *
 * A file may hold fewer records than the official 10,000, so that a part of the data can be used as
 * if it were all. */
#include "worker/data/cifar10.h"

#include "common/base/log.h"
#include "worker/data/dataset_rows.h"

#include <stdio.h>

#define ADVICE                                                                         \
    "--data cifar10:DIR wants the folder of data_batch_1.bin to data_batch_5.bin and " \
    "test_batch.bin, unpacked from https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"

#define FOLDER "cifar-10-batches-bin/" // of the official archive

// Ways to write the name of each file of a split.
static const char *const train_names[][3] = {
    {"data_batch_1.bin", FOLDER "data_batch_1.bin", NULL},
    {"data_batch_2.bin", FOLDER "data_batch_2.bin", NULL},
    {"data_batch_3.bin", FOLDER "data_batch_3.bin", NULL},
    {"data_batch_4.bin", FOLDER "data_batch_4.bin", NULL},
    {"data_batch_5.bin", FOLDER "data_batch_5.bin", NULL},
    {NULL},
};

static const char *const test_names[][3] = {
    {"test_batch.bin", FOLDER "test_batch.bin", NULL},
    {NULL},
};

const struct byte_format cifar10_format = {
    .ops = &dataset_cifar10_ops,
    .sample = {.channels = 3, .rows = 32, .columns = 32},
    .class_count = 10,
    // Of the 50,000 training images, to four digits.
    .mean = {0.4914f, 0.4822f, 0.4465f},
    .deviation = {0.2470f, 0.2435f, 0.2616f},
};

enum status cifar10_parse(const uint8_t *bytes, size_t size, struct byte_records *ret_records,
                          char *ret_why, size_t why_size)
{
    uint64_t count = size / CIFAR10_RECORD_BYTES;
    if (count == 0 || count > CIFAR10_FILE_RECORDS_MAX || size % CIFAR10_RECORD_BYTES != 0) {
        snprintf(ret_why, why_size,
                 "it has %zu bytes; expected were %u records of %u bytes (fewer are fine, parts "
                 "of records are not)",
                 size, CIFAR10_FILE_RECORDS_MAX, CIFAR10_RECORD_BYTES);
        return STATUS_MALFORMED;
    }
    *ret_records = (struct byte_records){
        .labels = bytes,
        .pixels = bytes + 1,
        .label_stride = CIFAR10_RECORD_BYTES,
        .pixel_stride = CIFAR10_RECORD_BYTES,
        .count = count,
    };
    return STATUS_OK;
}

static enum status add_file(struct byte_images *images, const char *folder,
                            const char *const *names)
{
    struct data_file *file;
    enum status status = data_file_open(folder, names, ADVICE, &file);
    if (status != STATUS_OK) {
        return status;
    }
    char why[DATA_FILE_WHY_BYTES] = "";
    struct byte_records records;
    status = cifar10_parse(file->bytes, file->size, &records, why, sizeof(why));
    if (status == STATUS_OK) {
        status = byte_images_add(images, &records, file, why, sizeof(why));
    }
    if (status == STATUS_MALFORMED) {
        log_error("%s is not a CIFAR-10 file: %s; " ADVICE, file->path, why);
    }
    if (status != STATUS_OK) {
        data_file_close(file);
    }
    return status;
}

static enum status cifar10_open(const char *path, uint64_t seed, enum dataset_split split,
                                struct dataset **ret_dataset)
{
    (void)seed;
    struct byte_images *images;
    enum status status = byte_images_create(&cifar10_format, &images);
    if (status != STATUS_OK) {
        return status;
    }
    const char *const(*names)[3] = split == DATASET_TRAIN ? train_names : test_names;
    for (uint32_t i = 0; names[i][0] != NULL; i++) {
        status = add_file(images, path, names[i]);
        if (status != STATUS_OK) {
            byte_images_destroy(images);
            return status;
        }
    }
    *ret_dataset = byte_images_dataset(images);
    return STATUS_OK;
}

const struct dataset_ops dataset_cifar10_ops = {
    .open = cifar10_open,
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .close = byte_images_close,
};
