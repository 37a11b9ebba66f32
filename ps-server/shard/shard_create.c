/* Creates and destroys a shard, and says how much memory it takes. */
#include "ps-server/shard/shard_checkpoint.h"
#include "ps-server/shard/shard_math.h"
#include "ps-server/shard/shard_policy.h"
#include "ps-server/shard/shard_settings.h"

#include <assert.h>
#include <stdlib.h>

static void part_destroy(struct part *part, uint32_t workers)
{
    for (uint32_t i = 0; part->pushes != NULL && part->values != NULL && i < workers; i++) {
        if (part->values[i] != NULL) {
            envelope_release(&part->pushes[i]);
        }
    }
    free(part->pushes);
    free(part->values);
    free(part->is_pulled);
    free(part->state_pulls);
}

void shard_destroy(struct shard *shard)
{
    if (shard == NULL) {
        return;
    }
    const struct shard_math *math = shard->math;
    uint64_t count = shard->value_count;
    for (uint32_t i = 0; shard->parts != NULL && i < shard->config.layout.bucket_count; i++) {
        part_destroy(&shard->parts[i], shard->config.workers);
    }
    for (uint32_t i = 0; shard->units != NULL && i < shard->unit_count; i++) {
        free(shard->units[i].seats);
    }
    free(shard->parts);
    free(shard->units);
    free(shard->contributors);
    shard_checkpoint_finish(shard);
    math->end(shard);
    if (shard->config.params == NULL) {
        math->destroy(shard, shard->params, count);
    }
    shard_settings_destroy(shard);
    shard_views_destroy(shard);
    math->destroy(shard, shard->history, shard->history_count * count);
    math->destroy(shard, shard->mark_copy.values, count);
    math->destroy(shard, shard->sum, count);
    math->destroy(shard, shard->reads, shard->config.workers * count);
    math->destroy(shard, shard->squares, count);
    free(shard);
}

static enum status create_parts(struct shard *shard)
{
    uint32_t workers = shard->config.workers, count = shard->config.layout.bucket_count;
    shard->parts = calloc(count, sizeof(*shard->parts));
    if (shard->parts == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct part *part = &shard->parts[i];
        part->span = span_part(shard->config.layout.buckets[i], shard->config.shard_count,
                               shard->config.index);
        part->offset = shard->value_count;
        part->unit = shard_is_unsynchronised(shard) ? 0 : i;
        part->pushes = calloc(workers, sizeof(*part->pushes));
        part->values = calloc(workers, sizeof(*part->values));
        part->is_pulled = calloc(workers, sizeof(*part->is_pulled));
        part->state_pulls = calloc(workers, sizeof(*part->state_pulls));
        if (part->pushes == NULL || part->values == NULL || part->is_pulled == NULL ||
            part->state_pulls == NULL) {
            return STATUS_NO_MEMORY;
        }
        shard->value_count += part->span.count;
    }
    return STATUS_OK;
}

static enum status create_units(struct shard *shard)
{
    uint32_t parts = shard->config.layout.bucket_count;
    shard->unit_count = shard_is_unsynchronised(shard) ? 1 : parts;
    shard->units = calloc(shard->unit_count, sizeof(*shard->units));
    for (uint32_t i = 0; shard->units != NULL && i < shard->unit_count; i++) {
        struct unit *unit = &shard->units[i];
        unit->first = shard_is_unsynchronised(shard) ? 0 : i;
        unit->end = shard_is_unsynchronised(shard) ? parts : i + 1;
        for (uint32_t k = unit->first; k < unit->end; k++) {
            unit->part_count += shard->parts[k].span.count > 0;
        }
        unit->seats = calloc(shard->config.workers, sizeof(*unit->seats));
        if (unit->seats == NULL) {
            return STATUS_NO_MEMORY;
        }
    }
    shard->contributors = calloc(shard->config.workers, sizeof(*shard->contributors));
    return shard->units != NULL && shard->contributors != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

/* What sums and remedies keep. */
static enum status create_remedy_vectors(struct shard *shard)
{
    const struct remedy *remedy = shard->config.remedy;
    uint64_t count = shard->value_count;
    enum status status = STATUS_OK;
    if (shard->config.gradients_per_update > 1) {
        status = shard->math->create(shard, count, &shard->sum);
    }
    if (status != STATUS_OK || remedy == NULL) {
        return status;
    }
    if (remedy->needs_read) {
        status = shard->math->create(shard, shard->config.workers * count, &shard->reads);
    }
    if (status != STATUS_OK || !remedy->needs_squares) {
        return status;
    }
    return shard->math->create(shard, count, &shard->squares);
}

/* Older versions of the parameters, or views of them. */
static enum status create_history(struct shard *shard)
{
    const struct shard_config *config = &shard->config;
    if (config->has_views) {
        return shard_views_create(shard);
    }
    if (config->order.kind == ORDER_FREE) {
        return STATUS_OK;
    }
    shard->history_count = order_staleness_max(&config->order, config->workers) + 1;
    return shard->math->create(shard, shard->history_count * shard->value_count, &shard->history);
}

/* What a shard keeps that updates on each push. */
static enum status create_push_vectors(struct shard *shard)
{
    enum status status = create_history(shard);
    return status == STATUS_OK ? create_remedy_vectors(shard) : status;
}

static enum status create_params(struct shard *shard)
{
    shard->params = shard->config.params;
    return shard->params == NULL ? shard->math->create(shard, shard->value_count, &shard->params)
                                 : STATUS_OK;
}

static enum status create_mark_copy(struct shard *shard)
{
    return shard_is_unsynchronised(shard) && shard->config.keeps_marks
               ? shard->math->create(shard, shard->value_count, &shard->mark_copy.values)
               : STATUS_OK;
}

static enum status create_vectors(struct shard *shard)
{
    if (shard->value_count == 0) {
        return STATUS_OK; // more shards than floats: it keeps nothing, and is never asked
    }
    enum status status = create_params(shard);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_mark_copy(shard);
    if (status != STATUS_OK) {
        return status;
    }
    status = shard_updates_on_push(shard) ? create_push_vectors(shard) : STATUS_OK;
    status = status == STATUS_OK ? shard->math->begin(shard) : status;
    return status == STATUS_OK ? shard_settings_create(shard) : status;
}

uint64_t shard_value_count(const struct shard_config *config)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < config->layout.bucket_count; i++) {
        count += span_part(config->layout.buckets[i], config->shard_count, config->index).count;
    }
    return count;
}

