/* Fills snapshots at steps, and restores a worker from a checkpoint. */
#include "worker/train/trainer_checkpoint.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/job/job_modes.h"
#include "worker/link/link_checkpoint.h"
#include "worker/train/round.h"
#include "worker/train/trainer_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t value_count_of(const struct trainer *trainer)
{
    return model_layout(trainer->model)->value_count;
}

/* Whether workers make the updates, each the same: then each has a part of what all have. */
static bool makes_updates(const struct trainer *trainer)
{
    return exchange_of(trainer->phase->mode.kind)->delivers == EXCHANGE_GRADIENTS;
}

/* Whether workers have something else than the servers: answers in ps-sync are codes. */
static bool has_known(const struct job *job, const struct phase *phase)
{
    return phase->mode.kind == MODE_PS_SYNC && !phase->is_unsynchronised &&
           job->compress.kind != CODEC_NONE;
}

/* Steps of workers are apart, and no order says which comes when: they are not counted. */
static bool is_race(const struct trainer *trainer)
{
    bool is_free = strcmp(trainer->job->order, "free") == 0;
    return trainer->phase->is_unsynchronised &&
           (is_free || !mode_updates_on_push(trainer->phase->mode.kind));
}

static bool is_local_sgd(const struct trainer *trainer)
{
    return trainer->base != NULL;
}

static struct span whole(uint64_t count)
{
    return (struct span){0, count};
}

/* ==========================================================================================
 * Snapshots
 * ========================================================================================== */

/* What this worker has in a snapshot; `of` gets the values, in the order of the entries. */
#define SOURCES_MAX (2 * OPTIMIZER_STATES_MAX + 4)

struct sources {
    const float *values[SOURCES_MAX];
    struct snapshot *snapshot; // NULL: values alone
    uint32_t count;
    enum status status;
};

static void add(struct sources *sources, const char *name, uint64_t total, struct span span,
                const float *values)
{
    if (span.count == 0 || sources->status != STATUS_OK) {
        return;
    }
    if (sources->snapshot != NULL) {
        sources->status = snapshot_add(sources->snapshot, name, total, span);
    }
    sources->values[sources->count++] = values + span.offset;
}

static void add_of_rank(struct trainer *trainer, struct sources *sources, const char *what,
                        uint64_t total, const float *values)
{
    char name[PIECE_NAME_BYTES];
    snprintf(name, sizeof(name), "rank-%" PRIu32 "/%.24s", trainer->ranks.first, what);
    if (values != NULL) {
        add(sources, name, total, whole(total), values);
    }
}

static void list_sources(struct trainer *trainer, struct sources *sources)
{
    uint64_t count = value_count_of(trainer);
    struct span part = span_part(whole(count), trainer->job->workers, trainer->ranks.first);
    uint32_t states = trainer->optimizer != NULL ? optimizer_state_count(trainer->optimizer) : 0;
    if (makes_updates(trainer)) {
        add(sources, "params", count, part, model_params(trainer->model));
    } else if (has_known(trainer->job, trainer->phase)) {
        add(sources, "known", count, part, model_params(trainer->model));
    }
    for (uint32_t i = 0; i < states; i++) {
        char name[PIECE_NAME_BYTES];
        const float *state = optimizer_state(trainer->optimizer, i);
        snprintf(name, sizeof(name), "state-%" PRIu32, i + 1);
        if (is_local_sgd(trainer)) {
            add_of_rank(trainer, sources, name, count, state);
        } else if (makes_updates(trainer)) {
            add(sources, name, count, part, state);
        }
    }
    add_of_rank(trainer, sources, "statistics", model_statistic_count(trainer->model),
                model_statistics(trainer->model));
    add_of_rank(trainer, sources, "residual", count, trainer->exchange->residual);
}

/* What the coordinator has asked for and was not answered; 0: nothing. */
static uint64_t request_of(struct trainer *trainer, struct link *link)
{
    uint64_t announced = link_announced(link);
    return announced != trainer->checkpoint.answered ? announced : 0;
}

