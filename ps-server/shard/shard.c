/* Decides which pushes are applied, and when pulls are answered. */
#include "ps-server/shard/shard.h"

#include "ps-server/shard/shard_state.h"

#include <assert.h>
#include <string.h>

static bool is_seeded(const struct shard *shard)
{
    return shard->history_count > 0;
}

/* Nothing changes any more. */
static bool is_final(const struct shard *shard, const struct group *group)
{
    return shard_is_free(shard) && group->applied >= shard->gradient_total;
}

/* Gradients that the phase has had when it passes a mark. */
static uint64_t gradients_at(const struct shard *shard, uint64_t mark)
{
    const struct shard_config *config = &shard->config;
    return phases_pushes(&config->marks, config->workers, config->sync_every,
                         marks_step(&config->marks, mark));
}

/* Counts the marks that were passed by an update. */
static void pass_marks(const struct shard *shard, struct group *group)
{
    uint64_t count = marks_count(&shard->config.marks);
    while (group->marks_passed < count &&
           group->applied >= gradients_at(shard, group->marks_passed + 1)) {
        group->marks_passed++;
    }
}

/* ==========================================================================================
 * Reading
 * ========================================================================================== */

/* Steps that every worker has contributed to the parameters. */
static uint64_t slowest_step(const struct shard *shard, const struct group *group)
{
    if (!shard_updates_on_push(shard)) {
        return group->version;
    }
    uint64_t clock = UINT64_MAX;
    for (uint32_t i = 0; i < shard->config.workers; i++) {
        clock = group->seats[i].clock < clock ? group->seats[i].clock : clock;
    }
    return clock;
}

/* The version that a seeded order gives to the gradient of a worker's step. A bound on staleness
 * may ask for a newer one. */
static uint64_t seeded_version(const struct shard *shard, uint32_t rank, uint64_t step)
{
    const struct shard_config *config = &shard->config;
    uint64_t slack = config->consistency.slack_steps;
    uint64_t version = order_version(&config->order, config->seed, config->workers,
                                     step * config->workers + rank + 1);
    uint64_t bound = step > slack ? (step - slack) * config->workers : 0;
    return version > bound ? version : bound;
}

/* What a pull may have now. */
struct answer {
    const float *values; // (value_count); NULL: nothing yet
    uint64_t version;
    bool is_notice; // the worker will ask again
};

/* Parameters to go on with. */
static struct answer answer_next(const struct shard *shard, const struct group *group,
                                 uint32_t rank)
{
    const struct seat *seat = &group->seats[rank];
    struct answer live = {shard->params, group->version, false}, none = {NULL, 0, false};
    // A mark waits for this worker: it learns of it by this answer, pulls the copy, and then asks
    // again.
    bool is_called =
        shard->epoch_copy.readers_left > 0 && shard->epoch_copy.epoch > seat->epochs_read;
    if (is_called) {
        live.is_notice = true;
        return live;
    }
    // Its own last gradient first: of each worker there is one push at a time.
    if (shard_is_free(shard) && seat->clock != seat->pull_step) {
        return none;
    }
    if (is_final(shard, group)) {
        live.is_notice = true;
        return live;
    }
    if (shard->config.backup > 0) {
        // The step that it has contributed to is over; of this version another shard may have told.
        return group->version >= seat->pull_version ? live : none;
    }
    if (shard->views != NULL) {
        live.values = shard_view(shard, rank);
        return group->version == seat->pull_step * shard->config.workers ? live : none;
    }
    if (!is_seeded(shard)) {
        bool may_read = consistency_may_read(&shard->config.consistency, slowest_step(shard, group),
                                             seat->pull_step);
        return may_read ? live : none;
    }
    uint64_t version = seeded_version(shard, rank, seat->pull_step);
    if (version > group->version ||
        seat->pull_step * shard->config.workers + rank >= shard->gradient_total) {
        return none; // not made yet, or the worker has done its last step and waits for the end
    }
    uint64_t slot = version % shard->history_count;
    return (struct answer){shard->history + slot * shard->value_count, version, false};
}

/* Parameters of a mark. After the last update all gradients of all workers have come before they
 * are told so: nothing of this phase is on its way any more. */
