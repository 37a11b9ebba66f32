/* Sum, update, answer. */
#include "ps-server/shard.h"

#include "common/memory.h"
#include "common/vector.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Summed, scaled and applied at once, so that the values stay in the cache. In floats.
#define BLOCK_FLOATS 4096

/* This shard's part of one bucket. */
struct part {
    struct span span;        // in the flat vector
    uint64_t offset;         // in the shard's own vectors
    uint64_t clock;          // updates applied: steps that every worker has contributed
    uint64_t seed_count;     // floats of the first parameters that have come
    uint32_t push_count;     // workers whose push of step `clock` is here
    struct envelope *pushes; // (workers)
    const float **values;    // (workers) of the pushes; NULL: not here yet
    uint64_t *pull_steps;    // (workers) parameters asked for, as step + 1; 0: none
};

struct shard {
    struct shard_config config;
    struct part *parts; // (bucket_count)
    struct optimizer *optimizer;
    uint64_t value_count; // of this shard
    float *params;        // (value_count)
    float mean_factor;
};

static void part_destroy(struct part *part, uint32_t workers)
{
    for (uint32_t i = 0; part->pushes != NULL && part->values != NULL && i < workers; i++) {
        if (part->values[i] != NULL) {
            envelope_release(&part->pushes[i]);
        }
    }
    free(part->pushes);
    free(part->values);
    free(part->pull_steps);
}

void shard_destroy(struct shard *shard)
{
    if (shard == NULL) {
        return;
    }
    for (uint32_t i = 0; shard->parts != NULL && i < shard->config.layout.bucket_count; i++) {
        part_destroy(&shard->parts[i], shard->config.workers);
    }
    free(shard->parts);
    optimizer_destroy(shard->optimizer);
    if (shard->config.params == NULL) {
        memory_destroy_large(shard->params, shard->value_count * sizeof(float));
    }
    free(shard);
}

static enum status part_create(struct part *part, struct span bucket, const struct shard *shard)
{
    uint32_t workers = shard->config.workers;
    part->span = span_part(bucket, shard->config.shard_count, shard->config.index);
    part->offset = shard->value_count;
    part->pushes = calloc(workers, sizeof(*part->pushes));
    part->values = calloc(workers, sizeof(*part->values));
    part->pull_steps = calloc(workers, sizeof(*part->pull_steps));
    return part->pushes == NULL || part->values == NULL || part->pull_steps == NULL
               ? STATUS_NO_MEMORY
               : STATUS_OK;
}

uint64_t shard_value_count(const struct shard_config *config)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < config->layout.bucket_count; i++) {
        count += span_part(config->layout.buckets[i], config->shard_count, config->index).count;
    }
    return count;
}

enum status shard_create(const struct shard_config *config, struct shard **ret_shard)
{
    assert(config->index < config->shard_count && config->workers > 0);
    struct shard *shard = calloc(1, sizeof(*shard));
    if (shard == NULL) {
        return STATUS_NO_MEMORY;
    }
    shard->config = *config;
    shard->mean_factor = 1.0f / (float)config->workers;
    enum status status = STATUS_NO_MEMORY;
    shard->parts = calloc(config->layout.bucket_count, sizeof(*shard->parts));
    if (shard->parts == NULL) {
        goto fail;
    }
    for (uint32_t i = 0; i < config->layout.bucket_count; i++) {
        status = part_create(&shard->parts[i], config->layout.buckets[i], shard);
        if (status != STATUS_OK) {
            goto fail;
        }
        shard->value_count += shard->parts[i].span.count;
    }
    // More shards than floats: this one has nothing to keep, and is never asked.
    if (shard->value_count > 0) {
        status = STATUS_NO_MEMORY;
        shard->params = config->params != NULL
                            ? config->params
                            : memory_create_large(shard->value_count * sizeof(float));
        if (shard->params == NULL) {
            goto fail;
        }
        status = optimizer_create(config->optimizer, &config->settings, shard->value_count,
                                  &shard->optimizer);
        if (status != STATUS_OK) {
            goto fail;
        }
    }
    *ret_shard = shard;
    return STATUS_OK;
fail:
    shard_destroy(shard);
    return status;
}

/* Sums one chunk's piece of the part in ring order and applies it, block by block. */
static void update_piece(struct shard *shard, struct part *part, struct span piece, uint32_t chunk,
                         double rate)
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
                        shard->params + part->offset + at, sum, part->clock + 1, rate);
        done += count;
    }
}

