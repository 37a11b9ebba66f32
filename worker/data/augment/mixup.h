/* Mixes two images, as Zhang et al. (2018): each pixel is share * (this one) + (1 - share) * (the
 * other), and so is the loss. The share follows the distribution Beta(A, A). Pure. */
#ifndef WORKER_DATA_AUGMENT_MIXUP_H
#define WORKER_DATA_AUGMENT_MIXUP_H

#include <stddef.h>
#include <stdint.h>

#define MIXUP_ONE 65536

struct mixup {
    uint32_t share; // of the image itself: 0 to MIXUP_ONE
    uint32_t place; // of the other one: see mixup_partner
};

/* amount: A. */
struct mixup mixup_draw(double amount, uint64_t key);

/* Which of `count` samples the other one is; all are alike likely, itself among them. */
uint64_t mixup_partner(const struct mixup *mixup, uint64_t count);

/* Mixes the other one into `bytes`, rounded to the nearest byte. */
void mixup_blend(const struct mixup *mixup, const uint8_t *other, size_t count, uint8_t *bytes);

#endif
