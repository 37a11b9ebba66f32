/* Datasets `cifar10` and `cifar100`: Krizhevsky's 60,000 small photographs each (2009), from their
 * binary files.
 *
 * A file may hold fewer records than the official ones, so that a part of the data can be used as
 * if it were all. */
#include "worker/data/cifar.h"

#include "common/base/log.h"
#include "worker/data/class_names.h"
#include "worker/data/dataset_rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static const char *const class_names_100[] = CIFAR100("fine_label_names.txt");

#define CLASSES_MAX 100

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
    .class_names = class_names_100,
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

/* Cuts a text into lines, of which a last empty one does not count, and each has to say something.
 * Returns how many there are, or `max` + 1 if they are more. */
static uint32_t cut_lines(char *text, char **ret_lines, uint32_t max)
{
    uint32_t count = 0;
    for (char *line = text; *line != '\0' && count <= max; count++) {
        size_t size = strcspn(line, "\n");
        char *next = line + size + (line[size] == '\n');
        line[size] = '\0';
        line[strcspn(line, "\r")] = '\0';
        if (line[0] == '\0') {
            break;
        }
        if (count < max) {
            ret_lines[count] = line;
        }
        line = next;
    }
    return count;
}

static enum status read_class_names(const struct cifar *cifar, const struct data_file *file,
                                    struct byte_images *images)
{
    char *lines[CLASSES_MAX], *list;
    uint32_t class_count = cifar->format.class_count;
    char *text = strndup(file->size > 0 ? (const char *)file->bytes : "", file->size);
    if (text == NULL) {
        return STATUS_NO_MEMORY;
    }
    uint32_t count = cut_lines(text, lines, class_count);
    list = count == class_count ? class_names_list(lines, count) : NULL;
    free(text);
    if (count != class_count) {
        log_error("%s must have the names of %u classes, one on each line: take that of the "
                  "official archive, or remove it",
                  file->path, class_count);
        return STATUS_MALFORMED;
    }
    if (list == NULL) {
        return STATUS_NO_MEMORY;
    }
    byte_images_take_class_text(images, list);
    return STATUS_OK;
}

/* Names of classes are for people, so they may be missing. */
static enum status add_class_names(const struct cifar *cifar, const char *folder,
                                   struct byte_images *images)
{
    char path[DATA_FILE_PATH_BYTES];
    const char *const *name = cifar->class_names;
    struct data_file *file;
    bool is_there = false;
    for (; name != NULL && *name != NULL && !is_there; name++) {
        int size = snprintf(path, sizeof(path), "%s/%s", folder, *name);
        is_there = size < (int)sizeof(path) && access(path, F_OK) == 0;
    }
    if (!is_there) {
        return STATUS_OK;
    }
    enum status status = data_file_open(folder, cifar->class_names, cifar->advice, &file);
    if (status != STATUS_OK) {
        return status;
    }
    status = read_class_names(cifar, file, images);
    data_file_close(file);
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
    status = add_class_names(cifar, path, images);
    if (status != STATUS_OK) {
        byte_images_destroy(images);
        return status;
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
