/* Draws by Jöhnk's method (1964): of two uniform numbers U and V, U^(1/A) over U^(1/A) + V^(1/A)
 * follows Beta(A, A), if that sum is at most 1. */
#include "worker/data/augment/mixup.h"

#include "common/base/random.h"

#include <math.h>

// The chance that all fail is below 2^-64.
#define TRIES 64

/* Above 0, so that no power is 0: A is at least 0.05. */
static double draw_power(uint64_t key, uint32_t index, double amount)
{
    return pow((random_element(key, index) + 0.5) * 0x1p-32, 1 / amount);
}

/* Rounded far above the last bits, in which mathematical libraries differ. */
static uint32_t draw_share(double amount, uint64_t key)
{
    for (uint32_t i = 0; i < TRIES; i++) {
        double u = draw_power(key, 2 * i + 1, amount), v = draw_power(key, 2 * i + 2, amount);
        if (u + v <= 1) {
            return (uint32_t)lround(u / (u + v) * MIXUP_ONE);
        }
    }
    return MIXUP_ONE / 2;
}

struct mixup mixup_draw(double amount, uint64_t key)
{
    return (struct mixup){.share = draw_share(amount, key), .place = random_element(key, 0)};
}

uint64_t mixup_partner(const struct mixup *mixup, uint64_t count)
{
    return mixup->place * count >> 32;
}

void mixup_blend(const struct mixup *mixup, const uint8_t *other, size_t count, uint8_t *bytes)
{
    uint32_t share = mixup->share, rest = MIXUP_ONE - share;
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)((bytes[i] * share + other[i] * rest + MIXUP_ONE / 2) >> 16);
    }
}
