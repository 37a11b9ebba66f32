/* Fills snapshots at steps. */
#include "worker/train/trainer_checkpoint.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/job/job_modes.h"
#include "worker/link/link_checkpoint.h"
#include "worker/train/round.h"
#include "worker/train/trainer_vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps of workers are apart, and no order says which comes when: they are not counted. */
static bool is_race(const struct trainer *trainer)
{
    bool is_free = strcmp(trainer->job->order, "free") == 0;
    return trainer->phase->is_unsynchronised &&
           (is_free || !mode_updates_on_push(trainer->phase->mode.kind));
}

/* What this worker has in a snapshot, in the order of its entries: it is laid out by that, and
 * filled. */
struct sources {
    struct snapshot *snapshot;
    bool is_filled;
    uint32_t count; // that came so far
    enum status status;
};

static void add(struct sources *sources, const char *name, uint64_t total, struct span span,
                const float *values)
{
    if (span.count == 0 || sources->status != STATUS_OK) {
        return;
    }
    if (sources->is_filled) {
        memcpy(snapshot_values(sources->snapshot, sources->count), values + span.offset,
               span.count * sizeof(float));
    } else {
        sources->status = snapshot_add(sources->snapshot, name, total, span);
    }
    sources->count++;
}

static void add_of_rank(struct sources *sources, uint32_t rank, const char *what, uint64_t total,
                        const float *values)
{
    char name[PIECE_NAME_BYTES];
    trainer_rank_vector(rank, what, name);
    if (values != NULL) {
        add(sources, name, total, span_all(total), values);
    }
}

/* What each rank that is carried here has alone. */
static void add_own(struct trainer *trainer, struct sources *sources)
{
    const struct slices *slices = &trainer->slices;
    for (uint32_t i = 0; i < slices->count; i++) {
        const struct slice *slice = &slices->list[i];
        add_of_rank(sources, slice->rank, "statistics", model_statistic_count(trainer->model),
                    slice_statistics(slices, slice));
        add_of_rank(sources, slice->rank, "residual", trainer_value_count(trainer),
                    exchange_residual(trainer->exchange, i));
    }
}

/* This process's part of what all processes have. */
static struct span own_part(const struct trainer *trainer)
{
    const struct carriers carriers = job_carriers(trainer->job);
    return span_part(span_all(trainer_value_count(trainer)), carriers.processes,
                     carriers_process(carriers, trainer->ranks.first));
}

static void list_sources(struct trainer *trainer, struct sources *sources)
{
    uint64_t count = trainer_value_count(trainer);
    struct span part = own_part(trainer);
    uint32_t states = trainer->optimizer != NULL ? optimizer_state_count(trainer->optimizer) : 0;
    if (trainer_makes_updates(trainer)) {
        add(sources, "params", count, part, model_params(trainer->model));
    } else if (trainer_has_known(trainer->job, trainer->phase)) {
        add(sources, "known", count, part, model_params(trainer->model));
    }
    for (uint32_t i = 0; i < states; i++) {
        char name[PIECE_NAME_BYTES];
        const float *state = optimizer_state(trainer->optimizer, i);
        snprintf(name, sizeof(name), "state-%" PRIu32, i + 1);
        if (trainer_is_local_sgd(trainer)) {
            add_of_rank(sources, trainer->ranks.first, name, count, state); // its only one
        } else if (trainer_makes_updates(trainer)) {
            add(sources, name, count, part, state);
        }
    }
    add_own(trainer, sources);
}

/* What the coordinator has asked for and was not answered; 0: nothing. */
static uint64_t request_of(struct trainer *trainer, struct link *link)
{
    uint64_t announced = link_announced(link);
    return announced != trainer->checkpoint.answered ? announced : 0;
}

/* Gives residuals that were fetched to the first exchange. Nothing was encoded so far: that begins
 * with this worker's first bucket. */
static void hand_over_residuals(struct trainer *trainer)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    uint64_t count = trainer_value_count(trainer);
    for (uint32_t i = 0; of->residuals != NULL && i < trainer->ranks.count; i++) {
        float *residual = exchange_residual(trainer->exchange, i);
        if (residual != NULL) {
            memcpy(residual, of->residuals + i * count, count * sizeof(float));
        }
    }
    memory_destroy_large(of->residuals, trainer_residuals_bytes(trainer));
    of->residuals = NULL;
}

