/* How training images are changed before they are used, as --augment describes it. Pure.
 *
 *     flip          left and right are exchanged, for every other image
 *     crop:P        the image moves by up to P pixels in each direction
 *     rotate:D      it is turned about its centre by up to D degrees in each direction
 *     colour:S      brightness, contrast and saturation are each multiplied by 1 - S .. 1 + S
 *     cutout:N      a square of N by N pixels is blanked
 *     resized-crop:A..B
 *                   a part with A to B of the area, of about any shape, is scaled to the whole
 *     mixup:A       it is mixed with another, by a share that is drawn from Beta(A, A)
 *     cifar         flip and crop:4, as He et al. (2016) train on CIFAR
 *     imagenet      resized-crop:0.08..1, flip and colour:0.4, as Szegedy et al. (2015) train
 *
 * Several are separated by commas, presets among them. Whatever the order in the text,
 * resized-crop comes first, and the others follow in the order of the list above. */
#ifndef COMMON_PLAN_AUGMENTATION_H
#define COMMON_PLAN_AUGMENTATION_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

// X(kind, "name", "letter of its number" or NULL, is whole, least, most)
#define AUGMENT_MAP(X)                                      \
    X(FLIP, "flip", NULL, true, 1, 1)                       \
    X(CROP, "crop", "P", true, 1, 512)                      \
    X(ROTATE, "rotate", "D", false, 1, 180)                 \
    X(COLOUR, "colour", "S", false, 0.01, 1)                \
    X(CUTOUT, "cutout", "N", true, 1, 1024)                 \
    X(RESIZED_CROP, "resized-crop", "A..B", false, 0.01, 1) \
    X(MIXUP, "mixup", "A", false, 0.05, 1)

enum augment_kind {
#define X(kind, name, letter, is_whole, least, most) AUGMENT_##kind,
    AUGMENT_MAP(X)
#undef X
        AUGMENT_KIND_COUNT
};

#define AUGMENT_CROP_MOST AUGMENT_KIND_COUNT

/* Zeroed: images stay as they are. */
struct augmentation {
    // 0: not applied. RESIZED_CROP has A, and B stands behind the last kind, at CROP_MOST.
    double amounts[AUGMENT_KIND_COUNT + 1];
};

/* Reads --augment; "none" is nothing. STATUS_INVALID: ret_why says what would be right. */
enum status augmentation_parse(const char *text, struct augmentation *ret_augmentation,
                               char *ret_why, size_t why_size);

/* Whether anything is applied. */
bool augmentation_is_on(const struct augmentation *augmentation);

#endif
