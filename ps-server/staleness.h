/* How many updates old gradients were when they were applied: counts of 0, of 1, ... Pure. */
#ifndef PS_SERVER_STALENESS_H
#define PS_SERVER_STALENESS_H

#include <stdint.h>

// The last bin counts everything from there on.
#define STALENESS_BINS 1024

struct staleness {
    uint64_t counts[STALENESS_BINS];
    uint64_t total, sum, max;
};

void staleness_add(struct staleness *staleness, uint64_t value);

/* The same `count` times. */
void staleness_add_many(struct staleness *staleness, uint64_t value, uint64_t count);

/* Mean over all; 0 if there was none. */
double staleness_mean(const struct staleness *staleness);

/* Bins up to the last that is not empty; at least 1. */
uint32_t staleness_bins(const struct staleness *staleness);

#endif
