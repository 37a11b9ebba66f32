/* A histogram. */
#include "ps-server/staleness.h"

void staleness_add_many(struct staleness *staleness, uint64_t value, uint64_t count)
{
    staleness->counts[value < STALENESS_BINS ? value : STALENESS_BINS - 1] += count;
    staleness->total += count;
    staleness->sum += value * count;
    if (count > 0 && value > staleness->max) {
        staleness->max = value;
    }
}

void staleness_add(struct staleness *staleness, uint64_t value)
{
    staleness_add_many(staleness, value, 1);
}

double staleness_mean(const struct staleness *staleness)
{
    return staleness->total > 0 ? (double)staleness->sum / (double)staleness->total : 0;
}

uint32_t staleness_bins(const struct staleness *staleness)
{
    uint32_t bins = STALENESS_BINS;
    while (bins > 1 && staleness->counts[bins - 1] == 0) {
        bins--;
    }
    return bins;
}
