/* Decodes images in several threads, a batch at a time, and writes each batch in the order of the
 * dataset. The index follows the images; the header, which says how much there is, comes last. */
#include "worker/data/pack/pack_write.h"

#include "common/base/clock.h"
#include "common/base/cores.h"
#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "worker/data/dataset.h"
#include "worker/data/draft.h"
#include "worker/data/helpers.h"
#include "worker/data/images/decoder.h"
#include "worker/data/images/encode_jpeg.h"
#include "worker/data/images/images.h"
#include "worker/data/images/jpeg_header.h"
#include "worker/data/pack/pack_format.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH       64
#define PROGRESS_MS 500

/* An image on its way to the file. */
struct slot {
    struct images_whole whole;
    const uint8_t *bytes; // (size): what is written; in `whole` or `jpeg`
    size_t size;
    uint8_t *jpeg; // owned
    bool is_copied;
    enum status status;
};

struct writer {
    const struct pack_order *order;
    struct dataset *splits[2]; // owned: training, validation
    struct slot slots[BATCH];
    struct draft draft;
    uint8_t *index;   // (PACK_ENTRY_BYTES of each image, class names), owned
    uint64_t written; // images
    uint64_t data_bytes, shown_ms, begun_ms;
    struct pack_account account;
};

/* The part of a batch that is still to be done, for several threads. */
struct batch {
    struct writer *writer;
    const struct dataset *dataset;
    uint64_t first;
    uint32_t count;
    atomic_uint next;
};

/* ---- one image ---- */

/* Whether the file can be in the pack as it is: nothing would be gained by making it anew. */
static bool is_fit(const struct images_whole *whole, uint32_t size)
{
    struct jpeg_header header;
    char why[DECODER_WHY_BYTES];
    return !decoder_is_png(whole->file, whole->file_size) && whole->file_size <= PACK_IMAGE_BYTES &&
           jpeg_header_parse(whole->file, whole->file_size, &header, why, sizeof(why)) ==
               STATUS_OK &&
           header.width == size && header.height == size && header.orientation == 1;
}

static enum status fill_slot(const struct pack_order *order, const struct dataset *dataset,
                             uint64_t index, struct slot *slot)
{
    enum status status = images_read_whole(dataset, index, &slot->whole);
    slot->is_copied = false;
    if (status != STATUS_OK) {
        return status;
    }
    if (order->quality == 0) {
        slot->bytes = slot->whole.pixels;
        slot->size = (size_t)PACK_CHANNELS * order->size * order->size;
        return STATUS_OK;
    }
    if (is_fit(&slot->whole, order->size)) {
        slot->bytes = slot->whole.file;
        slot->size = slot->whole.file_size;
        slot->is_copied = true;
        return STATUS_OK;
    }
    free(slot->jpeg);
    slot->jpeg = NULL;
    status = encode_jpeg(slot->whole.pixels, order->size, order->quality, &slot->jpeg, &slot->size);
    slot->bytes = slot->jpeg;
    return status;
}

static void *fill_slots(void *context)
{
    struct batch *batch = context;
    const struct pack_order *order = batch->writer->order;
    for (;;) {
        uint32_t i = atomic_fetch_add(&batch->next, 1);
        if (i >= batch->count) {
            return NULL;
        }
        struct slot *slot = &batch->writer->slots[i];
        slot->status = *order->is_ended != 0
                           ? STATUS_INTERRUPTED
                           : fill_slot(order, batch->dataset, batch->first + i, slot);
    }
}

/* ---- the file ---- */

static enum status write_slot(struct writer *writer, const struct slot *slot)
{
    const struct pack_image image = {.bytes = (uint32_t)slot->size,
                                     .crc = crc32c(slot->bytes, slot->size),
                                     .label = slot->whole.label};
    enum status status = draft_write(&writer->draft, slot->bytes, slot->size,
                                     PACK_HEADER_BYTES + writer->data_bytes);
    pack_entry_encode(&image, writer->index + PACK_ENTRY_BYTES * writer->written);
    writer->written++;
    writer->data_bytes += slot->size;
    writer->account.copied += slot->is_copied;
    return status;
}

static void show_progress(struct writer *writer, bool is_over)
{
    uint64_t now = clock_now_ms();
    uint64_t total = writer->splits[0]->sample_count + writer->splits[1]->sample_count;
    if (!writer->order->shows_progress || (!is_over && now - writer->shown_ms < PROGRESS_MS)) {
        return;
    }
    double seconds = (double)(now - writer->begun_ms + 1) / 1000;
    writer->shown_ms = now;
    fprintf(stderr, "\r%llu of %llu images, %.0f a second, %.1f GB%s",
            (unsigned long long)writer->written, (unsigned long long)total,
            (double)writer->written / seconds, (double)writer->data_bytes / 1e9,
            is_over ? "\n" : "\x1b[K");
}

