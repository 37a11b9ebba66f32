/* Applies the changes of an augmentation, one after the other. */
#include "worker/data/augment/augment.h"

#include "common/base/random.h"
#include "worker/data/augment/changes.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct row {
    /* Draws, and changes the image. True: the result is in `spare`. */
    bool (*apply)(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                  uint8_t *spare);
    bool is_bounded; // by the size of the image
};

static const struct row rows[AUGMENT_KIND_COUNT] = {
    [AUGMENT_FLIP] = {change_flip, false},
    [AUGMENT_CROP] = {change_crop, true},
    [AUGMENT_ROTATE] = {change_rotate, false},
    [AUGMENT_COLOUR] = {change_colour, false},
    [AUGMENT_CUTOUT] = {change_cutout, true},
    // Before the others, of the stored image; and after them, of two.
    [AUGMENT_RESIZED_CROP] = {NULL, false},
    [AUGMENT_MIXUP] = {NULL, false},
};

static const char *const names[AUGMENT_KIND_COUNT] = {
#define X(kind, name, letter, is_whole, least, most) name,
    AUGMENT_MAP(X)
#undef X
};

/* Each has a key of its own, so that one more changes nothing of what the others draw. */
static uint64_t own_key(uint64_t key, size_t kind)
{
    return random_mix(key + kind);
}

/* The byte whose value is nearest to zero. */
static uint8_t blank_of(float scale, float shift)
{
    float byte = roundf(-shift / scale);
    return byte < 0 ? 0 : byte > 255 ? 255 : (uint8_t)byte;
}

struct augment_image augment_image_of(const struct pixels_source *source)
{
    struct augment_image image = {
        .channels = source->channels,
        .rows = source->rows,
        .columns = source->columns,
    };
    for (uint32_t c = 0; c < source->channels; c++) {
        image.blank[c] = blank_of(source->scale[c], source->shift[c]);
    }
    return image;
}

enum status augment_check(const struct augmentation *augmentation,
                          const struct augment_image *image, char *ret_why, size_t why_size)
{
    uint32_t least = image->rows < image->columns ? image->rows : image->columns;
    for (size_t i = 0; i < AUGMENT_KIND_COUNT; i++) {
        if (rows[i].is_bounded && augmentation->amounts[i] >= least) {
            snprintf(ret_why, why_size, "%s:%g does not fit images of %ux%u: it must be below %u",
                     names[i], augmentation->amounts[i], image->rows, image->columns, least);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

struct crop_draw augment_part(const struct augmentation *augmentation, uint64_t key)
{
    return (struct crop_draw){.least = augmentation->amounts[AUGMENT_RESIZED_CROP],
                              .most = augmentation->amounts[AUGMENT_CROP_MOST],
                              .key = own_key(key, AUGMENT_RESIZED_CROP)};
}

struct mixup augment_mixup(const struct augmentation *augmentation, uint64_t key)
{
    return mixup_draw(augmentation->amounts[AUGMENT_MIXUP], own_key(key, AUGMENT_MIXUP));
}

void augment_apply(const struct augmentation *augmentation, const struct augment_image *image,
                   uint64_t key, uint8_t *bytes, uint8_t *spare)
{
    uint8_t *from = bytes, *to = spare;
    for (size_t i = 0; i < AUGMENT_KIND_COUNT; i++) {
        double amount = augmentation->amounts[i];
        bool is_here = amount != 0 && rows[i].apply != NULL;
        if (is_here && rows[i].apply(image, amount, own_key(key, i), from, to)) {
            uint8_t *swapped = from;
            from = to;
            to = swapped;
        }
    }
    if (from != bytes) {
        memcpy(bytes, from, (size_t)image->channels * image->rows * image->columns);
    }
}
