/* Dataset `pack`: images in one file, as `ringside pack` writes it.
 *
 * Images are read when they are needed, by pread and not by a mapping: of a file that gets shorter
 * while a job reads it, a mapping would end the process by a signal. The kernel keeps what was read
 * either way. The index is checked at open, an image each time that it is read. */
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/vector/layout.h"
#include "worker/data/dataset_rows.h"
#include "worker/data/idle_list.h"
#include "worker/data/images/decoder.h"
#include "worker/data/images/photo.h"
#include "worker/data/images/square.h"
#include "worker/data/pack/pack_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 1024 // of which messages show so much
#define REMEDY     "copy it once more, or pack the images again (ringside pack)"

/* What one thread needs to read an image. */
struct reader {
    struct idle_entry entry;
    struct decoder *decoder; // of packed JPEG files
    struct square *square;   // of packed pixels that have to be scaled, or are read in parts
    uint8_t *stored;         // (stored_capacity): as the file has it
    size_t stored_capacity;
    uint8_t *mixed;  // (size, size, 3): for the square
    uint8_t *pixels; // (3, rows, columns)
};

struct pack {
    struct dataset base;
    char path[PATH_BYTES]; // for messages
    int descriptor;        // owned
    struct stat facts;     // of the file when it was opened
    const char *split;     // "training"
    struct pack_header header;
    struct pack_image *images; // (sample_count), owned
    char *class_text;          // owned; NULL: none
    struct idle_list *readers; // owned
};

/* ---- readers: as many as there are threads that read at once ---- */

static void destroy_reader(struct reader *reader)
{
    decoder_destroy(reader->decoder);
    square_destroy(reader->square);
    free(reader->stored);
    free(reader->mixed);
    free(reader->pixels);
    free(reader);
}

static bool is_scaled(const struct pack *pack)
{
    return pack->base.sample.rows != pack->header.size;
}

static enum status fill_reader(const struct pack *pack, struct reader *reader)
{
    uint32_t rows = pack->base.sample.rows;
    reader->pixels = malloc((size_t)PACK_CHANNELS * rows * rows);
    if (reader->pixels == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (pack->header.kind == PACK_JPEG) {
        return decoder_create(rows, &reader->decoder);
    }
    return STATUS_OK;
}

/* Of packed pixels, when they are first scaled. */
static enum status prepare_scaling(const struct pack *pack, struct reader *reader)
{
    uint32_t size = pack->header.size;
    if (reader->mixed == NULL) {
        reader->mixed = malloc((size_t)PACK_CHANNELS * size * size);
    }
    return reader->mixed == NULL    ? STATUS_NO_MEMORY
           : reader->square == NULL ? square_create(pack->base.sample.rows, &reader->square)
                                    : STATUS_OK;
}

static enum status create_reader(const struct pack *pack, struct reader **ret_reader)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = fill_reader(pack, reader);
    if (status != STATUS_OK) {
        destroy_reader(reader);
        return status;
    }
    *ret_reader = reader;
    return STATUS_OK;
}

static enum status take_reader(const struct pack *pack, struct reader **ret_reader)
{
    struct reader *reader = (struct reader *)idle_list_take(pack->readers);
    if (reader == NULL) {
        return create_reader(pack, ret_reader);
    }
    *ret_reader = reader;
    return STATUS_OK;
}

/* ---- one image ---- */

/* STATUS_END_OF_DATA: the file has fewer. STATUS_IO: errno says why they cannot be read. */
static enum status read_at(int descriptor, uint8_t *ret_bytes, size_t size, uint64_t at)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = pread(descriptor, ret_bytes + used, size - used, (off_t)(at + used));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return got == 0 ? STATUS_END_OF_DATA : STATUS_IO;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    return STATUS_OK;
}

static bool is_as_opened(const struct pack *pack)
{
    struct stat now;
    return fstat(pack->descriptor, &now) == 0 && now.st_size == pack->facts.st_size &&
           now.st_mtim.tv_sec == pack->facts.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == pack->facts.st_mtim.tv_nsec;
}