uint64_t shard_history_bytes(const struct shard_config *config)
{
    if (config->consistency.update != UPDATE_ON_PUSH || config->order.kind == ORDER_FREE) {
        return 0;
    }
    uint64_t values = shard_value_count(config), bytes;
    if (config->has_views) {
        const struct shard sizes = {.config = *config, .value_count = values};
        return shard_views_value_count(&sizes) * sizeof(float);
    }
    uint64_t versions = order_staleness_max(&config->order, config->workers) + 1;
    bool is_too_large = __builtin_mul_overflow(versions, values * sizeof(float), &bytes);
    return is_too_large ? UINT64_MAX : bytes;
}

/* Vectors of parts that rank 0 has to send before anything else. */
static void count_seeds(struct shard *shard)
{
    uint32_t vectors = 1;
    if (shard->config.seeds_states) {
        vectors += optimizer_state_count(shard->optimizer);
    }
    for (uint32_t i = 0; i < shard->config.layout.bucket_count; i++) {
        const struct part *part = &shard->parts[i];
        shard->units[part->unit].seeds_missing += part->span.count > 0 ? vectors : 0;
    }
}

/* It has all that rank 0 would seed, or needs none of it. */
static void mark_seeded(struct shard *shard)
{
    for (uint32_t i = 0; i < shard->config.layout.bucket_count; i++) {
        shard->parts[i].seeds = UINT32_MAX;
    }
}

/* Where a shard that is restored stands. */
static void go_on(struct shard *shard)
{
    const struct shard_config *config = &shard->config;
    uint64_t rounds = config->rounds_before;
    mark_seeded(shard);
    for (uint32_t i = 0; i < shard->unit_count; i++) {
        struct unit *unit = &shard->units[i];
        unit->handled = unit->applied = rounds * config->workers;
        unit->version = unit->applied + config->gradients_ahead / config->gradients_per_update;
        shard_pass_marks(shard, unit);
        for (uint32_t rank = 0; rank < config->workers; rank++) {
            unit->seats[rank].clock = rounds;
            unit->seats[rank].marks_read = unit->marks_passed;
        }
        shard->mark_copy.mark = unit->marks_passed;
    }
}

static const struct shard_policy *policy_for(const struct shard_config *config)
{
    if (config->consistency.update != UPDATE_ON_PUSH) {
        return config->backup > 0 ? &policy_backup : &policy_sync;
    }
    if (config->has_views) {
        return &policy_views;
    }
    return config->order.kind == ORDER_FREE ? &policy_races : &policy_seeded;
}

static enum status create_all(struct shard *shard)
{
    enum status status = create_parts(shard);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_units(shard);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_vectors(shard);
    if (status == STATUS_OK && shard->config.is_restored) {
        go_on(shard);
    } else if (status == STATUS_OK && shard->config.hands_back_means) {
        mark_seeded(shard);
    } else if (status == STATUS_OK && shard->optimizer != NULL) {
        count_seeds(shard);
    }
    return status;
}

enum status shard_create(const struct shard_config *config, struct shard **ret_shard)
{
    assert(config->index < config->shard_count && config->workers > 0);
    assert(config->order.kind == ORDER_FREE || config->gradients_per_update <= 1);
    assert(config->backup < config->workers);
    assert(config->processes <= config->workers);
    assert(config->device == NULL || !config->has_views);
    assert(!config->hands_back_means ||
           (config->consistency.update != UPDATE_ON_PUSH && config->backup == 0 &&
            config->device == NULL && config->groups == NULL));
    assert(config->rounds_before == 0 || (config->is_restored && !config->has_views));
    assert(config->gradients_ahead == 0 ||
           (config->is_restored && config->consistency.update == UPDATE_ON_PUSH &&
            config->order.kind == ORDER_FREE));
    struct shard *shard = calloc(1, sizeof(*shard));
    if (shard == NULL) {
        return STATUS_NO_MEMORY;
    }
    shard->config = *config;
    shard->checkpoint.due = UINT64_MAX;
    shard->policy = policy_for(config);
    shard->math = config->device != NULL ? &shard_math_device : &shard_math_host;
    if (config->processes == 0) {
        shard->config.processes = config->workers;
    }
    if (config->gradients_per_update == 0) {
        shard->config.gradients_per_update = 1;
    }
    if (config->sync_every == 0) {
        shard->config.sync_every = 1;
    }
    if (config->marks.period == 0) {
        shard->config.marks.period = UINT64_MAX;
    }
    if (shard_is_unsynchronised(shard)) {
        shard->gradient_total = phases_pushes(&config->marks, config->workers,
                                              shard->config.sync_every, config->marks.end);
    }
    enum status status = create_all(shard);
    if (status != STATUS_OK) {
        shard_destroy(shard);
        return status;
    }
    shard->config.groups = NULL; // the optimizer has them
    *ret_shard = shard;
    return STATUS_OK;
}
