/* Bytes are read and changed where they will lie, or in a thread's room where floats are made of
 * them. */
#include "worker/data/batches/sample_reader.h"

#include "common/base/log.h"
#include "common/base/random.h"

#include <stdlib.h>

struct sample_room {
    struct idle_entry entry;
    uint8_t *spare;  // (C, H, W)
    uint8_t bytes[]; // (C, H, W), and the spare ones
};

static uint64_t bytes_of_sample(const struct sample_reader *reader)
{
    const struct shape *shape = &reader->dataset->sample;
    struct pixels_source source;
    if (reader->reads_bytes && dataset_describe(reader->dataset, &source)) {
        return pixels_bytes(&source);
    }
    return (uint64_t)shape->channels * shape->rows * shape->columns * sizeof(float);
}

/* Whether training images can be changed. */
static enum status prepare_augmentation(struct sample_reader *reader)
{
    struct pixels_source source;
    char why[AUGMENT_WHY_BYTES];
    if (!dataset_describe(reader->dataset, &source)) {
        log_error(
            "--augment needs images that are stored as bytes, as cifar10 and mnist have them; "
            "leave it out");
        return STATUS_INVALID;
    }
    reader->image = augment_image_of(&source);
    if (augment_check(&reader->augmentation, &reader->image, why, sizeof(why)) != STATUS_OK) {
        log_error("--augment: %s", why);
        return STATUS_INVALID;
    }
    reader->stored_bytes = pixels_bytes(&source);
    reader->augments = true;
    return STATUS_OK;
}

enum status sample_reader_init(struct sample_reader *reader, const struct batcher_options *options,
                               const struct dataset *dataset)
{
    *reader = (struct sample_reader){
        .dataset = dataset,
        .augmentation = options->augmentation,
        .seed = options->seed,
        .reads_bytes = options->reads_bytes,
    };
    idle_list_init(&reader->rooms);
    reader->sample_bytes = bytes_of_sample(reader);
    bool augments = options->is_training && augmentation_is_on(&options->augmentation);
    return augments ? prepare_augmentation(reader) : STATUS_OK;
}

void sample_reader_finish(struct sample_reader *reader)
{
    if (reader->dataset == NULL) {
        return;
    }
    for (struct idle_entry *entry; (entry = idle_list_take(&reader->rooms)) != NULL;) {
        free(entry);
    }
    idle_list_finish(&reader->rooms);
    *reader = (struct sample_reader){0};
}

enum status sample_reader_begin(struct sample_reader *reader, struct sample_room **ret_room)
{
    struct sample_room *room = NULL;
    if (reader->augments) {
        room = (struct sample_room *)idle_list_take(&reader->rooms);
        if (room == NULL) {
            room = malloc(sizeof(*room) + 2 * reader->stored_bytes);
        }
        if (room == NULL) {
            log_error("not enough memory to change an image");
            return STATUS_NO_MEMORY;
        }
        room->spare = room->bytes + reader->stored_bytes;
    }
    *ret_room = room;
    return STATUS_OK;
}

void sample_reader_end(struct sample_reader *reader, struct sample_room *room)
{
    if (room != NULL) {
        idle_list_return(&reader->rooms, &room->entry);
    }
}

/* The same pixels or bytes as without an augmentation, of a changed image. */
static enum status read_augmented(const struct sample_reader *reader, struct sample_room *room,
                                  uint64_t key, uint32_t index, void *ret_pixels,
                                  uint32_t *ret_label)
{
    uint8_t *bytes = reader->reads_bytes ? ret_pixels : room->bytes;
    enum status status = dataset_read_bytes(reader->dataset, index, bytes, ret_label);
    if (status != STATUS_OK) {
        return status;
    }
    augment_apply(&reader->augmentation, &reader->image, key, bytes, room->spare);
    if (!reader->reads_bytes) {
        dataset_convert(reader->dataset, bytes, ret_pixels);
    }
    return STATUS_OK;
}

enum status sample_reader_read(const struct sample_reader *reader, struct sample_room *room,
                               uint64_t epoch, uint32_t index, void *ret_pixels,
                               uint32_t *ret_label)
{
    if (reader->augments) {
        uint64_t key = random_key(reader->seed, RANDOM_AUGMENT, epoch, index);
        return read_augmented(reader, room, key, index, ret_pixels, ret_label);
    }
    if (reader->reads_bytes) {
        return dataset_read_bytes(reader->dataset, index, ret_pixels, ret_label);
    }
    return dataset_read(reader->dataset, index, ret_pixels, ret_label);
}
