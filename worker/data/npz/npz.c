/* Dataset `npz`: arrays of images and labels in one file, as numpy.savez writes it.
 *
 * Images that are stored are mapped, and a worker touches only what it reads (and once all for
 * training, for checksum and figures). Deflated ones are unpacked into memory. Pixels are
 * normalised by the mean and deviation of the training images, of this file, to four digits. Where
 * it has no images for tests, some are held back from training. */
#include "common/base/log.h"
#include "worker/data/dataset_rows.h"
#include "worker/data/npz/npz_arrays.h"
#include "worker/data/statistics.h"
#include "worker/data/validation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Images and labels of a split. */
struct arrays {
    struct npz_images images; // owned
    uint32_t *labels;         // (images.count), owned
};

/* The file and its training images, which both splits of a process share: they are unpacked, and
 * their figures counted, once. */
struct core {
    uint32_t users;
    struct npz_file file; // owned
    struct arrays train;
    uint32_t class_count;
    float scale[PIXELS_CHANNELS_MAX], shift[PIXELS_CHANNELS_MAX];
};

struct npz {
    struct dataset dataset;
    struct core *core;           // owned with the other split
    struct arrays tests;         // where they are read
    const struct arrays *arrays; // that it has images of
    uint32_t *order;             // (sample_count) places among the images, owned; NULL: all of them
};

/* What arrays are called. */
struct names {
    const char *images[2], *labels[2]; // by split
};

static const struct names known_names[] = {
    {{"images", "test_images"}, {"labels", "test_labels"}},
    {{"x_train", "x_test"}, {"y_train", "y_test"}}, // by Keras
};

/* ---- reading ---- */

static uint64_t place_of(const struct npz *npz, uint64_t index)
{
    return npz->order != NULL ? npz->order[index] : index;
}

static enum status npz_read_bytes(const struct dataset *dataset, uint64_t index, uint8_t *ret_bytes,
                                  uint32_t *ret_label)
{
    const struct npz *npz = (const struct npz *)dataset;
    uint64_t place = place_of(npz, index);
    const struct npz_images *images = &npz->arrays->images;
    uint32_t channels = images->channels;
    size_t plane = (size_t)images->rows * images->columns;
    const uint8_t *bytes = images->bytes + place * plane * channels;
    for (uint32_t c = 0; c < channels; c++) {
        for (size_t i = 0; i < plane; i++) {
            ret_bytes[c * plane + i] = bytes[i * channels + c];
        }
    }
    *ret_label = npz->arrays->labels[place];
    return STATUS_OK;
}

static void npz_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    const struct npz *npz = (const struct npz *)dataset;
    *ret_source = (struct pixels_source){
        .channels = npz->arrays->images.channels,
        .rows = npz->arrays->images.rows,
        .columns = npz->arrays->images.columns,
    };
    memcpy(ret_source->scale, npz->core->scale, sizeof(npz->core->scale));
    memcpy(ret_source->shift, npz->core->shift, sizeof(npz->core->shift));
}

static void finish_arrays(struct arrays *arrays)
{
    npz_images_finish(&arrays->images);
    free(arrays->labels);
}

static void leave_core(struct core *core)
{
    core->users--;
    if (core->users == 0) {
        finish_arrays(&core->train);
        npz_file_close(&core->file);
        free(core);
    }
}

static void npz_close(struct dataset *dataset)
{
    struct npz *npz = (struct npz *)dataset;
    finish_arrays(&npz->tests);
    leave_core(npz->core);
    free(npz->order);
    free(npz);
}

/* ---- opening ---- */

static const struct names *find_names(const struct npz_file *file)
{
    for (size_t i = 0; i < sizeof(known_names) / sizeof(known_names[0]); i++) {
        if (npz_file_has(file, known_names[i].images[DATASET_TRAIN])) {
            return &known_names[i];
        }
    }
    return &known_names[0]; // to be named as missing
}

static enum status read_arrays(const struct npz_file *file, enum dataset_split split,
                               struct arrays *arrays)
{
    const struct names *names = find_names(file);
    enum status status = npz_images_read(file, names->images[split], &arrays->images);
    return status == STATUS_OK
               ? npz_labels_read(file, names->labels[split], arrays->images.count, &arrays->labels)
               : status;
}

static void use_arrays(struct npz *npz, const struct arrays *arrays)
{
    const struct npz_images *images = &arrays->images;
    npz->arrays = arrays;
    npz->dataset.sample = (struct shape){
        .channels = images->channels, .rows = images->rows, .columns = images->columns};
    npz->dataset.sample_count = images->count;
}