static enum status write_split(struct writer *writer, const struct dataset *dataset)
{
    for (uint64_t first = 0; first < dataset->sample_count; first += BATCH) {
        uint64_t rest = dataset->sample_count - first;
        struct batch batch = {.writer = writer,
                              .dataset = dataset,
                              .first = first,
                              .count = rest < BATCH ? (uint32_t)rest : BATCH};
        uint32_t cores = cores_available();
        helpers_run(fill_slots, &batch, batch.count < cores ? batch.count : cores);
        for (uint32_t i = 0; i < batch.count; i++) {
            enum status status = writer->slots[i].status;
            if (status == STATUS_OK) {
                status = write_slot(writer, &writer->slots[i]);
            }
            if (status != STATUS_OK) {
                return status;
            }
        }
        show_progress(writer, false);
    }
    return STATUS_OK;
}

/* Index and header, behind and before the images. */
static enum status write_rest(struct writer *writer)
{
    uint8_t bytes[PACK_HEADER_BYTES];
    const struct dataset *train = writer->splits[0];
    const char *text = train->class_text != NULL ? train->class_text : "";
    struct pack_header header = {
        .kind = writer->order->quality == 0 ? PACK_RAW : PACK_JPEG,
        .size = writer->order->size,
        .class_count = train->class_count,
        .train_count = train->sample_count,
        .val_count = writer->splits[1]->sample_count,
        .data_bytes = writer->data_bytes,
        .text_bytes = (uint32_t)strlen(text),
    };
    uint64_t size = pack_index_bytes(&header);
    memcpy(writer->index + size - header.text_bytes, text, header.text_bytes);
    header.index_crc = crc32c(writer->index, size);
    pack_header_encode(&header, bytes);
    enum status status =
        draft_write(&writer->draft, writer->index, size, PACK_HEADER_BYTES + writer->data_bytes);
    if (status == STATUS_OK) {
        status = draft_write(&writer->draft, bytes, sizeof(bytes), 0);
    }
    writer->account.class_count = header.class_count;
    writer->account.train_count = header.train_count;
    writer->account.val_count = header.val_count;
    writer->account.bytes = PACK_HEADER_BYTES + writer->data_bytes + size;
    return status;
}

static enum status write_file(struct writer *writer)
{
    writer->begun_ms = writer->shown_ms = clock_now_ms();
    enum status status = write_split(writer, writer->splits[0]);
    if (status == STATUS_OK) {
        status = write_split(writer, writer->splits[1]);
    }
    if (writer->written > 0) {
        show_progress(writer, true);
    }
    if (status == STATUS_OK) {
        status = write_rest(writer);
    }
    if (status == STATUS_OK && *writer->order->is_ended != 0) {
        status = STATUS_INTERRUPTED;
    }
    return status;
}

/* ---- around it ---- */

static enum status open_split(struct writer *writer, enum dataset_split split)
{
    const struct pack_order *order = writer->order;
    const struct dataset_options options = {.seed = order->seed,
                                            .split = split,
                                            .image_size = order->size,
                                            .skips_bad = order->skips_bad,
                                            .tells = true};
    return dataset_open(order->data, &options, &writer->splits[split == DATASET_TEST]);
}

static enum status prepare(struct writer *writer)
{
    size_t plane = (size_t)writer->order->size * writer->order->size;
    enum status status = open_split(writer, DATASET_TRAIN);
    if (status == STATUS_OK) {
        status = open_split(writer, DATASET_TEST);
    }
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t count = writer->splits[0]->sample_count + writer->splits[1]->sample_count;
    writer->index = malloc(PACK_ENTRY_BYTES * count + PACK_TEXT_BYTES);
    bool has_room = writer->index != NULL;
    for (uint32_t i = 0; i < BATCH; i++) {
        writer->slots[i].whole.pixels = malloc(PACK_CHANNELS * plane);
        has_room = has_room && writer->slots[i].whole.pixels != NULL;
    }
    if (!has_room) {
        log_error("not enough memory to pack images of %u x %u", writer->order->size,
                  writer->order->size);
    }
    return has_room ? STATUS_OK : STATUS_NO_MEMORY;
}

static void destroy_writer(struct writer *writer)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        free(writer->slots[i].whole.pixels);
        free(writer->slots[i].whole.file);
        free(writer->slots[i].jpeg);
    }
    dataset_close(writer->splits[0]);
    dataset_close(writer->splits[1]);
    free(writer->index);
    free(writer);
}

enum status pack_write(const struct pack_order *order, struct pack_account *ret_account)
{
    if (strncmp(order->data, "images:", strlen("images:")) != 0) {
        log_error("%s cannot be packed: folders of images can, such as images:DIR", order->data);
        return STATUS_INVALID;
    }
    struct writer *writer = calloc(1, sizeof(*writer));
    if (writer == NULL) {
        return STATUS_NO_MEMORY;
    }
    writer->order = order;
    // The file first: that it cannot be written is known at once, what images there are is not.
    enum status status = draft_open(&writer->draft, order->path);
    if (status == STATUS_OK) {
        status = prepare(writer);
    }
    if (status == STATUS_OK) {
        status = write_file(writer);
    }
    status = draft_finish(&writer->draft, status);
    if (status == STATUS_OK) {
        *ret_account = writer->account;
    }
    destroy_writer(writer);
    return status;
}
