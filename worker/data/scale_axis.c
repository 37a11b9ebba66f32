/* Weights of a triangle, whose sum is 1 up to rounding. */
#include "worker/data/scale_axis.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Takes back what rounding added to each. */
static void scale_down(int32_t *weights, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        weights[i] -= weights[i] > 0;
    }
}

/* Writes the weights of one tap. */
static void fill_weights(const struct scale_tap *tap, double centre, double width,
                         int32_t *ret_weights)
{
    double sum = 0;
    for (uint32_t i = 0; i < tap->count; i++) {
        sum += fmax(0, 1 - fabs(tap->first + i + 0.5 - centre) / width);
    }
    int32_t all = 0;
    for (uint32_t i = 0; i < tap->count; i++) {
        double share = fmax(0, 1 - fabs(tap->first + i + 0.5 - centre) / width) / sum;
        ret_weights[i] = (int32_t)(share * (1 << SCALE_WEIGHT_BITS) + 0.5);
        all += ret_weights[i];
    }
    if (all > SCALE_WEIGHTS_MAX) { // many thousands, each of which was rounded up
        scale_down(ret_weights, tap->count);
    }
}

/* Leaves out weights of 0 at both ends, which change no sum. */
static void trim(struct scale_tap *tap, int32_t *all_weights)
{
    int32_t *weights = all_weights + tap->weights_at;
    while (tap->count > 1 && weights[tap->count - 1] == 0) {
        tap->count--;
    }
    uint32_t empty = 0;
    while (empty + 1 < tap->count && weights[empty] == 0) {
        empty++;
    }
    tap->first += empty;
    tap->count -= empty;
    memmove(weights, weights + empty, tap->count * sizeof(*weights));
}

static double width_of(uint32_t size, const struct scale_part *part)
{
    return fmax(1, part->side / size);
}

size_t scale_axis_weights(uint32_t size, const struct scale_part *part)
{
    return size * ((size_t)ceil(2 * width_of(size, part)) + 2);
}

void scale_axis_plan(struct scale_axis *axis, uint32_t size, const struct scale_part *part)
{
    double scale = part->side / size, width = width_of(size, part);
    size_t used = 0;
    for (uint32_t i = 0; i < size; i++) {
        double centre = part->begin + (i + 0.5) * scale;
        double low = fmax(part->low, centre - width + 0.5);
        double high = fmin(part->high, centre + width + 0.5);
        struct scale_tap tap = {.first = (uint32_t)low, .weights_at = used};
        tap.count = (uint32_t)high - tap.first;
        assert(tap.count > 0 && used + tap.count <= axis->capacity);
        fill_weights(&tap, centre, width, axis->weights + used);
        trim(&tap, axis->weights);
        used += tap.count;
        axis->taps[i] = tap;
    }
}

bool scale_axis_is_plain(const struct scale_axis *axis, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        if (axis->taps[i].count != 1 || axis->taps[i].first != axis->taps[0].first + i) {
            return false;
        }
    }
    return true;
}
