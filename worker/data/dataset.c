/* Finds a dataset in the table, and calls its functions. */
#include "worker/data/dataset.h"

#include "common/base/log.h"
#include "common/vector/float_loops.h"
#include "common/vector/layout.h"
#include "worker/data/dataset_rows.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Of each split, into the digest that tells other data from the same.
#define DIGEST_SAMPLES 16

struct row {
    const char *name;
    const char *path; // "", ":DIR", ":FILE", "[:DATA]"
    const struct dataset_ops *ops;
};

static const struct row rows[] = {
#define X(identifier, name, path, summary) {name, path, &dataset_##identifier##_ops},
    DATASET_MAP(X)
#undef X
};

// ", shapes, cifar10": for messages, from the third byte on.
#define X(identifier, name, path, summary) ", " name
static const char known_names[] = DATASET_MAP(X);
#undef X

static const struct row *find_row(const char *name, size_t name_size)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strlen(rows[i].name) == name_size && memcmp(rows[i].name, name, name_size) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

enum status dataset_open(const char *data, const struct dataset_options *options,
                         struct dataset **ret_dataset)
{
    assert(options->split == DATASET_TRAIN || options->split == DATASET_TEST);
    size_t name_size = strcspn(data, ":");
    const char *path = data[name_size] == ':' ? data + name_size + 1 : "";
    const struct row *row = find_row(data, name_size);
    if (row == NULL) {
        log_error("--data: no dataset is called \"%.*s\"; there are %s", (int)name_size, data,
                  known_names + 2);
        return STATUS_INVALID;
    }
    if (row->path[0] == ':' && path[0] == '\0') {
        log_error("--data: %s needs %s: --data %s%s", row->name,
                  strcmp(row->path, ":DIR") == 0 ? "the folder of its files" : "its file",
                  row->name, row->path);
        return STATUS_INVALID;
    }
    if (row->path[0] == '\0' && path[0] != '\0') {
        log_error("--data: %s needs no files; leave out \":%s\"", row->name, path);
        return STATUS_INVALID;
    }
    enum status status = row->ops->open(path, options, ret_dataset);
    if (status == STATUS_NO_MEMORY) {
        log_error("not enough memory for the dataset %s", data);
    }
    assert(status != STATUS_OK || (*ret_dataset)->sample_count > 0);
    return status;
}

enum status dataset_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                         uint32_t *ret_label)
{
    assert(index < dataset->sample_count);
    enum status status = dataset->ops->read(dataset, index, ret_pixels, ret_label);
    assert(status != STATUS_OK || *ret_label < dataset->class_count);
    return status;
}

bool dataset_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    if (dataset->ops->describe == NULL) {
        return false;
    }
    dataset->ops->describe(dataset, ret_source);
    return true;
}

enum status dataset_read_bytes(const struct dataset *dataset, uint64_t index, uint8_t *ret_bytes,
                               uint32_t *ret_label)
{
    assert(index < dataset->sample_count);
    enum status status = dataset->ops->read_bytes(dataset, index, ret_bytes, ret_label);
    assert(status != STATUS_OK || *ret_label < dataset->class_count);
    return status;
}

bool dataset_has_parts(const struct dataset *dataset)
{
    return dataset->ops->read_part != NULL;
}

enum status dataset_read_part(const struct dataset *dataset, uint64_t index,
                              const struct crop_draw *part, uint8_t *ret_bytes, uint32_t *ret_label)
{
    assert(index < dataset->sample_count);
    enum status status = dataset->ops->read_part(dataset, index, part, ret_bytes, ret_label);
    assert(status != STATUS_OK || *ret_label < dataset->class_count);
    return status;
}

void dataset_scale_bytes(const struct pixels_source *source, const uint8_t *bytes,
                         float *ret_pixels)
{
    float_loop *loop = float_loops[variant_best()];
    size_t plane = (size_t)source->rows * source->columns;
    for (uint32_t c = 0; c < source->channels; c++) {
        loop(bytes + c * plane, plane, source->scale[c], source->shift[c], ret_pixels + c * plane);
    }
}

void dataset_convert_as_described(const struct dataset *dataset, const uint8_t *bytes,
                                  float *ret_pixels)
{
    struct pixels_source source;
    dataset->ops->describe(dataset, &source);
    dataset_scale_bytes(&source, bytes, ret_pixels);
}

enum status dataset_read_by_bytes(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                                  uint32_t *ret_label)
{
    const struct shape *sample = &dataset->sample;
    uint8_t *bytes = malloc((size_t)sample->channels * sample->rows * sample->columns);
    if (bytes == NULL) {
        log_error("not enough memory for an image");
        return STATUS_NO_MEMORY;
    }
    enum status status = dataset->ops->read_bytes(dataset, index, bytes, ret_label);
    if (status == STATUS_OK) {
        dataset->ops->convert(dataset, bytes, ret_pixels);
    }
    free(bytes);
    return status;
}

void dataset_convert(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels)
{
    dataset->ops->convert(dataset, bytes, ret_pixels);
}

void dataset_close(struct dataset *dataset)
{
    if (dataset != NULL) {
        dataset->ops->close(dataset);
    }
}

static enum status add_to_digest(const struct dataset *dataset, uint64_t count, uint64_t *digest)
{
    size_t pixels =
        (size_t)dataset->sample.channels * dataset->sample.rows * dataset->sample.columns;
    float *sample = calloc(pixels, sizeof(*sample));
    if (dataset->names_digest != 0) {
        *digest = layout_digest_add(*digest, &dataset->names_digest, sizeof(uint64_t));
    }
    enum status status = sample != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (uint64_t i = 0; status == STATUS_OK && i < DIGEST_SAMPLES && i < count; i++) {
        uint32_t label;
        status = dataset_read(dataset, i * (count / DIGEST_SAMPLES + 1) % count, sample, &label);
        if (status == STATUS_OK) {
            *digest = layout_digest_add(*digest, sample, pixels * sizeof(*sample));
            *digest = layout_digest_add(*digest, &label, sizeof(label));
        }
    }
    free(sample);
    return status;
}

enum status dataset_digest(const struct dataset *train, uint64_t train_count,
                           const struct dataset *test, uint64_t test_count, uint64_t *ret_digest)
{
    *ret_digest = LAYOUT_DIGEST_SEED;
    enum status status = add_to_digest(train, train_count, ret_digest);
    return status == STATUS_OK ? add_to_digest(test, test_count, ret_digest) : status;
}