/* Reads an image as it is stored, and checks it. Logs. */
static enum status load(const struct pack *pack, uint64_t index, uint8_t *ret_bytes)
{
    const struct pack_image *image = &pack->images[index];
    enum status status = read_at(pack->descriptor, ret_bytes, image->bytes, image->at);
    if (status == STATUS_OK && crc32c(ret_bytes, image->bytes) == image->crc) {
        return STATUS_OK;
    }
    if (status == STATUS_IO) {
        log_error("cannot read image %llu for %s in %s: %m", (unsigned long long)index, pack->split,
                  pack->path);
    } else if (!is_as_opened(pack)) {
        log_error("%s has changed since the job began: leave a pack alone while a job reads it, "
                  "and start the job again",
                  pack->path);
    } else {
        log_error("image %llu for %s in %s is damaged (%u bytes at %llu: their checksum "
                  "differs): " REMEDY,
                  (unsigned long long)index, pack->split, pack->path, image->bytes,
                  (unsigned long long)image->at);
    }
    return STATUS_IO;
}

static enum status load_to_reader(const struct pack *pack, uint64_t index, struct reader *reader)
{
    size_t size = pack->images[index].bytes;
    if (size > reader->stored_capacity) {
        uint8_t *bytes = realloc(reader->stored, size);
        if (bytes == NULL) {
            return STATUS_NO_MEMORY;
        }
        reader->stored = bytes;
        reader->stored_capacity = size;
    }
    return load(pack, index, reader->stored);
}

static enum status decode(const struct pack *pack, uint64_t index, struct reader *reader,
                          uint8_t *ret_bytes)
{
    char why[DECODER_WHY_BYTES] = "";
    enum status status = decoder_run(reader->decoder, reader->stored, pack->images[index].bytes,
                                     ret_bytes, why, sizeof(why));
    if (status == STATUS_MALFORMED) {
        log_error("image %llu for %s in %s cannot be decoded: %s: " REMEDY,
                  (unsigned long long)index, pack->split, pack->path, why);
    }
    return status;
}

static enum status scale(const struct pack *pack, const struct crop_draw *part,
                         struct reader *reader, uint8_t *ret_bytes)
{
    uint32_t size = pack->header.size;
    size_t plane = (size_t)size * size;
    enum status status = prepare_scaling(pack, reader);
    if (status != STATUS_OK) {
        return status;
    }
    for (size_t i = 0; i < plane; i++) {
        for (size_t c = 0; c < PACK_CHANNELS; c++) {
            reader->mixed[PACK_CHANNELS * i + c] = reader->stored[c * plane + i];
        }
    }
    struct square_source source = {
        .pixels = reader->mixed, .width = size, .height = size, .orientation = 1};
    if (part != NULL) {
        struct crop_box box = crop_draw_box(part, size, size);
        source.part = (struct square_part){box.left, box.top, box.width, box.height};
    }
    return square_make(reader->square, &source, ret_bytes);
}

static enum status read_with(const struct pack *pack, uint64_t index, const struct crop_draw *part,
                             struct reader *reader, uint8_t *ret_bytes, uint32_t *ret_label)
{
    *ret_label = pack->images[index].label;
    if (pack->header.kind == PACK_RAW && !is_scaled(pack) && part == NULL) {
        return load(pack, index, ret_bytes);
    }
    enum status status = load_to_reader(pack, index, reader);
    if (status != STATUS_OK) {
        return status;
    }
    if (pack->header.kind == PACK_RAW) {
        return scale(pack, part, reader, ret_bytes);
    }
    decoder_set_part(reader->decoder, part);
    status = decode(pack, index, reader, ret_bytes);
    decoder_set_part(reader->decoder, NULL);
    return status;
}

/* Either of the results may be NULL. part: NULL, of the whole. */
static enum status read_image(const struct pack *pack, uint64_t index, const struct crop_draw *part,
                              uint8_t *ret_bytes, float *ret_pixels, uint32_t *ret_label)
{
    struct reader *reader;
    enum status status = take_reader(pack, &reader);
    if (status == STATUS_OK) {
        uint8_t *bytes = ret_bytes != NULL ? ret_bytes : reader->pixels;
        status = read_with(pack, index, part, reader, bytes, ret_label);
        if (status == STATUS_OK && ret_pixels != NULL) {
            photo_convert(pack->base.sample, bytes, ret_pixels);
        }
        idle_list_return(pack->readers, &reader->entry);
    }
    if (status == STATUS_NO_MEMORY) {
        log_error("not enough memory to read an image of %s", pack->path);
    }
    return status;
}