enum status trainer_checkpoint_begin_phase(struct trainer *trainer, struct link *link)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    if (of->residual != NULL && trainer->exchange->residual != NULL) {
        // Nothing was encoded so far: that begins with this worker's first bucket.
        memcpy(trainer->exchange->residual, of->residual, value_count_of(trainer) * sizeof(float));
    }
    memory_destroy_large(of->residual, value_count_of(trainer) * sizeof(float));
    of->residual = NULL;
    of->plan = checkpoints_of(trainer->job, trainer->train_samples);
    if (!of->plan.are_on) {
        return STATUS_OK;
    }
    // Nobody may wait for a snapshot of the phase before, or others would in this one.
    uint64_t request = request_of(trainer, link);
    if (request > 0 && request <= trainer->phase->begin) {
        of->answered = request;
        link_skip_snapshot(link, request);
    }
    enum status status = link_await_snapshot(link);
    if (status != STATUS_OK) {
        return status;
    }
    struct sources sources = {.snapshot = &of->snapshot};
    snapshot_finish(&of->snapshot);
    list_sources(trainer, &sources);
    return sources.status == STATUS_OK ? snapshot_allocate(&of->snapshot) : sources.status;
}

/* Everything that was exchanged has come, and what a device holds is on the host. */
static enum status settle(struct trainer *trainer)
{
    enum status status = round_end_pending(trainer);
    if (status == STATUS_OK && !trainer->phase->is_unsynchronised) {
        status = exchange_settle(trainer->exchange);
    }
    return status == STATUS_OK && makes_updates(trainer) ? model_fetch(trainer->model) : status;
}

/* Offers a snapshot of what is now as one after `steps` steps; this worker's own are
 * `worker_step`. */
static enum status take(struct trainer *trainer, struct link *link, uint64_t steps,
                        uint64_t worker_step)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    struct sources sources = {0};
    of->offered = steps;
    enum status status = settle(trainer);
    if (status != STATUS_OK) {
        return status;
    }
    if (trainer->interval.steps > 0) {
        trainer_report_interval(trainer, link, worker_step); // results have all up to here
    }
    list_sources(trainer, &sources);
    for (uint32_t i = 0; i < sources.count; i++) {
        memcpy(snapshot_values(&of->snapshot, i), sources.values[i],
               of->snapshot.entries[i].span.count * sizeof(float));
    }
    const struct wire_report open =
        trainer_report_of(&trainer->period, &trainer->slices.list[0].period);
    link_offer_snapshot(link, &of->snapshot, steps, &open);
    return STATUS_OK;
}

/* The same, unless the last one has not gone. The job's last waits for that. */
static enum status take_or_skip(struct trainer *trainer, struct link *link, uint64_t boundary,
                                uint64_t worker_step)
{
    if (boundary == trainer->checkpoint.plan.total) {
        enum status status = link_await_snapshot(link);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (!link_snapshot_is_gone(link)) {
        trainer->checkpoint.offered = boundary;
        link_skip_snapshot(link, boundary);
        return STATUS_OK;
    }
    return take(trainer, link, boundary, worker_step);
}

enum status trainer_checkpoint_after_step(struct trainer *trainer, struct link *link, uint64_t step)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    if (!of->plan.are_on) {
        return STATUS_OK;
    }
    uint64_t request = request_of(trainer, link);
    if (is_race(trainer)) {
        // In the midst of a round a worker's parameters are its own.
        if (request == 0 || trainer->round_steps > 0) {
            return STATUS_OK;
        }
        of->answered = request;
        return take_or_skip(trainer, link, request, step);
    }
    if (request > 0 && request <= step) {
        of->answered = request;
    }
    if (request > 0 && request < step) {
        link_skip_snapshot(link, request);
    }
    bool is_due = request == step || checkpoints_are_due(&of->plan, &trainer->phases, step);
    if (!is_due || (is_local_sgd(trainer) && trainer->round_steps > 0)) {
        return STATUS_OK;
    }
    return take_or_skip(trainer, link, step, step);
}

enum status trainer_checkpoint_end(struct trainer *trainer, struct link *link)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    if (!of->plan.are_on || trainer->is_enough) {
        return STATUS_OK;
    }
    uint64_t request = request_of(trainer, link);
    if (request > 0 && request != of->plan.total) {
        link_skip_snapshot(link, request);
    }
    if (!of->plan.are_written) {
        return STATUS_OK; // nobody goes on from the end
    }
    return of->offered != of->plan.total
               ? take_or_skip(trainer, link, of->plan.total, trainer->step + 1)
               : STATUS_OK;
}

/* ==========================================================================================
 * The way back
 * ========================================================================================== */

static enum status fetch(struct link *link, const char *vector, uint64_t count, float *target)
{
    const struct fetch wanted = fetch_of(vector, count, whole(count), target);
    enum status status = link_fetch(link, &wanted);
    if (status == STATUS_INVALID) {
        log_error("the checkpoint has no %s of %" PRIu64 " values, which this job needs", vector,
                  count);
    }
    return status;
}

