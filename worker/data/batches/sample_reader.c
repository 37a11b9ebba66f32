/* Bytes are read and changed where they will lie, or in a thread's room where floats are made of
 * them. */
#include "worker/data/batches/sample_reader.h"

#include "common/base/log.h"
#include "common/base/random.h"
#include "worker/data/augment/resized_crop.h"

#include <stdlib.h>

struct sample_room {
    struct idle_entry entry;
    uint8_t *bytes, *spare, *other; // (C, H, W), behind the scratch
    uint64_t scratch[];             // (crop_bytes)
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
    bool crops = reader->augmentation.amounts[AUGMENT_RESIZED_CROP] > 0;
    reader->crops_part = crops && dataset_has_parts(reader->dataset);
    reader->crop_bytes = crops && !reader->crops_part ? resized_crop_scratch(&reader->image) : 0;
    return STATUS_OK;
}

enum status sample_reader_init(struct sample_reader *reader, const struct batcher_options *options,
                               const struct dataset *dataset, struct span partners)
{
    *reader = (struct sample_reader){
        .dataset = dataset,
        .partners = partners,
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

static struct sample_room *create_room(const struct sample_reader *reader)
{
    struct sample_room *room =
        malloc(sizeof(*room) + reader->crop_bytes + 3 * reader->stored_bytes);
    if (room != NULL) {
        room->bytes = (uint8_t *)room->scratch + reader->crop_bytes;
        room->spare = room->bytes + reader->stored_bytes;
        room->other = room->spare + reader->stored_bytes;
    }
    return room;
}

enum status sample_reader_begin(struct sample_reader *reader, struct sample_room **ret_room)
{
    struct sample_room *room = NULL;
    if (reader->augments) {
        room = (struct sample_room *)idle_list_take(&reader->rooms);
        if (room == NULL) {
            room = create_room(reader);
        }
        if (room == NULL) {
            log_error("not enough memory to change an image");
            return STATUS_NO_MEMORY;
        }
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

bool sample_reader_mixes(const struct sample_reader *reader)
{
    return reader->augments && reader->augmentation.amounts[AUGMENT_MIXUP] > 0;
}

/* The bytes of a stored image, or of a part of it. */
static enum status read_stored(const struct sample_reader *reader, struct sample_room *room,
                               uint64_t key, uint64_t index, uint8_t *ret_bytes,
                               uint32_t *ret_label)
{
    const struct crop_draw part = augment_part(&reader->augmentation, key);
    if (reader->crops_part) {
        return dataset_read_part(reader->dataset, index, &part, ret_bytes, ret_label);
    }
    enum status status = dataset_read_bytes(reader->dataset, index, ret_bytes, ret_label);
    if (status == STATUS_OK && reader->crop_bytes > 0) {
        resized_crop(&reader->image, &part, room->scratch, ret_bytes);
    }
    return status;
}

/* All changes but mixup. */
static enum status read_changed(const struct sample_reader *reader, struct sample_room *room,
                                uint64_t key, uint64_t index, uint8_t *ret_bytes,
                                uint32_t *ret_label)
{
    enum status status = read_stored(reader, room, key, index, ret_bytes, ret_label);
    if (status == STATUS_OK) {
        augment_apply(&reader->augmentation, &reader->image, key, ret_bytes, room->spare);
    }
    return status;
}

static uint64_t key_of(const struct sample_reader *reader, uint64_t epoch, uint64_t index)
{
    return random_key(reader->seed, RANDOM_AUGMENT, epoch, index);
}

/* Mixes another sample into `bytes`. */
static enum status mix(const struct sample_reader *reader, struct sample_room *room, uint64_t epoch,
                       uint32_t index, uint8_t *bytes, const struct sample_target *target)
{
    const struct mixup mixup = augment_mixup(&reader->augmentation, key_of(reader, epoch, index));
    uint64_t partner = reader->partners.offset + mixup_partner(&mixup, reader->partners.count);
    float share = (float)mixup.share / MIXUP_ONE;
    uint32_t label = *target->label, other;
    enum status status =
        read_changed(reader, room, key_of(reader, epoch, partner), partner, room->other, &other);
    if (status != STATUS_OK) {
        return status;
    }
    mixup_blend(&mixup, room->other, reader->stored_bytes, bytes);
    bool is_less = mixup.share < MIXUP_ONE / 2;
    *target->label = is_less ? other : label;
    *target->mixed = (struct mixed_label){.other = is_less ? label : other,
                                          .share = is_less ? 1 - share : share};
    return STATUS_OK;
}

/* The same pixels or bytes as without an augmentation, of a changed image. */
static enum status read_augmented(const struct sample_reader *reader, struct sample_room *room,
                                  uint64_t epoch, uint32_t index,
                                  const struct sample_target *target)
{
    uint8_t *bytes = reader->reads_bytes ? target->pixels : room->bytes;
    enum status status =
        read_changed(reader, room, key_of(reader, epoch, index), index, bytes, target->label);
    if (status == STATUS_OK && sample_reader_mixes(reader)) {
        status = mix(reader, room, epoch, index, bytes, target);
    }
    if (status == STATUS_OK && !reader->reads_bytes) {
        dataset_convert(reader->dataset, bytes, target->pixels);
    }
    return status;
}

enum status sample_reader_read(const struct sample_reader *reader, struct sample_room *room,
                               uint64_t epoch, uint32_t index, const struct sample_target *target)
{
    if (reader->augments) {
        return read_augmented(reader, room, epoch, index, target);
    }
    if (reader->reads_bytes) {
        return dataset_read_bytes(reader->dataset, index, target->pixels, target->label);
    }
    return dataset_read(reader->dataset, index, target->pixels, target->label);
}
