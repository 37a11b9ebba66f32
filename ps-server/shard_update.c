/* Sums, and updates of the parameters. */
#include "common/vector.h"
#include "ps-server/shard_state.h"

#include <string.h>

// Summed, scaled and applied at once, so that the values stay in the cache. In floats.
#define BLOCK_FLOATS 4096

/* Sums one chunk's piece of the part in ring order and applies it, block by block. */
static void update_piece(struct shard *shard, const struct part *part, struct span piece,
                         uint32_t chunk, uint64_t version, double rate)
{
    uint32_t workers = shard->config.workers;
    float sum[BLOCK_FLOATS];
    for (uint64_t done = 0; done < piece.count;) {
        uint64_t rest = piece.count - done;
        uint64_t count = rest < BLOCK_FLOATS ? rest : BLOCK_FLOATS;
        uint64_t at = piece.offset + done - part->span.offset;
        const float *first = part->values[chunk] + at;
        if (workers == 1) {
            memcpy(sum, first, count * sizeof(float));
        } else {
            vector_sum(sum, first, part->values[chunk + 1 < workers ? chunk + 1 : 0] + at, count);
        }
        for (uint32_t i = 2; i < workers; i++) {
            vector_add(sum, part->values[(chunk + i) % workers] + at, count);
        }
        if (workers > 1) {
            vector_scale(sum, shard->mean_factor, count);
        }
        optimizer_apply(shard->optimizer, (struct span){part->offset + at, count},
                        shard->params + part->offset + at, sum, version + 1, rate);
        done += count;
    }
}

static void release_push(struct part *part, uint32_t rank)
{
    if (part->values[rank] != NULL) {
        envelope_release(&part->pushes[rank]);
        part->values[rank] = NULL;
    }
}

void shard_drop_push(struct shard *shard, struct group *group, uint32_t rank)
{
    for (uint32_t i = group->first; i < group->end; i++) {
        release_push(&shard->parts[i], rank);
    }
    group->seats[rank].part_pushes = 0;
    group->seats[rank].clock++;
}

void shard_update_all(struct shard *shard, struct group *group)
{
    uint32_t workers = shard->config.workers;
    double rate = schedule_rate(&shard->config.schedule, group->version);
    for (uint32_t i = group->first; i < group->end; i++) {
        const struct part *part = &shard->parts[i];
        struct span bucket = shard->config.layout.buckets[i];
        for (uint32_t chunk = 0; part->span.count > 0 && chunk < workers; chunk++) {
            struct span piece = span_intersect(part->span, span_part(bucket, workers, chunk));
            update_piece(shard, part, piece, chunk, group->version, rate);
        }
    }
    for (uint32_t rank = 0; rank < workers; rank++) {
        shard_drop_push(shard, group, rank);
    }
    group->version++;
}

void shard_update_one(struct shard *shard, struct group *group, uint32_t rank)
{
    // The rate follows the samples that were seen: N updates are what a step of ps-sync is.
    double rate = schedule_rate(&shard->config.schedule, group->version / shard->config.workers);
    for (uint32_t i = group->first; i < group->end; i++) {
        const struct part *part = &shard->parts[i];
        if (part->span.count > 0) {
            optimizer_apply(shard->optimizer, (struct span){part->offset, part->span.count},
                            shard->params + part->offset, part->values[rank], group->version + 1,
                            rate);
        }
    }
    struct seat *seat = &group->seats[rank];
    seat->staleness = group->version - seat->read_version;
    staleness_add(&shard->staleness, seat->staleness);
    shard_drop_push(shard, group, rank);
    group->version++;
    shard_keep_version(shard, group);
}

void shard_keep_version(struct shard *shard, const struct group *group)
{
    if (shard->history_count > 0) {
        uint64_t slot = group->version % shard->history_count;
        memcpy(shard->history + slot * shard->value_count, shard->params,
               shard->value_count * sizeof(float));
    }
}