static enum status fetch_of_rank(struct trainer *trainer, struct link *link, const char *what,
                                 uint64_t count, float *target)
{
    char name[PIECE_NAME_BYTES];
    snprintf(name, sizeof(name), "rank-%" PRIu32 "/%.24s", trainer->ranks.first, what);
    return fetch(link, name, count, target);
}

/* States of a worker's own optimizer, or of the one that all workers run alike. */
static enum status fetch_states(struct trainer *trainer, struct link *link)
{
    uint64_t count = value_count_of(trainer);
    bool is_needed = is_local_sgd(trainer) || makes_updates(trainer);
    uint32_t states =
        is_needed && trainer->optimizer != NULL ? optimizer_state_count(trainer->optimizer) : 0;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < states && status == STATUS_OK; i++) {
        char name[PIECE_NAME_BYTES];
        float *target = optimizer_state(trainer->optimizer, i);
        snprintf(name, sizeof(name), "state-%" PRIu32, i + 1);
        status = is_local_sgd(trainer) ? fetch_of_rank(trainer, link, name, count, target)
                                       : fetch(link, name, count, target);
    }
    return status;
}

/* Whether the exchange that comes keeps errors of what it encodes. */
static bool keeps_residual(const struct trainer *trainer)
{
    return trainer->job->compress.kind != CODEC_NONE && trainer->phase->mode.kind != MODE_LOCAL &&
           (trainer->job->workers > 1 || trainer->phase->mode.kind != MODE_RING);
}

static enum status fetch_residual(struct trainer *trainer, struct link *link)
{
    uint64_t count = value_count_of(trainer);
    if (!keeps_residual(trainer)) {
        return STATUS_OK;
    }
    trainer->checkpoint.residual = memory_create_large(count * sizeof(float));
    return trainer->checkpoint.residual != NULL
               ? fetch_of_rank(trainer, link, "residual", count, trainer->checkpoint.residual)
               : STATUS_NO_MEMORY;
}

/* Periods of the job that are over after so many steps. */
static uint64_t periods_until(const struct trainer *trainer, uint64_t steps)
{
    uint64_t period = phases_period(trainer->job, trainer->train_samples);
    return steps / period;
}

static enum status find_phase(struct trainer *trainer, uint64_t begin)
{
    uint32_t index;
    enum status status = phases_resume(trainer->job, &trainer->phases, begin, &index);
    if (status != STATUS_OK) {
        log_error("no step of the job is left behind step %" PRIu64 " of the checkpoint", begin);
        return STATUS_INVALID;
    }
    trainer->phase = &trainer->phases.list[index];
    trainer->periods_closed = periods_until(trainer, begin);
    trainer->warmup_steps += begin;
    return slices_seek(&trainer->slices, begin / trainer->steps_per_epoch,
                       begin % trainer->steps_per_epoch);
}

enum status trainer_restore(struct trainer *trainer, struct link *link)
{
    uint64_t begin = link_begin_step(link), count = value_count_of(trainer);
    if (begin == 0) {
        return STATUS_OK;
    }
    enum status status = find_phase(trainer, begin);
    if (status != STATUS_OK) {
        return status;
    }
    trainer->checkpoint.begin_step = begin;
    trainer->period = *link_open_period(link);
    trainer->slices.list[0].period =
        (struct slice_sums){trainer->period.images, trainer->period.loss_sum};
    const char *params = has_known(trainer->job, trainer->phase) ? "known" : "params";
    status = fetch(link, params, count, model_params(trainer->model));
    if (status == STATUS_OK) {
        status = fetch_states(trainer, link);
    }
    if (status == STATUS_OK && model_statistic_count(trainer->model) > 0) {
        status = fetch_of_rank(trainer, link, "statistics", model_statistic_count(trainer->model),
                               model_statistics(trainer->model));
    }
    if (status == STATUS_OK) {
        status = fetch_residual(trainer, link);
    }
    if (status == STATUS_OK) {
        digest_floats(model_params(trainer->model), count, trainer->digest);
    }
    return status;
}

void trainer_checkpoint_finish(struct trainer *trainer)
{
    if (trainer->checkpoint.residual != NULL) {
        memory_destroy_large(trainer->checkpoint.residual, value_count_of(trainer) * sizeof(float));
    }
    snapshot_finish(&trainer->checkpoint.snapshot);
}
