/* Datasets `cifar10` and `cifar100`: Krizhevsky's 60,000 small photographs each (2009), from their
 * binary files.
 *
 * A file may hold fewer records than the official ones, so that a part of the data can be used as
 * if it were all. */
#include "worker/data/cifar.h"

#include "common/base/log.h"
#include "worker/data/dataset_rows.h"

#include <stdio.h>

// Ways to write the name of each file of a split; the second is that of the official archive.
#define NAMES_OF(folder, name)      \
    {                               \
        name, folder "/" name, NULL \
    }
#define CIFAR10(name)  NAMES_OF("cifar-10-batches-bin", name)
#define CIFAR100(name) NAMES_OF("cifar-100-binary", name)

static const char *const train_names_10[][3] = {
    CIFAR10("data_batch_1.bin"), CIFAR10("data_batch_2.bin"), CIFAR10("data_batch_3.bin"),
    CIFAR10("data_batch_4.bin"), CIFAR10("data_batch_5.bin"), {NULL},
};
static const char *const test_names_10[][3] = {CIFAR10("test_batch.bin"), {NULL}};
static const char *const train_names_100[][3] = {CIFAR100("train.bin"), {NULL}};
static const char *const test_names_100[][3] = {CIFAR100("test.bin"), {NULL}};

// Means and deviations are those of the 50,000 training images, to four digits.
const struct cifar cifar10 = {
    .name = "CIFAR-10",
    .advice = "--data cifar10:DIR wants the folder of data_batch_1.bin to data_batch_5.bin and "
              "test_batch.bin, unpacked from "
              "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    .format =
        {
            .ops = &dataset_cifar10_ops,
            .sample = {.channels = 3, .rows = 32, .columns = 32},
            .class_count = 10,
            .mean = {0.4914f, 0.4822f, 0.4465f},
            .deviation = {0.2470f, 0.2435f, 0.2616f},
        },
    .train_names = train_names_10,
    .test_names = test_names_10,
    .label_bytes = 1,
    .file_records_max = 10000,
};

const struct cifar cifar100 = {
    .name = "CIFAR-100",
    .advice = "--data cifar100:DIR wants the folder of train.bin and test.bin, unpacked from "
              "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    .format =
        {
            .ops = &dataset_cifar100_ops,
            .sample = {.channels = 3, .rows = 32, .columns = 32},
            .class_count = 100,
            .mean = {0.5071f, 0.4865f, 0.4409f},
            .deviation = {0.2673f, 0.2564f, 0.2762f},
        },
    .train_names = train_names_100,
    .test_names = test_names_100,
    .label_bytes = 2, // of 20 groups of classes, which are not used; of the class
    .file_records_max = 50000,
};

enum status cifar_parse(const struct cifar *cifar, const uint8_t *bytes, size_t size,
                        struct byte_records *ret_records, char *ret_why, size_t why_size)
{
    uint32_t record_bytes = cifar->label_bytes + CIFAR_PIXEL_BYTES;
    uint64_t count = size / record_bytes;
    if (count == 0 || count > cifar->file_records_max || size % record_bytes != 0) {
        snprintf(ret_why, why_size,
                 "it has %zu bytes; expected were %u records of %u bytes (fewer are fine, parts "
                 "of records are not)",
                 size, cifar->file_records_max, record_bytes);
        return STATUS_MALFORMED;
    }
    *ret_records = (struct byte_records){
        .labels = bytes + cifar->label_bytes - 1,
        .pixels = bytes + cifar->label_bytes,
        .label_stride = record_bytes,
        .pixel_stride = record_bytes,
        .count = count,
    };
    return STATUS_OK;
}

static enum status add_file(const struct cifar *cifar, struct byte_images *images,
                            const char *folder, const char *const *names)
{
    struct data_file *file;
    enum status status = data_file_open(folder, names, cifar->advice, &file);
    if (status != STATUS_OK) {
        return status;
    }
    char why[DATA_FILE_WHY_BYTES] = "";
    struct byte_records records;
    status = cifar_parse(cifar, file->bytes, file->size, &records, why, sizeof(why));
    if (status == STATUS_OK) {
        status = byte_images_add(images, &records, file, why, sizeof(why));
    }
    if (status == STATUS_MALFORMED) {
        log_error("%s is not a %s file: %s; %s", file->path, cifar->name, why, cifar->advice);
    }
    if (status != STATUS_OK) {
        data_file_close(file);
    }
    return status;
}

static enum status open_split(const struct cifar *cifar, const char *path, enum dataset_split split,
                              struct dataset **ret_dataset)
{
    struct byte_images *images;
    enum status status = byte_images_create(&cifar->format, &images);
    if (status != STATUS_OK) {
        return status;
    }
    const char *const(*names)[3] = split == DATASET_TRAIN ? cifar->train_names : cifar->test_names;
    for (uint32_t i = 0; names[i][0] != NULL; i++) {
        status = add_file(cifar, images, path, names[i]);
        if (status != STATUS_OK) {
            byte_images_destroy(images);
            return status;
        }
    }
    *ret_dataset = byte_images_dataset(images);
    return STATUS_OK;
}

static enum status cifar10_open(const char *path, const struct dataset_options *options,
                                struct dataset **ret_dataset)
{
    return open_split(&cifar10, path, options->split, ret_dataset);
}

static enum status cifar100_open(const char *path, const struct dataset_options *options,
                                 struct dataset **ret_dataset)
{
    return open_split(&cifar100, path, options->split, ret_dataset);
}

const struct dataset_ops dataset_cifar10_ops = {
    .open = cifar10_open,
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};

const struct dataset_ops dataset_cifar100_ops = {
    .open = cifar100_open,
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};
