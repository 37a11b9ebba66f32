/* Where a shard's vectors lie, and what is computed on them: in memory of the host, or of a device.
 * What a shard decides is the same for both, and so are the bits.
 *
 * On a device everything is queued; finish waits. A fault is kept in shard->fault, and everything
 * after it does nothing. */
#ifndef PS_SERVER_SHARD_SHARD_MATH_H
#define PS_SERVER_SHARD_SHARD_MATH_H

#include "ps-server/shard/shard_state.h"

struct shard_math {
    enum status (*begin)(struct shard *shard); // makes the optimizer
    void (*end)(struct shard *shard);

    /* Zeroed. */
    enum status (*create)(const struct shard *shard, uint64_t count, float **ret_vector);
    void (*destroy)(const struct shard *shard, float *vector, uint64_t count); // NULL is fine
    void (*copy)(struct shard *shard, float *to, const float *from, uint64_t count);

    /* One update of a unit from the mean of its contributors (shard_list_contributors). */
    void (*apply_mean)(struct shard *shard, const struct unit *unit, uint64_t update, double rate);

    /* One part of a worker's push: into the sum, or straight into the parameters. */
    void (*take_part)(struct shard *shard, const struct part *part, uint32_t rank, uint64_t update,
                      double rate);

    /* An update from the mean of the `count` gradients in the sum, which is cleared. */
    void (*apply_sum)(struct shard *shard, uint32_t count, uint64_t update, double rate);

    /* State `index` of the optimizer. */
    float *(*state)(const struct shard *shard, uint32_t index);

    /* What was computed is there, and what it was computed from is not read any more. */
    void (*finish)(struct shard *shard);
};

extern const struct shard_math shard_math_host, shard_math_device;

/* The ranks whose pushes of a unit are whole go to shard->contributors, in ring order: from `chunk`
 * on. How many there are. */
uint32_t shard_list_contributors(struct shard *shard, const struct unit *unit, uint32_t chunk);

#endif
