/* Receives what workers send to a shard, keeps pushes until they are handled, and answers pulls. */
#include "ps-server/shard/shard.h"

#include "ps-server/shard/shard_math.h"
#include "ps-server/shard/shard_policy.h"
#include "ps-server/shard/shard_settings.h"

#include <assert.h>

/* Parameters to go on with. */
static struct answer answer_next(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    struct answer notice = {shard->params, unit->version, true};
    if (shard_mark_waits_for(shard, unit, rank)) {
        return notice; // by it the worker learns of the mark, pulls the copy, and then asks again
    }
    // Its own last gradient first: of each process there is one push at a time.
    if (shard->policy->is_unsynchronised && !shard_is_quiet(shard, unit, rank)) {
        return shard_no_answer;
    }
    return shard_is_final(shard, unit) ? notice : shard->policy->answer(shard, unit, rank);
}

/* The seat of the rank whose gradient its process has pushed last, where one pulls now. */
static const struct seat *seat_before(const struct shard *shard, const struct unit *unit,
                                      uint32_t rank)
{
    const struct rank_block block = shard_block(shard, rank);
    return &unit->seats[rank > block.first ? rank - 1 : block.first + block.count - 1];
}

static void send_parts(struct shard *shard, struct unit *unit, uint32_t rank, const float *values,
                       shard_send_fn *send, void *context)
{
    struct seat *seat = &unit->seats[rank];
    const struct seat *before = seat_before(shard, unit, rank);
    const struct wire_outcome outcome = {before->staleness, before->rate, before->is_late};
    struct message params = {
        .kind = MESSAGE_PARAMS,
        .rank = rank,
        .step = seat->pull_step,
        .mark = seat->pull_mark > 0 ? seat->pull_mark : unit->marks_passed,
        .params_version = shard->policy->says_version && seat->pull_mark == 0 ? unit->version : 0,
        .outcome = shard_is_unsynchronised(shard) ? &outcome : NULL,
    };
    seat->part_pulls = 0;
    for (uint32_t i = unit->first; i < unit->end; i++) {
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
static void answer_pulls(struct shard *shard, struct unit *unit, shard_send_fn *send, void *context)
{
    for (uint32_t rank = 0; rank < shard->config.workers; rank++) {
        struct seat *seat = &unit->seats[rank];
        if (seat->part_pulls < unit->part_count || unit->seeds_missing > 0) {
            continue;
        }
        struct answer answer = seat->pull_mark > 0 ? shard_answer_mark(shard, unit, rank)
                                                   : answer_next(shard, unit, rank);
        if (answer.values == NULL) {
            continue;
        }
        if (!answer.is_notice) {
            seat->read_version = answer.version;
            shard_keep_read(shard, rank, answer.values);
        }
        shard_note_mark_read(shard, unit, rank);
        send_parts(shard, unit, rank, answer.values, send, context);
    }
}

bool shard_everybody_has_pushed(const struct shard *shard, const struct unit *unit)
{
    uint32_t whole = 0;
    for (uint32_t i = 0; i < shard->config.workers; i++) {
        whole += shard_push_is_whole(unit, i);
    }
    return whole == shard->config.workers;
}

uint32_t shard_list_contributors(struct shard *shard, const struct unit *unit, uint32_t chunk)
{
    uint32_t workers = shard->config.workers, count = 0;
    for (uint32_t i = 0; i < workers; i++) {
        uint32_t rank = chunk + i < workers ? chunk + i : chunk + i - workers;
        if (unit->seats[rank].part_pushes == unit->part_count) {
            shard->contributors[count++] = rank;
        }
    }
    return count;
}

static void release_push(struct part *part, uint32_t rank)
{
    if (part->values[rank] != NULL) {
        envelope_release(&part->pushes[rank]);
        part->values[rank] = NULL;
    }
}

void shard_drop_push(struct shard *shard, struct unit *unit, uint32_t rank)
{
    for (uint32_t i = unit->first; i < unit->end; i++) {
        release_push(&shard->parts[i], rank);
    }
    unit->seats[rank].part_pushes = 0;
    unit->seats[rank].clock++;
    unit->handled++;
}

void shard_drop_late(struct shard *shard, struct unit *unit, uint32_t rank)
{
    unit->seats[rank].is_late = true;
    shard_drop_push(shard, unit, rank);
    shard->late_count++;
}

/* The vector 0 is the parameters, those from 1 on the optimizer's states. */
static float *vector_of(struct shard *shard, uint64_t vector)
{
    return vector == 0 ? shard->params : shard->math->state(shard, (uint32_t)vector - 1);
}

static enum status receive_seed(struct shard *shard, struct part *part,
                                const struct message *message)
{
    uint32_t states = shard->config.seeds_states ? optimizer_state_count(shard->optimizer) : 0;
    if (message->rank != 0 || message->vector > states || (part->seeds >> message->vector & 1)) {
        return STATUS_MALFORMED;
    }
    shard_copy(shard, vector_of(shard, message->vector) + part->offset, message->values,
               part->span.count);
    part->seeds |= 1u << message->vector;
    struct unit *unit = &shard->units[part->unit];
    if (--unit->seeds_missing == 0) {
        shard_keep_version(shard, unit);
        if (shard->policy->seeded != NULL) {
            shard->policy->seeded(shard);
        }
    }
    return STATUS_OK;
}

static enum status receive_push(struct shard *shard, struct part *part,
                                const struct message *message, struct envelope *envelope)
{
    uint32_t rank = message->rank;
    struct unit *unit = &shard->units[part->unit];
    // Rank 0 seeds before it pushes, so an update never meets parameters that are not there.
    if (message->step != unit->seats[rank].clock || part->values[rank] != NULL ||
        (rank == 0 && part->seeds == 0)) {
        return STATUS_MALFORMED;
    }
    enum status status = shard_settings_hear(shard, part, message);
    if (status != STATUS_OK) {
        return status;
    }
    envelope_move(&part->pushes[rank], envelope);
    part->values[rank] = part->pushes[rank].payload;
    unit->seats[rank].part_pushes++;
    unit->seats[rank].is_late = false;
    return STATUS_OK;
}

/* Whether no gradient has come that is not part of the parameters. */
static bool is_idle(const struct shard *shard, const struct unit *unit)
{
    bool is_idle = unit->seeds_missing == 0 && unit->summed == 0;
    for (uint32_t rank = 0; rank < shard->config.workers && is_idle; rank++) {
        is_idle = unit->seats[rank].part_pushes == 0;
    }
    return is_idle;
}

static void send_state(struct shard *shard, const struct part *part, uint32_t rank,
                       const struct state_pull *pull, shard_send_fn *send, void *context)
{
    const struct message state = {
        .kind = MESSAGE_PARAMS,
        .rank = rank,
        .step = pull->step,
        .bucket = (uint32_t)(part - shard->parts),
        .vector = pull->vector,
        .span = part->span,
        .values = vector_of(shard, pull->vector) + part->offset,
    };
    send(context, rank, &state);
}

/* Those that came before everything was seeded. */
static void answer_state_pulls(struct shard *shard, const struct unit *unit, shard_send_fn *send,
                               void *context)
{
    for (uint32_t i = unit->first; i < unit->end && unit->seeds_missing == 0; i++) {
        struct part *part = &shard->parts[i];
        for (uint32_t rank = 0; rank < shard->config.workers; rank++) {
            const struct state_pull pull = part->state_pulls[rank];
            part->state_pulls[rank].vector = 0;
            if (pull.vector > 0) {
                send_state(shard, part, rank, &pull, send, context);
            }
        }
    }
}

/* The optimizer's states, for the next phase, or for a commit: once this one is over, or nothing
 * changes them, and at once. A program may commit before its first step, and then a worker may ask
 * for what rank 0 is about to seed. */
static enum status receive_state_pull(struct shard *shard, struct part *part,
                                      const struct message *message, shard_send_fn *send,
                                      void *context)
{
    const struct state_pull pull = {message->vector, message->step};
    const struct unit *unit = &shard->units[part->unit];
    const struct marks *marks = &shard->config.marks;
    bool is_over = shard_is_unsynchronised(shard) ? shard_is_final(shard, unit)
                                                  : unit->version == marks->end - marks->first;
    bool is_early = shard->config.tells_states && unit->seeds_missing > 0 &&
                    part->state_pulls[message->rank].vector == 0;
    bool may_tell = is_over || is_early || (shard->config.tells_states && is_idle(shard, unit));
    if (!may_tell || message->vector > optimizer_state_count(shard->optimizer)) {
        return STATUS_MALFORMED;
    }
    if (is_early) {
        part->state_pulls[message->rank] = pull;
    } else {
        send_state(shard, part, message->rank, &pull, send, context);
    }
    return STATUS_OK;
}

static enum status receive_pull(struct shard *shard, struct part *part,
                                const struct message *message)
{
    const struct unit *unit = &shard->units[part->unit];
    struct seat *seat = &unit->seats[message->rank];
    bool is_first = seat->part_pulls == 0;
    uint64_t marks_read = shard_reader(shard, unit, message->rank)->marks_read;
    bool is_mark_wrong =
        message->mark > 0 && (!shard_is_unsynchronised(shard) || message->mark <= marks_read ||
                              message->mark > marks_count(&shard->config.marks));
    // One pull at a time, all parts for the same, for a step that can still come.
    if (part->is_pulled[message->rank] || message->step == UINT64_MAX || is_mark_wrong ||
        (!is_first && (message->step != seat->pull_step || message->mark != seat->pull_mark ||
                       message->params_version != seat->pull_version))) {
        return STATUS_MALFORMED;
    }
    part->is_pulled[message->rank] = true;
    seat->part_pulls++;
    seat->pull_step = message->step;
    seat->pull_mark = message->mark;
    seat->pull_version = message->params_version;
    return STATUS_OK;
}

static enum status take_message(struct shard *shard, struct part *part,
                                const struct message *message, struct envelope *envelope)
{
    if (message->kind == MESSAGE_SEED) {
        return receive_seed(shard, part, message);
    }
    if (message->kind == MESSAGE_PUSH) {
        return receive_push(shard, part, message, envelope);
    }
    return message->kind == MESSAGE_PULL ? receive_pull(shard, part, message) : STATUS_MALFORMED;
}

enum status shard_receive(struct shard *shard, const struct message *message,
                          struct envelope *envelope, shard_send_fn *send, void *context)
{
    if (message->rank >= shard->config.workers ||
        message->bucket >= shard->config.layout.bucket_count) {
        return STATUS_MALFORMED;
    }
    struct part *part = &shard->parts[message->bucket];
    struct unit *unit = &shard->units[part->unit];
    if (message->span.offset != part->span.offset || message->span.count != part->span.count ||
        part->span.count == 0) {
        return STATUS_MALFORMED;
    }
    if (message->kind == MESSAGE_PULL && message->vector > 0) {
        return receive_state_pull(shard, part, message, send, context);
    }
    enum status status = take_message(shard, part, message, envelope);
    if (status != STATUS_OK) {
        return status;
    }
    if (message->kind == MESSAGE_SEED) {
        answer_state_pulls(shard, unit, send, context);
    }
    // A copy that was read by all lets updates go on, and these may let others read.
    uint64_t handled;
    do {
        shard->policy->advance(shard, unit, message->rank);
        handled = unit->handled;
        answer_pulls(shard, unit, send, context);
        shard->policy->advance(shard, unit, message->rank);
    } while (unit->handled != handled);
    return STATUS_OK;
}

/* The worker that is furthest behind in pushes to a unit. */
static uint32_t find_last(const struct shard *shard, const struct unit *unit)
{
    uint32_t last = 0;
    for (uint32_t rank = 1; rank < shard->config.workers; rank++) {
        const struct seat *seat = &unit->seats[rank], *other = &unit->seats[last];
        if (seat->clock < other->clock ||
            (seat->clock == other->clock && shard_push_is_whole(unit, last))) {
            last = rank;
        }
    }
    return last;
}

/* Which worker has to send something before a unit goes on. False: none has to. */
static bool find_awaited(const struct shard *shard, const struct unit *unit, uint32_t *ret_rank)
{
    if (unit->seeds_missing > 0) {
        *ret_rank = 0;
        return true;
    }
    bool is_held = shard_mark_holds(shard, unit);
    for (uint32_t rank = 0; rank < shard->config.workers && is_held; rank++) {
        if (shard_mark_waits_for(shard, unit, rank)) {
            *ret_rank = rank;
            return true;
        }
    }
    *ret_rank = find_last(shard, unit);
    return !shard_push_is_whole(unit, *ret_rank);
}

/* Whether all has come that the answer to a worker needs of its own process. What is missing may be
 * lost, and then nobody else is to blame that there is no answer. */
static bool has_sent_all(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    return unit->part_count > 0 && unit->seats[rank].part_pulls == unit->part_count &&
           (!shard->policy->is_unsynchronised || shard_has_own_pushes(shard, unit, rank));
}

bool shard_awaits(const struct shard *shard, uint32_t *ret_rank)
{
    for (uint32_t i = 0; i < shard->unit_count; i++) {
        const struct unit *unit = &shard->units[i];
        uint32_t awaited;
        if (!find_awaited(shard, unit, &awaited)) {
            continue;
        }
        const struct rank_block block = shard_block(shard, awaited);
        for (uint32_t rank = 0; rank < shard->config.workers; rank++) {
            if (!rank_block_has(block, rank) && has_sent_all(shard, unit, rank)) {
                *ret_rank = awaited;
                return true;
            }
        }
    }
    return false;
}

const struct shard_config *shard_config(const struct shard *shard)
{
    return &shard->config;
}

enum status shard_fault(const struct shard *shard)
{
    return shard->fault;
}

void shard_copy(struct shard *shard, float *to, const float *from, uint64_t count)
{
    shard->math->copy(shard, to, from, count);
    shard->math->finish(shard);
}

bool shard_values_are_stable(const struct shard *shard)
{
    return !shard_is_unsynchronised(shard);
}

uint64_t shard_version(const struct shard *shard)
{
    uint64_t version = UINT64_MAX;
    for (uint32_t i = 0; i < shard->unit_count; i++) {
        const struct unit *unit = &shard->units[i];
        if (unit->part_count > 0 && unit->version < version) {
            version = unit->version;
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
