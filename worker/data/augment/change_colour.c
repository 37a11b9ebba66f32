/* Changes brightness, contrast and saturation of an image.
 *
 * Factors are fixed-point numbers with 16 bits behind the point. The grey of a pixel is the luma of
 * ITU-R BT.601, in whole numbers: (299 R + 587 G + 114 B + 500) / 1000. */
#include "common/base/random.h"
#include "worker/data/augment/changes.h"

#include <assert.h>

#define ONE 65536

static int64_t draw_factor(uint64_t key, uint32_t index, double amount)
{
    int64_t reach = (int64_t)(amount * ONE);
    return ONE - reach +
           (int64_t)((uint64_t)random_element(key, index) * (uint64_t)(2 * reach + 1) >> 32);
}

/* base + (value - base) * factor, within a byte. */
static uint8_t spread(int64_t value, int64_t base, int64_t factor)
{
    int64_t spread = (base * ONE + (value - base) * factor + ONE / 2) >> 16;
    return spread < 0 ? 0 : spread > 255 ? 255 : (uint8_t)spread;
}

static void spread_all(uint8_t *bytes, size_t count, int64_t base, int64_t factor)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = spread(bytes[i], base, factor);
    }
}

static int64_t grey_of(const uint8_t *bytes, size_t plane, uint32_t channels)
{
    if (channels != 3) {
        return bytes[0];
    }
    return (299 * bytes[0] + 587 * bytes[plane] + 114 * bytes[2 * plane] + 500) / 1000;
}

static int64_t mean_grey(const uint8_t *bytes, size_t plane, uint32_t channels)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < plane; i++) {
        sum += (uint64_t)grey_of(bytes + i, plane, channels);
    }
    return (int64_t)((sum + plane / 2) / plane);
}

static void saturate(uint8_t *bytes, size_t plane, int64_t factor)
{
    for (size_t i = 0; i < plane; i++) {
        int64_t grey = grey_of(bytes + i, plane, 3);
        for (size_t channel = 0; channel < 3; channel++) {
            bytes[channel * plane + i] = spread(bytes[channel * plane + i], grey, factor);
        }
    }
}

bool change_colour(const struct augment_image *image, double amount, uint64_t key, uint8_t *bytes,
                   uint8_t *spare)
{
    (void)spare;
    size_t plane = (size_t)image->rows * image->columns, count = plane * image->channels;
    assert(plane > 0);
    spread_all(bytes, count, 0, draw_factor(key, 0, amount));
    spread_all(bytes, count, mean_grey(bytes, plane, image->channels), draw_factor(key, 1, amount));
    if (image->channels == 3) {
        saturate(bytes, plane, draw_factor(key, 2, amount));
    }
    return false;
}