/* The places of all images, class by class, and from where on those of each (class_count + 1). */
static void sort_by_class(const struct npz *npz, uint32_t *places, uint64_t *begins)
{
    uint32_t class_count = npz->dataset.class_count;
    for (uint64_t i = 0; i < npz->arrays->images.count; i++) {
        begins[npz->arrays->labels[i] + 1]++;
    }
    for (uint32_t label = 0; label < class_count; label++) {
        begins[label + 1] += begins[label];
    }
    for (uint64_t i = npz->arrays->images.count; i-- > 0;) {
        places[--begins[npz->arrays->labels[i] + 1]] = (uint32_t)i;
    }
    // Each has been moved to where the class before it begins.
    memmove(begins, begins + 1, class_count * sizeof(*begins));
    begins[class_count] = npz->arrays->images.count;
}

/* Fills the order with the images that are held back, or with those that are not. */
static void take_part(struct npz *npz, bool is_training, const bool *held_back)
{
    npz->dataset.sample_count = 0;
    for (uint64_t i = 0; i < npz->arrays->images.count; i++) {
        if (held_back[i] != is_training) {
            npz->order[npz->dataset.sample_count++] = (uint32_t)i;
        }
    }
}

static enum status split(struct npz *npz, uint64_t seed, bool is_training)
{
    uint64_t count = npz->arrays->images.count;
    uint32_t class_count = npz->dataset.class_count;
    uint32_t *places = calloc(count, sizeof(*places));
    uint64_t *begins = calloc((size_t)class_count + 1, sizeof(*begins));
    bool *held_back = calloc(count, sizeof(*held_back));
    npz->order = npz->order != NULL ? npz->order : calloc(count, sizeof(*npz->order));
    bool has_room = places != NULL && begins != NULL && held_back != NULL && npz->order != NULL;
    if (has_room) {
        sort_by_class(npz, places, begins);
        for (uint32_t label = 0; label < class_count; label++) {
            validation_draw(seed, label, places + begins[label], begins[label + 1] - begins[label],
                            held_back);
        }
        take_part(npz, is_training, held_back);
    }
    free(places);
    free(begins);
    free(held_back);
    return has_room ? STATUS_OK : STATUS_NO_MEMORY;
}

/* By the training images, which are open. */
static enum status count_figures(struct npz *npz)
{
    struct statistics statistics;
    struct normalization figures;
    uint32_t channels = npz->arrays->images.channels;
    enum status status =
        statistics_count(&npz->dataset, npz->dataset.sample_count, false, &statistics);
    if (status == STATUS_OK) {
        status = statistics_figures(&statistics, channels, &figures);
    }
    for (uint32_t c = 0; c < channels && status == STATUS_OK; c++) {
        npz->core->scale[c] = 1 / (255 * figures.deviation[c]);
        npz->core->shift[c] = -figures.mean[c] / figures.deviation[c];
    }
    return status;
}

