/* Copies parts into a snapshot when they reach its version, and says what a restored shard needs.
 */
#include "ps-server/shard/shard_checkpoint.h"

#include "common/base/memory.h"
#include "ps-server/shard/shard_math.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Vectors of a shard, in this order: the parameters, the optimizer's states, the squares of a
 * remedy, and versions before this one. */
static uint32_t vector_count(const struct shard *shard)
{
    uint32_t count = 1 + optimizer_state_count(shard->optimizer) + (shard->squares != NULL);
    return count + (shard->history_count > 0 ? (uint32_t)(shard->history_count - 1) : 0);
}

/* Names vector `index`, and says where it lies when the unit has had `version` updates. */
static float *vector_at(const struct shard *shard, uint32_t index, uint64_t version,
                        char name[PIECE_NAME_BYTES])
{
    uint32_t states = optimizer_state_count(shard->optimizer);
    if (index == 0) {
        snprintf(name, PIECE_NAME_BYTES, "params");
        return shard->params;
    }
    if (index <= states) {
        snprintf(name, PIECE_NAME_BYTES, "state-%u", index);
        return shard->math->state(shard, index - 1);
    }
    index -= states + 1;
    if (shard->squares != NULL && index == 0) {
        snprintf(name, PIECE_NAME_BYTES, "squares");
        return shard->squares;
    }
    uint64_t age = 1 + index - (shard->squares != NULL);
    uint64_t count = shard->history_count;
    // Versions that there have not been are kept as well: nobody will read them.
    uint64_t entry = (version % count + count - age % count) % count;
    snprintf(name, PIECE_NAME_BYTES, "version-%llu", (unsigned long long)age);
    return shard->history + entry * shard->value_count;
}

static uint64_t count_of(const struct shard *shard, const struct unit *unit)
{
    return shard_is_unsynchronised(shard) ? unit->applied : unit->version;
}

uint64_t shard_checkpoint_count(const struct shard_config *config, uint64_t steps)
{
    bool is_apart = config->consistency.update == UPDATE_ON_PUSH || config->backup > 0;
    if (steps < config->marks.first || steps > config->marks.end) {
        return UINT64_MAX;
    }
    uint32_t sync_every = config->sync_every > 0 ? config->sync_every : 1;
    return is_apart ? phases_pushes(&config->marks, config->workers, sync_every, steps)
                    : marks_rounds(&config->marks, sync_every, steps);
}

enum status shard_checkpoint_prepare(const struct shard *shard, struct snapshot *ret_snapshot)
{
    uint64_t total = shard->config.layout.value_count;
    uint32_t vectors = shard->value_count > 0 ? vector_count(shard) : 0;
    for (uint32_t i = 0; i < shard->config.layout.bucket_count && vectors > 0; i++) {
        for (uint32_t v = 0; v < vectors; v++) {
            char name[PIECE_NAME_BYTES];
            vector_at(shard, v, 0, name);
            enum status status = snapshot_add(ret_snapshot, name, total, shard->parts[i].span);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    return snapshot_allocate(ret_snapshot);
}

void shard_checkpoint_await(struct shard *shard, struct snapshot *snapshot, uint64_t count)
{
    shard->checkpoint.snapshot = snapshot;
    shard->checkpoint.due = count;
    shard->checkpoint.copied = 0;
    shard->checkpoint.is_missed = false;
}

bool shard_checkpoint_is_late(const struct shard *shard, uint64_t count)
{
    for (uint32_t i = 0; i < shard->unit_count; i++) {
        const struct unit *unit = &shard->units[i];
        if (unit->part_count > 0 && count_of(shard, unit) >= count) {
            return true;
        }
    }
    return false;
}

bool shard_checkpoint_is_reached(const struct shard *shard, uint64_t count)
{
    uint32_t behind = 0;
    for (uint32_t i = 0; i < shard->unit_count; i++) {
        const struct unit *unit = &shard->units[i];
        behind += unit->part_count > 0 && count_of(shard, unit) < count;
    }
    return behind == 0 && shard->value_count > 0;
}

static uint32_t unit_total(const struct shard *shard)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < shard->unit_count; i++) {
        count += shard->units[i].part_count > 0;
    }
    return count;
}

bool shard_checkpoint_is_whole(const struct shard *shard)
{
    return shard->checkpoint.due != UINT64_MAX && shard->checkpoint.copied == unit_total(shard);
}

void shard_checkpoint_set_free(struct shard *shard, bool is_free)
{
    shard->checkpoint.is_free = is_free;
}

bool shard_checkpoint_was_missed(const struct shard *shard)
{
    return shard->checkpoint.is_missed;
}

/* The place of a part among those that are not empty. */
static uint32_t place_of(const struct shard *shard, uint32_t part)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < part; i++) {
        place += shard->parts[i].span.count > 0;
    }
    return place;
}

