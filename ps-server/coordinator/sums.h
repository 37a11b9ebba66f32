/* Numbers that all workers add up: those of batch normalisation over their batches together
 * (--sync-bn), and its statistics before an evaluation. Pure.
 *
 * A round is over when every worker has given its numbers. They are added in the order of the
 * ranks, whatever the order in which they came, so that the sum has the same bits in every run. */
#ifndef PS_SERVER_COORDINATOR_SUMS_H
#define PS_SERVER_COORDINATOR_SUMS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUMS_COUNT_MAX (UINT32_C(1) << 20)

struct sums {
    uint32_t workers, arrived;
    uint32_t count; // numbers of this round, as its first worker has them
    uint64_t round; // how many were before
    bool *has;      // (workers), owned
    double *values; // (workers, capacity), owned
    uint32_t capacity;
};

enum status sums_init(struct sums *sums, uint32_t workers);
void sums_finish(struct sums *sums);

/* What a worker gives to a round: `count` doubles, aligned to any address. *ret_sum is not NULL
 * when the round is over with it: (count) sums, valid until the next call. STATUS_MISMATCH: it is
 * not this round that it gives to, or the others give another count. */
enum status sums_add(struct sums *sums, uint32_t rank, uint64_t round, const void *values,
                     uint32_t count, const double **ret_sum);

#endif