static void update_part(struct shard *shard, struct part *part, struct span bucket)
{
    uint32_t workers = shard->config.workers;
    double rate = schedule_rate(&shard->config.schedule, part->clock);
    for (uint32_t chunk = 0; chunk < workers; chunk++) {
        struct span piece = span_intersect(part->span, span_part(bucket, workers, chunk));
        update_piece(shard, part, piece, chunk, rate);
    }
    for (uint32_t i = 0; i < workers; i++) {
        envelope_release(&part->pushes[i]);
        part->values[i] = NULL;
    }
    part->push_count = 0;
    part->clock++;
}

/* Answers the pulls that the consistency rule now allows. */
static void answer_pulls(struct shard *shard, uint32_t bucket, shard_send_fn *send, void *context)
{
    struct part *part = &shard->parts[bucket];
    for (uint32_t rank = 0; rank < shard->config.workers; rank++) {
        if (part->pull_steps[rank] == 0 ||
            !consistency_may_read(&shard->config.consistency, part->clock,
                                  part->pull_steps[rank] - 1)) {
            continue;
        }
        struct message params = {
            .kind = MESSAGE_PARAMS,
            .rank = rank,
            .step = part->pull_steps[rank] - 1,
            .bucket = bucket,
            .span = part->span,
            .values = shard->params + part->offset,
        };
        part->pull_steps[rank] = 0;
        send(context, rank, &params);
    }
}

static enum status receive_seed(struct shard *shard, struct part *part,
                                const struct message *message)
{
    if (message->rank != 0 || part->seed_count != 0) {
        return STATUS_MALFORMED;
    }
    memcpy(shard->params + part->offset, message->values, part->span.count * sizeof(float));
    part->seed_count = part->span.count;
    return STATUS_OK;
}

static enum status receive_push(struct shard *shard, struct part *part,
                                const struct message *message, struct envelope *envelope)
{
    uint32_t rank = message->rank;
    // Rank 0 seeds before it pushes, so an update never meets parameters that are not there.
    if (message->step != part->clock || part->values[rank] != NULL ||
        (rank == 0 && part->seed_count == 0)) {
        return STATUS_MALFORMED;
    }
    envelope_move(&part->pushes[rank], envelope);
    part->values[rank] = part->pushes[rank].payload;
    part->push_count++;
    if (part->push_count == shard->config.workers) {
        update_part(shard, part, shard->config.layout.buckets[message->bucket]);
    }
    return STATUS_OK;
}

enum status shard_receive(struct shard *shard, const struct message *message,
                          struct envelope *envelope, shard_send_fn *send, void *context)
{
    if (message->rank >= shard->config.workers ||
        message->bucket >= shard->config.layout.bucket_count) {
        return STATUS_MALFORMED;
    }
    struct part *part = &shard->parts[message->bucket];
    if (message->span.offset != part->span.offset || message->span.count != part->span.count ||
        part->span.count == 0) {
        return STATUS_MALFORMED;
    }
    enum status status;
    if (message->kind == MESSAGE_SEED) {
        return receive_seed(shard, part, message);
    }
    if (message->kind == MESSAGE_PUSH) {
        status = receive_push(shard, part, message, envelope);
        if (status != STATUS_OK) {
            return status;
        }
    } else if (message->kind == MESSAGE_PULL) {
        // One pull at a time, for a step that can still come.
        if (part->pull_steps[message->rank] != 0 || message->step == UINT64_MAX) {
            return STATUS_MALFORMED;
        }
        part->pull_steps[message->rank] = message->step + 1;
    } else {
        return STATUS_MALFORMED;
    }
    answer_pulls(shard, message->bucket, send, context);
    return STATUS_OK;
}

uint64_t shard_version(const struct shard *shard)
{
    uint64_t version = UINT64_MAX;
    for (uint32_t i = 0; i < shard->config.layout.bucket_count; i++) {
        const struct part *part = &shard->parts[i];
        if (part->span.count > 0 && part->clock < version) {
            version = part->clock;
        }
    }
    return version == UINT64_MAX ? 0 : version;
}

const float *shard_params(const struct shard *shard, uint32_t bucket, struct span *ret_span)
{
    assert(bucket < shard->config.layout.bucket_count);
    *ret_span = shard->parts[bucket].span;
    return ret_span->count > 0 ? shard->params + shard->parts[bucket].offset : NULL;
}
