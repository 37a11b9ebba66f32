/* Dataset `images`: files of JPEG and PNG, decoded when they are read.
 *
 * Which images there are is decided when the dataset is opened, from the beginning and the end of
 * each file. A file that turns out to be broken when it is decoded ends the job, or (--bad-images
 * skip) the next image of the list that can be decoded takes its place: that follows from the files
 * alone, so all processes of a job agree on it, and on the number of images. A file that is gone or
 * changed since ends the job in any case: the others may have seen it as it was. */
#include "worker/data/images/images.h"

#include "common/base/log.h"
#include "worker/data/dataset_rows.h"
#include "worker/data/idle_list.h"
#include "worker/data/images/decoder.h"
#include "worker/data/images/image_set.h"
#include "worker/data/images/photo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_DEFAULT 224 // rows and columns, as ImageNet's networks take them
#define NAMED_MAX    5   // broken images that are named
#define TRIES_MAX    1000

/* What one thread needs to read an image. */
struct reader {
    struct idle_entry entry;
    struct decoder *decoder;
    uint8_t *file; // (file_size)
    size_t file_size, file_capacity;
    uint8_t *pixels; // (3, size, size)
};

/* What changes while a dataset is read. */
struct readers {
    struct idle_list idle;
    atomic_uint_fast64_t broken; // images that could not be decoded
};

struct images {
    struct dataset base;
    struct image_set set;
    bool skips_bad;
    struct readers *readers; // owned
};

/* ---- readers: as many as there are threads that read at once ---- */

static void destroy_reader(struct reader *reader)
{
    decoder_destroy(reader->decoder);
    free(reader->file);
    free(reader->pixels);
    free(reader);
}

static struct reader *create_reader(const struct images *images)
{
    uint32_t size = images->base.sample.rows;
    struct reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return NULL;
    }
    reader->pixels = calloc((size_t)size * size, DECODER_CHANNELS);
    if (reader->pixels == NULL || decoder_create(size, &reader->decoder) != STATUS_OK) {
        destroy_reader(reader);
        return NULL;
    }
    return reader;
}

static struct reader *take_reader(const struct images *images)
{
    struct reader *reader = (struct reader *)idle_list_take(&images->readers->idle);
    return reader != NULL ? reader : create_reader(images);
}

/* ---- one image ---- */

static bool is_as_listed(int descriptor, const struct image_file *file)
{
    struct stat facts;
    return fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) &&
           (uint64_t)facts.st_size == file->size &&
           (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec == file->changed_ns;
}

/* STATUS_MISMATCH: there are fewer. STATUS_IO: errno says why they cannot be read. */
static enum status read_all(int descriptor, uint8_t *ret_bytes, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(descriptor, ret_bytes + used, size - used);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return got == 0 ? STATUS_MISMATCH : STATUS_IO;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    return STATUS_OK;
}

static enum status make_room(struct reader *reader, size_t size)
{
    if (size <= reader->file_capacity) {
        return STATUS_OK;
    }
    uint8_t *bytes = realloc(reader->file, size);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    reader->file = bytes;
    reader->file_capacity = size;
    return STATUS_OK;
}

/* Reads a file that is still what was listed, before and after. Logs. */
static enum status load_file(const struct image_list *list, const struct image_file *file,
                             struct reader *reader)
{
    char path[IMAGE_LIST_PATH_BYTES], shown[IMAGE_LIST_PATH_BYTES];
    image_list_path(list, file, path);
    image_list_show(list, file, shown);
    if (make_room(reader, file->size) != STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    reader->file_size = file->size;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        log_error("cannot read the image %s: %m", shown);
        return STATUS_IO;
    }
    enum status status = is_as_listed(descriptor, file)
                             ? read_all(descriptor, reader->file, file->size)
                             : STATUS_MISMATCH;
    if (status == STATUS_IO) {
        log_error("cannot read the image %s: %m", shown);
    }
    bool is_same = status == STATUS_OK && is_as_listed(descriptor, file);
    close(descriptor);
    if (status != STATUS_IO && !is_same) {
        log_error("the image %s has changed since the job began: leave images alone while a job "
                  "reads them, and start it again",
                  shown);
    }
    return is_same ? STATUS_OK : STATUS_IO;
}

/* Of an image that is read again in each epoch, once. */
static void tell_broken(const struct images *images, struct image_file *file, const char *shown,
                        const char *why)
{
    if (!images->skips_bad) {
        log_error("the image %s cannot be used: %s: mend or remove it, or give --bad-images skip",
                  shown, why);
    } else if (!atomic_exchange(&file->is_broken, true) &&
               atomic_fetch_add(&images->readers->broken, 1) < NAMED_MAX) {
        log_warn("the image %s cannot be used, and the next one takes its place: %s", shown, why);
    }
}

static enum status decode_file(const struct images *images, struct image_file *file,
                               struct reader *reader, uint8_t *ret_bytes)
{
    char why[DECODER_WHY_BYTES] = "", shown[IMAGE_LIST_PATH_BYTES];
    enum status status = load_file(images->set.list, file, reader);
    if (status == STATUS_OK) {
        status =
            decoder_run(reader->decoder, reader->file, file->size, ret_bytes, why, sizeof(why));
    }
    if (status == STATUS_MALFORMED) {
        image_list_show(images->set.list, file, shown);
        tell_broken(images, file, shown, why);
    }
    return status;
}

