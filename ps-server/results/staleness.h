/* A histogram of how many updates old gradients were when they were applied. Pure. */
#ifndef PS_SERVER_RESULTS_STALENESS_H
#define PS_SERVER_RESULTS_STALENESS_H

#include <stdbool.h>
#include <stdint.h>

// The last bin counts everything from there on; sum and max do not know of bins.
#define STALENESS_BINS 1024

struct staleness {
    uint64_t counts[STALENESS_BINS];
    uint64_t total, max;
    double sum; // also of values that peers report: exact up to 2^53
};

void staleness_add(struct staleness *staleness, uint64_t value);

/* The same `count` times. */
void staleness_add_many(struct staleness *staleness, uint64_t value, uint64_t count);

/* Adds another histogram: the counts of its bins 0, 1, ..., and the sum and the largest of its
 * values. */
void staleness_add_counts(struct staleness *staleness, const uint64_t *counts, uint32_t bins,
                          double sum, uint64_t max);
void staleness_add_all(struct staleness *staleness, const struct staleness *other);

/* Turns the counts of `from` shards into those of `of` shards. Each gradient counts once on each
 * shard. The counts of bins are rounded, but their total is exact where `from` divides it. Neither
 * number is 0. */
void staleness_scale(struct staleness *staleness, uint32_t of, uint32_t from);

/* Whether the last bin also counts larger values. */
bool staleness_is_capped(const struct staleness *staleness);

/* Mean over all; 0 if there was none. */
double staleness_mean(const struct staleness *staleness);

/* Bins up to the last that is not empty; at least 1. */
uint32_t staleness_bins(const struct staleness *staleness);

#endif