static void copy_unit(struct shard *shard, const struct unit *unit, struct snapshot *snapshot)
{
    uint32_t vectors = vector_count(shard), place = place_of(shard, unit->first);
    for (uint32_t i = unit->first; i < unit->end; i++) {
        const struct part *part = &shard->parts[i];
        if (part->span.count == 0) {
            continue;
        }
        for (uint32_t v = 0; v < vectors; v++) {
            char name[PIECE_NAME_BYTES];
            const float *values = vector_at(shard, v, unit->version, name);
            shard->math->copy(shard, snapshot_values(snapshot, place * vectors + v),
                              values + part->offset, part->span.count);
        }
        place++;
    }
    shard->math->finish(shard);
}

static void keep_counts(struct shard *shard)
{
    shard->checkpoint.staleness = shard->staleness;
    shard->checkpoint.late_count = shard->late_count;
}

const struct staleness *shard_checkpoint_staleness(const struct shard *shard)
{
    return &shard->checkpoint.staleness;
}

uint64_t shard_checkpoint_late_count(const struct shard *shard)
{
    return shard->checkpoint.late_count;
}

void shard_checkpoint_note(struct shard *shard, const struct unit *unit)
{
    if (count_of(shard, unit) != shard->checkpoint.due) {
        return;
    }
    bool is_ahead = count_of(shard, unit) < shard->config.gradients_ahead; // it has more than that
    if (!shard->checkpoint.is_free || is_ahead) {
        shard->checkpoint.is_missed = true;
    } else if (!shard->checkpoint.is_missed) {
        copy_unit(shard, unit, shard->checkpoint.snapshot);
    }
    shard->checkpoint.copied++;
    keep_counts(shard); // those of the last unit are of all
}

/* In the parameters; one unit has all parts, where workers race. */
static uint64_t gradients_in(const struct shard *shard)
{
    uint64_t applied = shard->units[0].applied, ahead = shard->config.gradients_ahead;
    return shard->value_count == 0 ? UINT64_MAX : applied > ahead ? applied : ahead;
}

uint64_t shard_checkpoint_copy_to(struct shard *shard, struct snapshot *snapshot)
{
    shard_apply_summed(shard); // they are counted, and no snapshot has the sum
    for (uint32_t i = 0; i < shard->unit_count; i++) {
        if (shard->units[i].part_count > 0) {
            copy_unit(shard, &shard->units[i], snapshot);
        }
    }
    return gradients_in(shard);
}

void shard_checkpoint_copy(struct shard *shard)
{
    (void)shard_checkpoint_copy_to(shard, shard->checkpoint.snapshot);
    keep_counts(shard);
    shard->checkpoint.is_missed = false;
}

enum status shard_checkpoint_begin_restore(struct shard *shard)
{
    struct shard_checkpoint *of = &shard->checkpoint;
    if (shard->config.device != NULL && shard->value_count > 0 && of->staged == NULL) {
        of->staged = memory_create_large(shard->value_count * sizeof(float));
        return of->staged != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* What comes is written by the host. */
static float *stage(struct shard *shard, float *vector)
{
    shard->checkpoint.staged_for = vector;
    return shard->config.device != NULL ? shard->checkpoint.staged : vector;
}

bool shard_checkpoint_restore(struct shard *shard, uint32_t index, struct fetch *ret_fetch)
{
    uint32_t vectors = shard->value_count > 0 ? vector_count(shard) : 0;
    if (vectors == 0) {
        return false;
    }
    uint32_t place = index / vectors, part = 0;
    while (part < shard->config.layout.bucket_count &&
           (shard->parts[part].span.count == 0 || place > 0)) {
        place -= shard->parts[part].span.count > 0;
        part++;
    }
    if (part == shard->config.layout.bucket_count) {
        return false;
    }
    char name[PIECE_NAME_BYTES];
    const struct part *of = &shard->parts[part];
    float *vector = vector_at(shard, index % vectors, shard->units[of->unit].version, name);
    *ret_fetch = fetch_of(name, shard->config.layout.value_count, of->span,
                          stage(shard, vector + of->offset));
    return true;
}

enum status shard_checkpoint_take(struct shard *shard, const struct fetch *fetch)
{
    const struct shard_checkpoint *of = &shard->checkpoint;
    if (of->staged != NULL && fetch->target == of->staged) {
        shard->math->copy(shard, of->staged_for, of->staged, fetch->span.count);
        shard->math->finish(shard); // the next span comes to the same memory
    }
    return shard->fault;
}

void shard_checkpoint_finish(struct shard *shard)
{
    memory_destroy_large(shard->checkpoint.staged, shard->value_count * sizeof(float));
    shard->checkpoint.staged = NULL;
}

void shard_checkpoint_restored(struct shard *shard)
{
    shard_checkpoint_finish(shard);
    for (uint32_t i = 0; i < shard->unit_count && shard->value_count > 0; i++) {
        shard_keep_version(shard, &shard->units[i]);
    }
}