static enum status count_classes(struct npz *npz)
{
    uint32_t largest = 0;
    assert(npz->arrays->labels != NULL);
    for (uint64_t i = 0; i < npz->arrays->images.count; i++) {
        largest = npz->arrays->labels[i] > largest ? npz->arrays->labels[i] : largest;
    }
    npz->core->class_count = npz->dataset.class_count = largest + 1;
    if (largest == 0) {
        log_error("%s: all labels are 0, and there have to be two classes",
                  npz->core->file.file->path);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Classes without an image are mostly a mistake: labels count from 1, or one of them is wrong. */
static enum status tell_empty_classes(const struct npz *npz)
{
    uint32_t class_count = npz->dataset.class_count, empty = 0, first = 0;
    bool *has_images = calloc(class_count, sizeof(*has_images));
    if (has_images == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint64_t i = 0; i < npz->arrays->images.count; i++) {
        has_images[npz->arrays->labels[i]] = true;
    }
    for (uint32_t label = class_count; label-- > 0;) {
        empty += has_images[label] ? 0 : 1;
        first = has_images[label] ? first : label;
    }
    free(has_images);
    if (empty > 0) {
        log_warn("%s has no training image of %u of its %u classes, such as %u: if that is not "
                 "meant, number the classes from 0 on, without gaps",
                 npz->core->file.file->path, empty, class_count, first);
    }
    return STATUS_OK;
}

static enum status check_tests(const struct npz *npz, const struct shape *trained)
{
    const struct shape *sample = &npz->dataset.sample;
    const char *path = npz->core->file.file->path;
    if (memcmp(sample, trained, sizeof(*sample)) != 0) {
        log_error("%s: images for tests are of %u x %u x %u, and those for training of %u x %u x "
                  "%u: save them in one size",
                  path, sample->rows, sample->columns, sample->channels, trained->rows,
                  trained->columns, trained->channels);
        return STATUS_INVALID;
    }
    for (uint64_t i = 0; i < npz->arrays->images.count; i++) {
        if (npz->arrays->labels[i] >= npz->dataset.class_count) {
            log_error(
                "%s: label %llu (from 0) for tests is %u, which no training image has: labels "
                "there are below %u",
                path, (unsigned long long)i, npz->arrays->labels[i], npz->dataset.class_count);
            return STATUS_MALFORMED;
        }
    }
    return STATUS_OK;
}

/* What nobody asked for is said. */
static void tell_split(const struct npz *npz)
{
    log_warn("%s has no images for tests: one in ten of each class is for validation, drawn from "
             "--seed: %llu of them, and %llu for training",
             npz->core->file.file->path,
             (unsigned long long)(npz->arrays->images.count - npz->dataset.sample_count),
             (unsigned long long)npz->dataset.sample_count);
}

/* The training images: classes and figures are theirs, whichever split is opened. */
static enum status open_training(struct npz *npz, bool has_tests, uint64_t seed)
{
    struct core *core = npz->core;
    enum status status = read_arrays(&core->file, DATASET_TRAIN, &core->train);
    if (status != STATUS_OK) {
        return status;
    }
    use_arrays(npz, &core->train);
    status = count_classes(npz);
    if (status == STATUS_OK && !has_tests) {
        status = split(npz, seed, true);
    }
    return status == STATUS_OK ? count_figures(npz) : status;
}

static enum status open_tests(struct npz *npz, bool has_tests, uint64_t seed)
{
    struct shape trained = npz->dataset.sample;
    if (!has_tests) {
        return split(npz, seed, false);
    }
    enum status status = read_arrays(&npz->core->file, DATASET_TEST, &npz->tests);
    if (status != STATUS_OK) {
        return status;
    }
    use_arrays(npz, &npz->tests);
    return check_tests(npz, &trained);
}

/* The file, or that of the training images where these are open. */
static enum status find_core(const char *path, const struct dataset *train, struct npz *npz)
{
    const struct dataset *origin = train != NULL ? dataset_origin(train) : NULL;
    if (origin != NULL && origin->ops == &dataset_npz_ops) {
        npz->core = ((const struct npz *)origin)->core;
        npz->core->users++;
        npz->dataset.class_count = npz->core->class_count;
        use_arrays(npz, &npz->core->train);
        return STATUS_OK;
    }
    npz->core = calloc(1, sizeof(*npz->core));
    if (npz->core == NULL) {
        return STATUS_NO_MEMORY;
    }
    npz->core->users = 1;
    return npz_file_open(path, &npz->core->file);
}

static enum status open_split(struct npz *npz, const struct dataset_options *options)
{
    const struct npz_file *file = &npz->core->file;
    bool is_training = options->split == DATASET_TRAIN;
    bool has_tests = npz_file_has(file, find_names(file)->images[DATASET_TEST]);
    enum status status =
        npz->arrays == NULL ? open_training(npz, has_tests, options->seed) : STATUS_OK;
    if (status == STATUS_OK && !is_training) {
        status = open_tests(npz, has_tests, options->seed);
    }
    if (status != STATUS_OK || !is_training || !options->tells) {
        return status;
    }
    if (!has_tests) {
        tell_split(npz);
    }
    return tell_empty_classes(npz);
}

static enum status npz_open(const char *path, const struct dataset_options *options,
                            struct dataset **ret_dataset)
{
    struct npz *npz = calloc(1, sizeof(*npz));
    if (npz == NULL) {
        return STATUS_NO_MEMORY;
    }
    npz->dataset.ops = &dataset_npz_ops;
    enum status status = find_core(path, options->train, npz);
    if (npz->core == NULL) {
        free(npz);
        return status;
    }
    if (status == STATUS_OK) {
        status = open_split(npz, options);
    }
    if (status == STATUS_OK && npz->dataset.sample_count == 0) {
        log_error("%s has too few images: of a class with one, none is for validation",
                  npz->core->file.file->path);
        status = STATUS_INVALID;
    }
    if (status != STATUS_OK) {
        npz_close(&npz->dataset);
        return status;
    }
    *ret_dataset = &npz->dataset;
    return STATUS_OK;
}

const struct dataset_ops dataset_npz_ops = {
    .open = npz_open,
    .read = dataset_read_by_bytes,
    .describe = npz_describe,
    .read_bytes = npz_read_bytes,
    .convert = dataset_convert_as_described,
    .close = npz_close,
};
