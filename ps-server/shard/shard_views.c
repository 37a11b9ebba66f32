/* Keeps a view of the parameters for each worker, in which changes appear after a delay. */
#include "ps-server/shard/shard_views.h"

#include "common/base/memory.h"
#include "common/vector/vector.h"
#include "ps-server/shard/shard_state.h"

#include <stdlib.h>
#include <string.h>

static uint64_t entry_count_of(const struct shard *shard)
{
    return order_staleness_max(&shard->config.order, shard->config.workers) + 1;
}

uint64_t shard_views_value_count(const struct shard *shard)
{
    // Views and what is pending for them; the optimizers' states are like those of any mode.
    uint64_t vectors = (entry_count_of(shard) + 1) * shard->config.workers + 1, count;
    bool is_too_large = __builtin_mul_overflow(vectors, shard->value_count, &count);
    return is_too_large ? UINT64_MAX / sizeof(float) : count;
}

static float *create_vectors(const struct shard *shard, uint64_t count)
{
    uint64_t floats;
    if (__builtin_mul_overflow(count, shard->value_count, &floats) ||
        floats > SIZE_MAX / sizeof(float)) {
        return NULL;
    }
    return memory_create_large(floats * sizeof(float));
}

enum status shard_views_create(struct shard *shard)
{
    const struct shard_config *config = &shard->config;
    struct views *views = calloc(1, sizeof(*views));
    if (views == NULL) {
        return STATUS_NO_MEMORY;
    }
    shard->views = views;
    views->entry_count = entry_count_of(shard);
    views->params = create_vectors(shard, config->workers);
    views->pending = create_vectors(shard, views->entry_count * config->workers);
    views->change = create_vectors(shard, 1);
    views->optimizers = calloc(config->workers, sizeof(struct optimizer *));
    if (views->params == NULL || views->pending == NULL || views->change == NULL ||
        views->optimizers == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < config->workers && status == STATUS_OK; i++) {
        status = optimizer_create(config->optimizer, &config->settings, shard->value_count,
                                  &views->optimizers[i]);
    }
    return status;
}

void shard_views_destroy(struct shard *shard)
{
    struct views *views = shard->views;
    if (views == NULL) {
        return;
    }
    size_t bytes = shard->value_count * sizeof(float);
    uint32_t workers = shard->config.workers;
    for (uint32_t i = 0; views->optimizers != NULL && i < workers; i++) {
        optimizer_destroy(views->optimizers[i]);
    }
    free(views->optimizers);
    memory_destroy_large(views->params, workers * bytes);
    memory_destroy_large(views->pending, views->entry_count * workers * bytes);
    memory_destroy_large(views->change, bytes);
    free(views);
}

static float *view_of(const struct shard *shard, uint32_t rank)
{
    return shard->views->params + rank * shard->value_count;
}

const float *shard_view(const struct shard *shard, uint32_t rank)
{
    return view_of(shard, rank);
}

void shard_views_seed(struct shard *shard)
{
    for (uint32_t rank = 0; rank < shard->config.workers; rank++) {
        memcpy(view_of(shard, rank), shard->params, shard->value_count * sizeof(float));
    }
}

/* What is pending for a worker's view, to be seen in an iteration. */
static float *entry_of(const struct shard *shard, uint64_t iteration, uint32_t rank)
{
    uint64_t entry = iteration % shard->views->entry_count;
    return shard->views->pending + (entry * shard->config.workers + rank) * shard->value_count;
}

/* The change that a worker's optimizer makes of its gradient, on its view. */
static void make_change(struct shard *shard, const struct unit *unit, uint32_t rank,
                        uint64_t iteration)
{
    float *change = shard->views->change;
    const float *view = view_of(shard, rank);
    double rate = unit->seats[rank].rate;
    memcpy(change, view, shard->value_count * sizeof(float));
    for (uint32_t i = unit->first; i < unit->end; i++) {
        const struct part *part = &shard->parts[i];
        if (part->span.count > 0) {
            optimizer_apply(shard->views->optimizers[rank],
                            (struct span){part->offset, part->span.count}, change + part->offset,
                            part->values[rank], iteration + 1, rate);
        }
    }
    for (uint64_t i = 0; i < shard->value_count; i++) {
        change[i] -= view[i];
    }
}

void shard_views_update(struct shard *shard, struct unit *unit)
{
    const struct shard_config *config = &shard->config;
    uint64_t iteration = unit->version / config->workers;
    shard_note(shard, unit, SHARD_UPDATE, true);
    for (uint32_t rank = 0; rank < config->workers; rank++) {
        unit->seats[rank].rate = schedule_rate(&config->schedule, iteration);
        make_change(shard, unit, rank, iteration);
        vector_add(shard->params, shard->views->change, shard->value_count);
        for (uint32_t seer = 0; seer < config->workers; seer++) {
            uint64_t delay = order_delay(&config->order, config->seed,
                                         iteration * config->workers + rank + 1, seer);
            vector_add(entry_of(shard, iteration + 1 + delay, seer), shard->views->change,
                       shard->value_count);
            staleness_add(&shard->staleness, delay);
            if (seer == rank) {
                unit->seats[rank].staleness = delay;
            }
        }
        shard_drop_push(shard, unit, rank);
    }
    for (uint32_t seer = 0; seer < config->workers; seer++) {
        float *entry = entry_of(shard, iteration + 1, seer);
        vector_add(view_of(shard, seer), entry, shard->value_count);
        memset(entry, 0, shard->value_count * sizeof(float));
    }
    shard_note(shard, unit, SHARD_UPDATE, false);
    unit->version += config->workers;
    unit->applied += config->workers;
}
