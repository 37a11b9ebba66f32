/* Datasets `mnist` and `fashion-mnist`: grey images of 28 x 28, from a pair of IDX files. */
#include "worker/data/idx.h"

#include "common/base/log.h"
#include "worker/data/dataset_rows.h"
#include "worker/data/gzip.h"

#include <stdio.h>
#include <string.h>

#define SIDE_PIXELS      28
#define HEADER_BYTES_MAX 16
#define NAMES_MAX        5

#define ADVICE(name, address)                                                                    \
    "--data " name ":DIR wants the folder of train-images-idx3-ubyte, train-labels-idx1-ubyte, " \
    "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, as they are or with .gz, from " address

static const char mnist_advice[] =
    ADVICE("mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/");
static const char fashion_mnist_advice[] =
    ADVICE("fashion-mnist", "https://github.com/zalandoresearch/fashion-mnist");

// Some mirrors write a dot.
#define NAMES(stem, suffix)                                                                   \
    {                                                                                         \
        stem "-" suffix, stem "-" suffix ".gz", stem "." suffix, stem "." suffix ".gz", NULL, \
    }

static const char *const file_names[2][2][NAMES_MAX] = {
    [DATASET_TRAIN] = {[IDX_IMAGES] = NAMES("train-images", "idx3-ubyte"),
                       [IDX_LABELS] = NAMES("train-labels", "idx1-ubyte")},
    [DATASET_TEST] = {[IDX_IMAGES] = NAMES("t10k-images", "idx3-ubyte"),
                      [IDX_LABELS] = NAMES("t10k-labels", "idx1-ubyte")},
};

// Mean and deviation are those of the 60,000 training images, to four digits.
const struct byte_format idx_mnist_format = {
    .ops = &dataset_mnist_ops,
    .sample = {.channels = 1, .rows = SIDE_PIXELS, .columns = SIDE_PIXELS},
    .class_count = 10,
    .mean = {0.1307f},
    .deviation = {0.3081f},
};

const struct byte_format idx_fashion_mnist_format = {
    .ops = &dataset_fashion_mnist_ops,
    .sample = {.channels = 1, .rows = SIDE_PIXELS, .columns = SIDE_PIXELS},
    .class_count = 10,
    .mean = {0.2860f},
    .deviation = {0.3530f},
};

/* What a file of each kind must begin with. */
struct idx_header {
    uint32_t magic; // type 8 (unsigned bytes), number of dimensions
    size_t bytes;
    size_t bytes_each; // of one value
};

static const struct idx_header headers[] = {
    [IDX_IMAGES] = {.magic = 0x0803, .bytes = 16, .bytes_each = (size_t)SIDE_PIXELS * SIDE_PIXELS},
    [IDX_LABELS] = {.magic = 0x0801, .bytes = 8, .bytes_each = 1},
};

static uint32_t read_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Checks the header; writes how many values it claims. */
static enum status check_header(enum idx_kind kind, const uint8_t *bytes, uint64_t *ret_count,
                                char *ret_why, size_t why_size)
{
    uint32_t magic = read_u32(bytes);
    if (magic != headers[kind].magic) {
        snprintf(ret_why, why_size, "its magic number is 0x%08X; expected was 0x%08X", magic,
                 headers[kind].magic);
        return STATUS_MALFORMED;
    }
    uint32_t count = read_u32(bytes + 4);
    if (count == 0 || count > IDX_COUNT_MAX) {
        snprintf(ret_why, why_size, "its header claims %u values; expected were 1 to %u", count,
                 IDX_COUNT_MAX);
        return STATUS_MALFORMED;
    }
    if (kind == IDX_IMAGES &&
        (read_u32(bytes + 8) != SIDE_PIXELS || read_u32(bytes + 12) != SIDE_PIXELS)) {
        snprintf(ret_why, why_size, "its images have %u x %u pixels; expected were %u x %u",
                 read_u32(bytes + 8), read_u32(bytes + 12), SIDE_PIXELS, SIDE_PIXELS);
        return STATUS_MALFORMED;
    }
    *ret_count = count;
    return STATUS_OK;
}

/* Writes the first bytes of what the file holds, packed or not. */
static enum status read_header(const struct data_file *file, size_t count, uint8_t *ret_bytes,
                               char *ret_why, size_t why_size)
{
    if (gzip_is_packed(file->bytes, file->size)) {
        enum status status = gzip_peek(file->bytes, file->size, ret_bytes, count);
        if (status == STATUS_MALFORMED) {
            snprintf(ret_why, why_size, "gzip: its first %zu bytes cannot be unpacked", count);
        }
        return status;
    }
    if (file->size < count) {
        snprintf(ret_why, why_size, "it has %zu bytes; its header alone has %zu", file->size,
                 count);
        return STATUS_MALFORMED;
    }
    memcpy(ret_bytes, file->bytes, count);
    return STATUS_OK;
}