/* ---- the dataset ---- */

static enum status pack_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                             uint32_t *ret_label)
{
    return read_image((const struct pack *)dataset, index, NULL, NULL, ret_pixels, ret_label);
}

static enum status pack_read_bytes(const struct dataset *dataset, uint64_t index,
                                   uint8_t *ret_bytes, uint32_t *ret_label)
{
    return read_image((const struct pack *)dataset, index, NULL, ret_bytes, NULL, ret_label);
}

static enum status pack_read_part(const struct dataset *dataset, uint64_t index,
                                  const struct crop_draw *part, uint8_t *ret_bytes,
                                  uint32_t *ret_label)
{
    return read_image((const struct pack *)dataset, index, part, ret_bytes, NULL, ret_label);
}

static void pack_convert(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels)
{
    photo_convert(dataset->sample, bytes, ret_pixels);
}

static void pack_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    photo_describe(dataset->sample, ret_source);
}

static void pack_close(struct dataset *dataset)
{
    struct pack *pack = (struct pack *)dataset;
    for (struct idle_entry *entry; (entry = idle_list_take(pack->readers)) != NULL;) {
        destroy_reader((struct reader *)entry);
    }
    idle_list_finish(pack->readers);
    free(pack->readers);
    if (pack->descriptor >= 0) {
        close(pack->descriptor);
    }
    free(pack->images);
    free(pack->class_text);
    free(pack);
}

/* Opens the file, and reads its header. Logs. */
static enum status open_file(const char *path, struct pack *pack)
{
    uint8_t bytes[PACK_HEADER_BYTES];
    char why[PACK_WHY_BYTES] = "it is too short to be one";
    // A named pipe would otherwise wait for its writer.
    pack->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (pack->descriptor < 0 || fstat(pack->descriptor, &pack->facts) != 0) {
        log_error("cannot read the pack %s: %m; --data pack:FILE wants a file that `ringside pack` "
                  "has written",
                  pack->path);
        return STATUS_IO;
    }
    if (!S_ISREG(pack->facts.st_mode)) {
        log_error("%s is no file; --data pack:FILE wants one that `ringside pack` has written%s",
                  pack->path,
                  S_ISDIR(pack->facts.st_mode) ? "; folders are --data images:DIR" : "");
        return STATUS_INVALID;
    }
    if (pack->facts.st_size == 0) {
        snprintf(why, sizeof(why), "it is empty");
    }
    enum status status = read_at(pack->descriptor, bytes, sizeof(bytes), 0);
    if (status == STATUS_IO) {
        log_error("cannot read %s: %m", pack->path);
        return status;
    }
    status = status == STATUS_END_OF_DATA ? STATUS_MALFORMED
                                          : pack_header_decode(bytes, (uint64_t)pack->facts.st_size,
                                                               &pack->header, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("%s is not a pack that can be used: %s; %s", pack->path, why,
                  status == STATUS_UNSUPPORTED ? "pack its images again, by this Ringside"
                                               : REMEDY);
    }
    return status;
}

