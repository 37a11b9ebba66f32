/* A histogram of the staleness of gradients. */
#include "ps-server/results/staleness.h"

void staleness_add_many(struct staleness *staleness, uint64_t value, uint64_t count)
{
    staleness->counts[value < STALENESS_BINS ? value : STALENESS_BINS - 1] += count;
    staleness->total += count;
    staleness->sum += (double)value * (double)count;
    if (count > 0 && value > staleness->max) {
        staleness->max = value;
    }
}

void staleness_add(struct staleness *staleness, uint64_t value)
{
    staleness_add_many(staleness, value, 1);
}

void staleness_add_counts(struct staleness *staleness, const uint64_t *counts, uint32_t bins,
                          double sum, uint64_t max)
{
    for (uint32_t i = 0; i < bins; i++) {
        staleness->counts[i < STALENESS_BINS ? i : STALENESS_BINS - 1] += counts[i];
        staleness->total += counts[i];
    }
    staleness->sum += sum;
    staleness->max = max > staleness->max ? max : staleness->max;
}

void staleness_add_all(struct staleness *staleness, const struct staleness *other)
{
    staleness_add_counts(staleness, other->counts, STALENESS_BINS, other->sum, other->max);
}

/* count * of / from, rounded. */
static uint64_t scale(uint64_t count, uint32_t of, uint32_t from)
{
    return count / from * of + (count % from * of + from / 2) / from;
}

void staleness_scale(struct staleness *staleness, uint32_t of, uint32_t from)
{
    uint64_t total = 0, scaled_total = 0; // of the bins so far, so that errors do not add up
    for (uint32_t i = 0; i < STALENESS_BINS; i++) {
        total += staleness->counts[i];
        uint64_t scaled = scale(total, of, from);
        staleness->counts[i] = scaled - scaled_total;
        scaled_total = scaled;
    }
    staleness->total = scaled_total;
    staleness->sum *= (double)of / from;
}

bool staleness_is_capped(const struct staleness *staleness)
{
    return staleness->max >= STALENESS_BINS;
}

double staleness_mean(const struct staleness *staleness)
{
    return staleness->total > 0 ? staleness->sum / (double)staleness->total : 0;
}

uint32_t staleness_bins(const struct staleness *staleness)
{
    uint32_t bins = STALENESS_BINS;
    while (bins > 1 && staleness->counts[bins - 1] == 0) {
        bins--;
    }
    return bins;
}
