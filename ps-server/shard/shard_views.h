/* Delays for each worker: the model of Dai et al. (2018). Pure; of shard.c.
 *
 * Every worker has parameters of its own, its view, and an optimizer of its own. In iteration t
 * worker p computes a gradient on its view, and its optimizer makes a change of it. Worker q sees
 * the change at the beginning of iteration t + 1 + r, where r is drawn from (seed, t, p, q): also
 * p's own comes late to it. The shard's parameters are those that have every change at once. */
#ifndef PS_SERVER_SHARD_SHARD_VIEWS_H
#define PS_SERVER_SHARD_SHARD_VIEWS_H

#include "common/base/status.h"
#include "common/optimizer/optimizer.h"

#include <stdint.h>

struct shard;
struct unit;

struct views {
    float *params;  // (workers, value_count) what each worker sees
    float *pending; // (entry_count, workers, value_count): changes that are seen in iteration t lie
                    // in entry t modulo entry_count
    float *change;  // (value_count) room for one
    uint64_t entry_count;          // the longest delay, and 1
    struct optimizer **optimizers; // (workers)
};

/* Floats that views take. Capped. */
uint64_t shard_views_value_count(const struct shard *shard);

/* For a shard whose config asks for them. */
enum status shard_views_create(struct shard *shard);
void shard_views_destroy(struct shard *shard); // without views: nothing

/* Begins with the shard's parameters. */
void shard_views_seed(struct shard *shard);

/* An iteration, from the pushes of all workers, which it releases. */
void shard_views_update(struct shard *shard, struct unit *unit);

/* What a worker sees. */
const float *shard_view(const struct shard *shard, uint32_t rank);

#endif