static enum status unpack(struct data_file *file, size_t size, char *ret_why, size_t why_size)
{
    // Or a few bytes could have us allocate for a million images.
    if (size / GZIP_RATIO_MAX > file->size) {
        snprintf(ret_why, why_size, "gzip: %zu bytes cannot hold the %zu that its header claims",
                 file->size, size);
        return STATUS_MALFORMED;
    }
    return data_file_unpack(file, size, ret_why, why_size);
}

enum status idx_read(enum idx_kind kind, struct data_file *file, struct idx_values *ret_values,
                     char *ret_why, size_t why_size)
{
    uint8_t header[HEADER_BYTES_MAX];
    uint64_t count;
    enum status status = read_header(file, headers[kind].bytes, header, ret_why, why_size);
    if (status == STATUS_OK) {
        status = check_header(kind, header, &count, ret_why, why_size);
    }
    if (status != STATUS_OK) {
        return status;
    }
    size_t size = headers[kind].bytes + count * headers[kind].bytes_each;
    if (gzip_is_packed(file->bytes, file->size)) {
        status = unpack(file, size, ret_why, why_size);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (file->size != size) {
        snprintf(ret_why, why_size,
                 "it has %zu bytes; expected were %zu, as its header claims %llu values",
                 file->size, size, (unsigned long long)count);
        return STATUS_MALFORMED;
    }
    *ret_values = (struct idx_values){
        .bytes = file->bytes + headers[kind].bytes,
        .bytes_each = headers[kind].bytes_each,
        .count = count,
    };
    return STATUS_OK;
}

/* ---- the pair of files of a split ---- */

struct idx_set {
    const struct byte_format *format;
    const char *advice;
    const char *folder;
    enum dataset_split split;
};

static enum status open_file(const struct idx_set *set, enum idx_kind kind,
                             struct data_file **ret_file, struct idx_values *ret_values)
{
    struct data_file *file;
    enum status status =
        data_file_open(set->folder, file_names[set->split][kind], set->advice, &file);
    if (status != STATUS_OK) {
        return status;
    }
    char why[DATA_FILE_WHY_BYTES] = "";
    status = idx_read(kind, file, ret_values, why, sizeof(why));
    if (status == STATUS_MALFORMED) {
        log_error("%s is not an IDX file of %s: %s; %s", file->path,
                  kind == IDX_IMAGES ? "images" : "labels", why, set->advice);
    }
    if (status != STATUS_OK) {
        data_file_close(file);
        return status;
    }
    *ret_file = file;
    return STATUS_OK;
}

/* Takes the file of images on success. */
static enum status add_pair(const struct idx_set *set, struct byte_images *images,
                            struct data_file *image_file, const struct idx_values *image_values)
{
    struct data_file *label_file;
    struct idx_values labels;
    enum status status = open_file(set, IDX_LABELS, &label_file, &labels);
    if (status != STATUS_OK) {
        return status;
    }
    char why[DATA_FILE_WHY_BYTES] = "";
    if (labels.count != image_values->count) {
        snprintf(why, sizeof(why), "it has %llu labels for %llu images",
                 (unsigned long long)labels.count, (unsigned long long)image_values->count);
        status = STATUS_MALFORMED;
    } else {
        struct byte_records records = {
            .labels = labels.bytes,
            .pixels = image_values->bytes,
            .label_stride = labels.bytes_each,
            .pixel_stride = image_values->bytes_each,
            .count = labels.count,
        };
        status = byte_images_add(images, &records, image_file, why, sizeof(why));
    }
    if (status == STATUS_MALFORMED) {
        log_error("%s does not belong to %s: %s; %s", label_file->path, image_file->path, why,
                  set->advice);
    }
    data_file_close(label_file);
    return status;
}

static enum status open_set(const struct idx_set *set, struct dataset **ret_dataset)
{
    struct data_file *image_file;
    struct idx_values image_values;
    enum status status = open_file(set, IDX_IMAGES, &image_file, &image_values);
    if (status != STATUS_OK) {
        return status;
    }
    struct byte_images *images;
    status = byte_images_create(set->format, &images);
    if (status != STATUS_OK) {
        data_file_close(image_file);
        return status;
    }
    status = add_pair(set, images, image_file, &image_values);
    if (status != STATUS_OK) {
        data_file_close(image_file);
        byte_images_destroy(images);
        return status;
    }
    *ret_dataset = byte_images_dataset(images);
    return STATUS_OK;
}

static enum status mnist_open(const char *path, const struct dataset_options *options,
                              struct dataset **ret_dataset)
{
    struct idx_set set = {&idx_mnist_format, mnist_advice, path, options->split};
    return open_set(&set, ret_dataset);
}

static enum status fashion_mnist_open(const char *path, const struct dataset_options *options,
                                      struct dataset **ret_dataset)
{
    struct idx_set set = {&idx_fashion_mnist_format, fashion_mnist_advice, path, options->split};
    return open_set(&set, ret_dataset);
}

const struct dataset_ops dataset_mnist_ops = {
    .open = mnist_open,
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};

const struct dataset_ops dataset_fashion_mnist_ops = {
    .open = fashion_mnist_open,
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};