static struct answer answer_mark(const struct shard *shard, const struct group *group,
                                 const struct seat *seat)
{
    bool is_kept = shard->epoch_copy.epoch == seat->pull_epoch && shard->epoch_copy.values != NULL;
    bool is_end =
        is_final(shard, group) && gradients_at(shard, seat->pull_epoch) >= shard->gradient_total;
    if (is_end && !is_kept) {
        bool is_quiet = seat->clock == seat->pull_step;
        return (struct answer){is_quiet ? shard->params : NULL, group->version, true};
    }
    return (struct answer){is_kept ? shard->epoch_copy.values : NULL, 0, true};
}

static void send_parts(struct shard *shard, struct group *group, uint32_t rank, const float *values,
                       shard_send_fn *send, void *context)
{
    struct seat *seat = &group->seats[rank];
    struct message params = {
        .kind = MESSAGE_PARAMS,
        .rank = rank,
        .step = seat->pull_step,
        .epoch = seat->pull_epoch > 0 ? seat->pull_epoch : group->marks_passed,
        .staleness = seat->staleness,
        .rate = shard_is_free(shard) ? seat->rate : 0,
        .is_late = seat->is_late,
        .params_version = shard->config.backup > 0 && seat->pull_epoch == 0 ? group->version : 0,
    };
    seat->part_pulls = 0;
    for (uint32_t i = group->first; i < group->end; i++) {
        struct part *part = &shard->parts[i];
        if (part->span.count == 0) {
            continue;
        }
        part->is_pulled[rank] = false;
        params.bucket = i;
        params.span = part->span;
        params.values = values + part->offset;
        send(context, rank, &params);
    }
}

/* Answers the pulls that may now be answered. */
static void answer_pulls(struct shard *shard, struct group *group, shard_send_fn *send,
                         void *context)
{
    for (uint32_t rank = 0; rank < shard->config.workers; rank++) {
        struct seat *seat = &group->seats[rank];
        if (seat->part_pulls < group->part_count || group->seeds_missing > 0) {
            continue;
        }
        struct answer answer = seat->pull_epoch > 0 ? answer_mark(shard, group, seat)
                                                    : answer_next(shard, group, rank);
        if (answer.values == NULL) {
            continue;
        }
        if (!answer.is_notice) {
            seat->read_version = answer.version;
            shard_keep_read(shard, rank, answer.values);
        }
        if (seat->epochs_read < seat->pull_epoch) {
            seat->epochs_read = seat->pull_epoch;
            shard->epoch_copy.readers_left -=
                shard->epoch_copy.epoch == seat->pull_epoch && shard->epoch_copy.readers_left > 0;
        }
        send_parts(shard, group, rank, answer.values, send, context);
    }
}

/* ==========================================================================================
 * Changing
 * ========================================================================================== */

/* Keeps a copy at a mark. False if the last copy has not been read by all: then the parameters must
 * stay as they are. */
static bool keep_mark(struct shard *shard, const struct group *group)
{
    struct epoch_copy *copy = &shard->epoch_copy;
    if (copy->values == NULL || copy->epoch == group->marks_passed || is_final(shard, group)) {
        return true;
    }
    if (copy->readers_left > 0) {
        return false;
    }
    memcpy(copy->values, shard->params, shard->value_count * sizeof(float));
    copy->epoch = group->marks_passed;
    copy->readers_left = shard->config.workers;
    return true;
}

/* The worker whose whole push is to be applied next; `workers` if there is none. */
static uint32_t next_pusher(const struct shard *shard, const struct group *group, uint32_t arrived)
{
    uint32_t workers = shard->config.workers;
    if (is_seeded(shard) && !is_final(shard, group)) {
        uint32_t rank = (uint32_t)(group->version % workers);
        return group->seats[rank].part_pushes == group->part_count ? rank : workers;
    }
    // Who came first: the others that are whole were held back by an epoch's copy, in no order.
    if (group->seats[arrived].part_pushes == group->part_count) {
        return arrived;
    }
    for (uint32_t rank = 0; rank < workers; rank++) {
        if (group->seats[rank].part_pushes == group->part_count) {
            return rank;
        }
    }
    return workers;
}