static enum status keep_class_text(struct pack *pack, const uint8_t *text)
{
    uint32_t size = pack->header.text_bytes;
    if (size == 0) {
        return STATUS_OK;
    }
    pack->class_text = malloc((size_t)size + 1);
    if (pack->class_text == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(pack->class_text, text, size);
    pack->class_text[size] = '\0';
    return STATUS_OK;
}

/* `index` is room for it. Logs what is wrong with the file. */
static enum status read_index(struct pack *pack, bool is_training, uint8_t *index)
{
    char why[PACK_WHY_BYTES] = "it was cut short while it was read";
    uint64_t size = pack_index_bytes(&pack->header);
    enum status status =
        read_at(pack->descriptor, index, size, PACK_HEADER_BYTES + pack->header.data_bytes);
    if (status == STATUS_IO) {
        log_error("cannot read the index of %s: %m", pack->path);
        return status;
    }
    status = status == STATUS_OK ? pack_index_decode(&pack->header, index, is_training,
                                                     pack->images, why, sizeof(why))
                                 : STATUS_MALFORMED;
    if (status != STATUS_OK) {
        log_error("%s is not a pack that can be used: %s; " REMEDY, pack->path, why);
        return status;
    }
    pack->base.names_digest = layout_digest_add(LAYOUT_DIGEST_SEED, index, size);
    return keep_class_text(pack, index + size - pack->header.text_bytes);
}

static enum status load_index(struct pack *pack, bool is_training)
{
    const struct pack_header *header = &pack->header;
    uint64_t count = is_training ? header->train_count : header->val_count;
    uint8_t *index = malloc(pack_index_bytes(header));
    pack->images = calloc(count, sizeof(*pack->images));
    enum status status = index != NULL && pack->images != NULL
                             ? read_index(pack, is_training, index)
                             : STATUS_NO_MEMORY;
    free(index);
    pack->base.sample_count = count;
    return status;
}

/* Tells, and finds out whether images can be decoded at all. */
static enum status try_reader(const struct pack *pack, const struct dataset_options *options)
{
    struct reader *reader;
    enum status status = take_reader(pack, &reader);
    if (status == STATUS_UNSUPPORTED) {
        log_error("%s has JPEG files, and this build cannot read them: install libturbojpeg "
                  "(libturbojpeg0-dev; deploy/install-dependencies does) and build again, or pack "
                  "with --raw",
                  pack->path);
    }
    if (status != STATUS_OK) {
        return status;
    }
    idle_list_return(pack->readers, &reader->entry);
    if (!options->tells) {
        return STATUS_OK;
    }
    log_info("%s: %llu images for %s, of %u classes", pack->path,
             (unsigned long long)pack->base.sample_count, pack->split, pack->header.class_count);
    if (pack->base.sample.rows > pack->header.size && options->split == DATASET_TRAIN) {
        log_warn("the images of %s are packed with %u x %u pixels, and enlarged to %u: pack them "
                 "with --size %u",
                 pack->path, pack->header.size, pack->header.size, pack->base.sample.rows,
                 pack->base.sample.rows);
    }
    return STATUS_OK;
}

static enum status fill_pack(const char *path, const struct dataset_options *options,
                             struct pack *pack)
{
    enum status status = open_file(path, pack);
    if (status == STATUS_OK) {
        status = load_index(pack, options->split == DATASET_TRAIN);
    }
    if (status != STATUS_OK) {
        return status;
    }
    uint32_t rows = options->image_size > 0 ? options->image_size : pack->header.size;
    pack->base.sample = (struct shape){.channels = PACK_CHANNELS, .rows = rows, .columns = rows};
    pack->base.class_count = pack->header.class_count;
    pack->base.class_text = pack->class_text;
    return try_reader(pack, options);
}

static enum status pack_open(const char *path, const struct dataset_options *options,
                             struct dataset **ret_dataset)
{
    struct pack *pack = calloc(1, sizeof(*pack));
    struct idle_list *readers = calloc(1, sizeof(*readers));
    if (pack == NULL || readers == NULL) {
        free(readers);
        free(pack);
        return STATUS_NO_MEMORY;
    }
    idle_list_init(readers);
    pack->base.ops = &dataset_pack_ops;
    pack->readers = readers;
    pack->descriptor = -1;
    pack->split = options->split == DATASET_TRAIN ? "training" : "validation";
    snprintf(pack->path, sizeof(pack->path), "%s", path);
    printable_make_utf8(pack->path);
    enum status status = fill_pack(path, options, pack);
    if (status != STATUS_OK) {
        pack_close(&pack->base);
        return status;
    }
    *ret_dataset = &pack->base;
    return STATUS_OK;
}

const struct dataset_ops dataset_pack_ops = {
    .open = pack_open,
    .read = pack_read,
    .describe = pack_describe,
    .read_bytes = pack_read_bytes,
    .convert = pack_convert,
    .read_part = pack_read_part,
    .close = pack_close,
};
