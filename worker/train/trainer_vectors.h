/* What of a trainer's vectors is in checkpoints, and under which names: for trainer_checkpoint.c,
 * which copies them, and trainer_restore.c. */
#ifndef WORKER_TRAIN_TRAINER_VECTORS_H
#define WORKER_TRAIN_TRAINER_VECTORS_H

#include "common/channel/piece_name.h"
#include "worker/train/trainer_state.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static inline uint64_t trainer_value_count(const struct trainer *trainer)
{
    return model_layout(trainer->model)->value_count;
}

/* Whether workers make the updates, each the same: then each has a part of what all have. */
static inline bool trainer_makes_updates(const struct trainer *trainer)
{
    return exchange_of(trainer->phase->mode.kind)->delivers == EXCHANGE_GRADIENTS;
}

/* Whether workers have something else than the servers: answers in ps-sync are codes. */
static inline bool trainer_has_known(const struct job *job, const struct phase *phase)
{
    return phase->mode.kind == MODE_PS_SYNC && !phase->is_unsynchronised &&
           job->compress.kind != CODEC_NONE;
}

static inline bool trainer_is_local_sgd(const struct trainer *trainer)
{
    return trainer->base != NULL;
}

static inline struct span span_all(uint64_t count)
{
    return (struct span){0, count};
}

static inline void trainer_rank_vector(uint32_t rank, const char *what,
                                       char ret_name[PIECE_NAME_BYTES])
{
    snprintf(ret_name, PIECE_NAME_BYTES, "rank-%" PRIu32 "/%.24s", rank, what);
}

static inline size_t trainer_residuals_bytes(const struct trainer *trainer)
{
    return trainer->ranks.count * trainer_value_count(trainer) * sizeof(float);
}

#endif