/* Drops a late gradient, and marks it so that its worker is told. */
static void drop_late(struct shard *shard, struct group *group, uint32_t rank)
{
    group->seats[rank].is_late = true;
    shard_drop_push(shard, group, rank);
    shard->late_count++;
}

/* With backup workers: drops what comes late; an update once enough have pushed. */
static void advance_with_backup(struct shard *shard, struct group *group)
{
    uint32_t workers = shard->config.workers, whole = workers;
    while (whole >= workers - shard->config.backup && keep_mark(shard, group)) {
        whole = 0;
        for (uint32_t rank = 0; rank < workers; rank++) {
            const struct seat *seat = &group->seats[rank];
            if (seat->part_pushes < group->part_count) {
                continue;
            }
            if (seat->read_version == group->version && !is_final(shard, group)) {
                whole++;
            } else {
                drop_late(shard, group, rank);
            }
        }
        if (whole >= workers - shard->config.backup) {
            shard_update_from_all(shard, group);
            pass_marks(shard, group);
        }
    }
}

/* ps-ssp and ps-async: each push as it comes. */
static void advance_apart(struct shard *shard, struct group *group, uint32_t arrived)
{
    uint32_t workers = shard->config.workers;
    while (keep_mark(shard, group)) {
        uint32_t rank = next_pusher(shard, group, arrived);
        if (rank == workers) {
            return;
        }
        if (is_final(shard, group)) {
            drop_late(shard, group, rank);
        } else {
            shard_apply_push(shard, group, rank);
            pass_marks(shard, group);
        }
    }
}

static bool everybody_has_pushed(const struct shard *shard, const struct group *group)
{
    uint32_t whole = 0;
    for (uint32_t i = 0; i < shard->config.workers; i++) {
        whole += group->seats[i].part_pushes == group->part_count;
    }
    return whole == shard->config.workers;
}

/* With views: all pushes of an iteration. */
static void advance_views(struct shard *shard, struct group *group)
{
    if (keep_mark(shard, group) && everybody_has_pushed(shard, group)) {
        shard_views_update(shard, group);
        pass_marks(shard, group);
    }
}

/* Applies the pushes that are due. */
static void advance(struct shard *shard, struct group *group, uint32_t arrived)
{
    if (!shard_is_free(shard) && everybody_has_pushed(shard, group)) {
        shard_update_from_all(shard, group);
    } else if (shard->config.backup > 0) {
        advance_with_backup(shard, group);
    } else if (shard->views != NULL) {
        advance_views(shard, group);
    } else if (shard_is_free(shard)) {
        advance_apart(shard, group, arrived);
    }
}

/* The vector 0 is the parameters, those from 1 on the optimizer's states. */
static float *vector_of(struct shard *shard, uint64_t vector)
{
    return vector == 0 ? shard->params : optimizer_state(shard->optimizer, (uint32_t)vector - 1);
}

static enum status receive_seed(struct shard *shard, struct part *part,
                                const struct message *message)
{
    uint32_t states = shard->config.seeds_states ? optimizer_state_count(shard->optimizer) : 0;
    if (message->rank != 0 || message->vector > states || (part->seeds >> message->vector & 1)) {
        return STATUS_MALFORMED;
    }
    memcpy(vector_of(shard, message->vector) + part->offset, message->values,
           part->span.count * sizeof(float));
    part->seeds |= 1u << message->vector;
    struct group *group = &shard->groups[part->group];
    if (--group->seeds_missing == 0) {
        shard_keep_version(shard, group);
        if (shard->views != NULL) {
            shard_views_seed(shard);
        }
    }
    return STATUS_OK;
}

static enum status receive_push(struct shard *shard, struct part *part,
                                const struct message *message, struct envelope *envelope)
{
    uint32_t rank = message->rank;
    struct group *group = &shard->groups[part->group];
    // Rank 0 seeds before it pushes, so an update never meets parameters that are not there.
    if (message->step != group->seats[rank].clock || part->values[rank] != NULL ||
        (rank == 0 && part->seeds == 0)) {
        return STATUS_MALFORMED;
    }
    envelope_move(&part->pushes[rank], envelope);
    part->values[rank] = part->pushes[rank].payload;
    group->seats[rank].part_pushes++;
    group->seats[rank].is_late = false;
    return STATUS_OK;
}

