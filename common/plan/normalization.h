/* How pixels are made of the bytes of images, as --normalize describes it. Pure.
 *
 *     usual          by the figures that each dataset comes with
 *     dataset        by those of the training images, which are counted
 *     none           bytes become 0 to 1
 *     M,M,M/D,D,D    less the mean M of their channel, divided by its deviation D; both as shares
 *                    of 255, one for each channel */
#ifndef COMMON_PLAN_NORMALIZATION_H
#define COMMON_PLAN_NORMALIZATION_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define NORMALIZATION_CHANNELS_MAX 3

enum normalization_kind {
    NORMALIZATION_USUAL,
    NORMALIZATION_DATASET,
    NORMALIZATION_NONE,
    NORMALIZATION_GIVEN
};

struct normalization {
    enum normalization_kind kind;
    uint32_t channels; // given; 0 otherwise
    float mean[NORMALIZATION_CHANNELS_MAX], deviation[NORMALIZATION_CHANNELS_MAX];
};

/* STATUS_INVALID: ret_why says what would be right. */
enum status normalization_parse(const char *text, struct normalization *ret_normalization,
                                char *ret_why, size_t why_size);

#endif