/* Takes all memory that snapshots of the phase need. */
static enum status lay_out(struct trainer *trainer)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    struct sources sources = {.snapshot = &of->snapshot};
    snapshot_finish(&of->snapshot);
    list_sources(trainer, &sources);
    enum status status =
        sources.status == STATUS_OK ? snapshot_allocate(&of->snapshot) : sources.status;
    if (status != STATUS_OK || of->open_images != NULL) {
        return status;
    }
    of->open_images = calloc(trainer->ranks.count, sizeof(*of->open_images));
    of->open_loss_sums = calloc(trainer->ranks.count, sizeof(*of->open_loss_sums));
    return of->open_images != NULL && of->open_loss_sums != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status trainer_checkpoint_begin_phase(struct trainer *trainer, struct link *link)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    hand_over_residuals(trainer);
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
    return status == STATUS_OK ? lay_out(trainer) : status;
}

/* Everything that was exchanged has come, and what a device holds is on the host. */
static enum status settle(struct trainer *trainer)
{
    enum status status = round_end_pending(trainer);
    if (status == STATUS_OK && !trainer->phase->is_unsynchronised) {
        status = exchange_settle(trainer->exchange);
    }
    if (status == STATUS_OK) {
        status = model_fetch_statistics(trainer->model);
    }
    return status == STATUS_OK && trainer_makes_updates(trainer) ? model_fetch(trainer->model)
                                                                 : status;
}

/* What a rank has of the period that is open after `steps` steps of the job. In a race the servers'
 * copy has as many gradients as all ranks make in those, and nobody knows how many of each: so each
 * rank counts with its share, and with the loss that its own had in the mean. */
static struct slice_sums open_period(const struct trainer *trainer, const struct slice *slice,
                                     uint64_t steps)
{
    struct slice_sums open = trainer_open_period(trainer, slice, steps);
    if (!is_race(trainer) || !mode_updates_on_push(trainer->phase->mode.kind)) {
        return open;
    }
    uint32_t batch = job_batch_of(trainer->job, slice->rank);
    double loss = open.images > 0 ? open.loss_sum / (double)open.images : slice->loss_sum / batch;
    uint64_t made = steps % phases_period(trainer->job, trainer->train_samples);
    return (struct slice_sums){
        .steps = made, .images = made * batch, .loss_sum = loss * (double)(made * batch)};
}

/* Offers the snapshot that is filled, with what each rank has not reported. */
static void offer(struct trainer *trainer, struct link *link, uint64_t steps)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    const struct wire_slices open = {trainer->slices.count, of->open_images, of->open_loss_sums};
    struct wire_report report = trainer->period;
    for (uint32_t i = 0; i < trainer->slices.count; i++) {
        const struct slice_sums sums = open_period(trainer, &trainer->slices.list[i], steps);
        of->open_images[i] = sums.images;
        of->open_loss_sums[i] = sums.loss_sum;
        report.steps = sums.steps;
        report.images_dropped = sums.images_dropped; // of a process that carries one rank
    }
    link_offer_snapshot(link, &of->snapshot, steps, &report, &open);
}

/* Offers a snapshot of what is now as one after `steps` steps; this worker's own are
 * `worker_step`. */
static enum status take(struct trainer *trainer, struct link *link, uint64_t steps,
                        uint64_t worker_step)
{
    struct sources sources = {.snapshot = &trainer->checkpoint.snapshot, .is_filled = true};
    trainer->checkpoint.offered = steps;
    enum status status = settle(trainer);
    if (status != STATUS_OK) {
        return status;
    }
    if (trainer_has_interval(trainer)) {
        trainer_report_interval(trainer, link, worker_step); // results have all up to here
    }
    list_sources(trainer, &sources);
    offer(trainer, link, steps);
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
        // In the midst of a round a worker's parameters are its own. A step of a later phase is not
        // near: servers have no copy of it before, and this phase would end waiting for them.
        bool is_later = request > trainer->phase->marks.end;
        if (request == 0 || is_later || trainer->round_steps > 0) {
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
    if (!is_due || (trainer_is_local_sgd(trainer) && trainer->round_steps > 0)) {
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

void trainer_checkpoint_finish(struct trainer *trainer)
{
    struct trainer_checkpoint *of = &trainer->checkpoint;
    if (of->residuals != NULL) {
        memory_destroy_large(of->residuals, trainer_residuals_bytes(trainer));
    }
    free(of->open_images);
    free(of->open_loss_sums);
    snapshot_finish(&of->snapshot);
}
