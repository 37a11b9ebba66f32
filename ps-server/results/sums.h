/* Adds up numbers of all workers: those of batch normalisation over all their batches (--sync-bn),
 * and its statistics before an evaluation. Pure.
 *
 * A round is over when every worker has given its numbers. They are added in the order of ranks,
 * not of arrival, so that the sum has the same bits in every run. */
#ifndef PS_SERVER_RESULTS_SUMS_H
#define PS_SERVER_RESULTS_SUMS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUMS_COUNT_MAX (UINT32_C(1) << 20)

struct sums {
    uint32_t workers, arrived;
    uint32_t count; // numbers from each worker in this round, as its first one gave them
    uint64_t round; // how many rounds came before
    bool *has;      // (workers), owned
    double *values; // (workers, capacity), owned
    uint32_t capacity;
};

enum status sums_init(struct sums *sums, uint32_t workers);
void sums_finish(struct sums *sums);

/* Takes a worker's numbers for a round: `count` doubles, which need no alignment. If they complete
 * the round, *ret_sum points to (count) sums, valid until the next call; otherwise it is NULL.
 * Returns STATUS_MISMATCH if the round is not this one, or the other workers gave another count. */
enum status sums_add(struct sums *sums, uint32_t rank, uint64_t round, const void *values,
                     uint32_t count, const double **ret_sum);

/* Takes back what a worker has given to a round that is not over. */
void sums_withdraw(struct sums *sums, uint32_t rank);

#endif