/* The optimizer's states, for the next phase: once this one is over, and at once. */
static enum status receive_state_pull(struct shard *shard, const struct part *part,
                                      const struct message *message, shard_send_fn *send,
                                      void *context)
{
    const struct group *group = &shard->groups[part->group];
    const struct marks *marks = &shard->config.marks;
    bool is_over =
        shard_is_free(shard) ? is_final(shard, group) : group->version == marks->end - marks->first;
    if (!is_over || message->vector > optimizer_state_count(shard->optimizer)) {
        return STATUS_MALFORMED;
    }
    const struct message state = {
        .kind = MESSAGE_PARAMS,
        .rank = message->rank,
        .step = message->step,
        .bucket = message->bucket,
        .vector = message->vector,
        .span = part->span,
        .values = vector_of(shard, message->vector) + part->offset,
    };
    send(context, message->rank, &state);
    return STATUS_OK;
}

static enum status receive_pull(struct shard *shard, struct part *part,
                                const struct message *message)
{
    struct seat *seat = &shard->groups[part->group].seats[message->rank];
    bool is_first = seat->part_pulls == 0;
    bool is_epoch_wrong =
        message->epoch > 0 && (!shard_is_free(shard) || message->epoch <= seat->epochs_read ||
                               message->epoch > marks_count(&shard->config.marks));
    // One pull at a time, all parts for the same, for a step that can still come.
    if (part->is_pulled[message->rank] || message->step == UINT64_MAX || is_epoch_wrong ||
        (!is_first && (message->step != seat->pull_step || message->epoch != seat->pull_epoch ||
                       message->params_version != seat->pull_version))) {
        return STATUS_MALFORMED;
    }
    part->is_pulled[message->rank] = true;
    seat->part_pulls++;
    seat->pull_step = message->step;
    seat->pull_epoch = message->epoch;
    seat->pull_version = message->params_version;
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
    struct group *group = &shard->groups[part->group];
    if (message->span.offset != part->span.offset || message->span.count != part->span.count ||
        part->span.count == 0) {
        return STATUS_MALFORMED;
    }
    enum status status = STATUS_MALFORMED;
    if (message->kind == MESSAGE_SEED) {
        status = receive_seed(shard, part, message);
    } else if (message->kind == MESSAGE_PUSH) {
        status = receive_push(shard, part, message, envelope);
    } else if (message->kind == MESSAGE_PULL && message->vector > 0) {
        return receive_state_pull(shard, part, message, send, context);
    } else if (message->kind == MESSAGE_PULL) {
        status = receive_pull(shard, part, message);
    }
    if (status != STATUS_OK) {
        return status;
    }
    // A copy that was read by all lets updates go on, and these may let others read.
    uint64_t handled;
    do {
        advance(shard, group, message->rank);
        handled = group->handled;
        answer_pulls(shard, group, send, context);
        advance(shard, group, message->rank);
    } while (group->handled != handled);
    return STATUS_OK;
}

/* ==========================================================================================
 * Asking
 * ========================================================================================== */

bool shard_values_are_stable(const struct shard *shard)
{
    return !shard_is_free(shard);
}

uint64_t shard_version(const struct shard *shard)
{
    uint64_t version = UINT64_MAX;
    for (uint32_t i = 0; i < shard->group_count; i++) {
        const struct group *group = &shard->groups[i];
        if (group->part_count > 0 && group->version < version) {
            version = group->version;
        }
    }
    return version == UINT64_MAX ? 0 : version;
}

const struct staleness *shard_staleness(const struct shard *shard)
{
    return &shard->staleness;
}

uint64_t shard_late_count(const struct shard *shard)
{
    return shard->late_count;
}

const float *shard_params(const struct shard *shard, uint32_t bucket, struct span *ret_span)
{
    assert(bucket < shard->config.layout.bucket_count);
    *ret_span = shard->parts[bucket].span;
    return ret_span->count > 0 ? shard->params + shard->parts[bucket].offset : NULL;
}
