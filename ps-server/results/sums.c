/* Adds up the numbers of all workers, round by round. */
#include "ps-server/results/sums.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum status sums_init(struct sums *sums, uint32_t workers)
{
    *sums = (struct sums){.workers = workers};
    sums->has = calloc(workers, sizeof(*sums->has));
    return sums->has != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void sums_finish(struct sums *sums)
{
    free(sums->has);
    free(sums->values);
    *sums = (struct sums){0};
}

/* Makes room for `count` numbers of each worker. Drops what was there. */
static enum status make_room(struct sums *sums, uint32_t count)
{
    if (count <= sums->capacity) {
        return STATUS_OK;
    }
    double *values = calloc((size_t)sums->workers * count, sizeof(*values));
    if (values == NULL) {
        return STATUS_NO_MEMORY;
    }
    free(sums->values);
    sums->values = values;
    sums->capacity = count;
    return STATUS_OK;
}

/* Adds them up in the place of the first worker. */
static const double *add_up(struct sums *sums)
{
    double *sum = sums->values;
    for (uint32_t rank = 1; rank < sums->workers; rank++) {
        const double *values = sums->values + (size_t)rank * sums->capacity;
        for (uint32_t i = 0; i < sums->count; i++) {
            sum[i] += values[i];
        }
    }
    return sum;
}

enum status sums_add(struct sums *sums, uint32_t rank, uint64_t round, const void *values,
                     uint32_t count, const double **ret_sum)
{
    assert(rank < sums->workers);
    *ret_sum = NULL;
    if (round != sums->round || sums->has[rank] || count == 0 || count > SUMS_COUNT_MAX ||
        (sums->arrived > 0 && count != sums->count)) {
        return STATUS_MISMATCH;
    }
    if (sums->arrived == 0) {
        enum status status = make_room(sums, count);
        if (status != STATUS_OK) {
            return status;
        }
        sums->count = count;
    }
    memcpy(sums->values + (size_t)rank * sums->capacity, values, count * sizeof(double));
    sums->has[rank] = true;
    if (++sums->arrived == sums->workers) {
        memset(sums->has, 0, sums->workers * sizeof(*sums->has));
        sums->arrived = 0;
        sums->round++;
        *ret_sum = add_up(sums);
    }
    return STATUS_OK;
}

void sums_withdraw(struct sums *sums, uint32_t rank)
{
    assert(rank < sums->workers);
    sums->arrived -= sums->has[rank];
    sums->has[rank] = false;
}