static enum status read_into(const struct images *images, uint64_t index, struct reader *reader,
                             uint8_t *ret_bytes, uint32_t *ret_label)
{
    const struct image_set *set = &images->set;
    enum status status = STATUS_MALFORMED;
    for (uint64_t i = 0; i < set->count && i < TRIES_MAX; i++) {
        struct image_file *file = &set->list->files[set->order[(index + i) % set->count]];
        status = decode_file(images, file, reader, ret_bytes);
        if (status == STATUS_OK) {
            *ret_label = set->labels[file->class];
        }
        if (status != STATUS_MALFORMED || !images->skips_bad) {
            return status;
        }
    }
    log_error("%s: image after image cannot be decoded, %d in a row at the most", set->list->folder,
              TRIES_MAX);
    return status;
}

/* ---- the dataset ---- */

static enum status images_read_part(const struct dataset *dataset, uint64_t index,
                                    const struct crop_draw *part, uint8_t *ret_bytes,
                                    uint32_t *ret_label)
{
    const struct images *images = (const struct images *)dataset;
    struct reader *reader = take_reader(images);
    if (reader == NULL) {
        log_error("not enough memory to decode an image");
        return STATUS_NO_MEMORY;
    }
    decoder_set_part(reader->decoder, part);
    enum status status = read_into(images, index, reader, ret_bytes, ret_label);
    decoder_set_part(reader->decoder, NULL);
    idle_list_return(&images->readers->idle, &reader->entry);
    return status;
}

static enum status images_read_bytes(const struct dataset *dataset, uint64_t index,
                                     uint8_t *ret_bytes, uint32_t *ret_label)
{
    return images_read_part(dataset, index, NULL, ret_bytes, ret_label);
}

enum status images_read_whole(const struct dataset *dataset, uint64_t index,
                              struct images_whole *whole)
{
    const struct images *images = (const struct images *)dataset;
    struct reader *reader = take_reader(images);
    if (reader == NULL) {
        log_error("not enough memory to decode an image");
        return STATUS_NO_MEMORY;
    }
    enum status status = read_into(images, index, reader, whole->pixels, &whole->label);
    if (status == STATUS_OK) {
        uint8_t *file = whole->file;
        size_t capacity = whole->file_capacity;
        whole->file = reader->file;
        whole->file_size = reader->file_size;
        whole->file_capacity = reader->file_capacity;
        reader->file = file;
        reader->file_capacity = capacity;
    }
    idle_list_return(&images->readers->idle, &reader->entry);
    return status;
}

static void images_convert(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels)
{
    photo_convert(dataset->sample, bytes, ret_pixels);
}

static enum status images_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                               uint32_t *ret_label)
{
    const struct images *images = (const struct images *)dataset;
    struct reader *reader = take_reader(images);
    if (reader == NULL) {
        log_error("not enough memory to decode an image");
        return STATUS_NO_MEMORY;
    }
    enum status status = read_into(images, index, reader, reader->pixels, ret_label);
    if (status == STATUS_OK) {
        images_convert(dataset, reader->pixels, ret_pixels);
    }
    idle_list_return(&images->readers->idle, &reader->entry);
    return status;
}

static void images_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    photo_describe(dataset->sample, ret_source);
}

static void images_close(struct dataset *dataset)
{
    struct images *images = (struct images *)dataset;
    struct readers *readers = images->readers;
    uint64_t broken = atomic_load(&readers->broken);
    if (broken > NAMED_MAX) {
        log_warn("%llu images could not be decoded, and the next ones took their places",
                 (unsigned long long)broken);
    }
    for (struct idle_entry *entry; (entry = idle_list_take(&readers->idle)) != NULL;) {
        destroy_reader((struct reader *)entry);
    }
    idle_list_finish(&readers->idle);
    free(readers);
    image_set_close(&images->set);
    free(images);
}

static enum status images_open(const char *path, const struct dataset_options *options,
                               struct dataset **ret_dataset)
{
    struct images *images = calloc(1, sizeof(*images));
    struct readers *readers = calloc(1, sizeof(*readers));
    enum status status = STATUS_NO_MEMORY;
    if (images != NULL && readers != NULL) {
        status = image_set_open(path, options, &images->set);
    }
    if (status != STATUS_OK) {
        free(readers);
        free(images);
        return status;
    }
    const struct image_list *classes = image_set_classes(&images->set);
    uint32_t size = options->image_size > 0 ? options->image_size : SIZE_DEFAULT;
    images->base = (struct dataset){
        .ops = &dataset_images_ops,
        .sample = {.channels = DECODER_CHANNELS, .rows = size, .columns = size},
        .sample_count = images->set.count,
        .class_count = classes->class_count,
        .class_text = images->set.class_text,
        .names_digest = images->set.digest,
        .stamp = images->set.stamp,
    };
    images->skips_bad = options->skips_bad;
    images->readers = readers;
    idle_list_init(&readers->idle);
    *ret_dataset = &images->base;
    return STATUS_OK;
}

const struct dataset_ops dataset_images_ops = {
    .open = images_open,
    .read = images_read,
    .describe = images_describe,
    .read_bytes = images_read_bytes,
    .convert = images_convert,
    .read_part = images_read_part,
    .close = images_close,
};
