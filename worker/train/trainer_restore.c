/* Restores a worker from a checkpoint, or in place; keeps what it needs for that. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/link/link_checkpoint.h"
#include "worker/train/trainer.h"
#include "worker/train/trainer_vectors.h"

#include <string.h>

static enum status fetch(struct link *link, const char *vector, uint64_t count, float *target)
{
    const struct fetch wanted = fetch_of(vector, count, span_all(count), target);
    enum status status = link_fetch(link, &wanted);
    if (status == STATUS_INVALID) {
        log_error("the checkpoint has no %s of %" PRIu64 " values, which this job needs", vector,
                  count);
    }
    return status;
}

static enum status fetch_of_rank(struct link *link, uint32_t rank, const char *what, uint64_t count,
                                 float *target)
{
    char name[PIECE_NAME_BYTES];
    trainer_rank_vector(rank, what, name);
    return fetch(link, name, count, target);
}

/* States of a worker's own optimizer, or of the one that all workers run alike. */
static enum status fetch_states(struct trainer *trainer, struct link *link)
{
    uint64_t count = trainer_value_count(trainer);
    bool is_needed = trainer_is_local_sgd(trainer) || trainer_makes_updates(trainer);
    uint32_t states =
        is_needed && trainer->optimizer != NULL ? optimizer_state_count(trainer->optimizer) : 0;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < states && status == STATUS_OK; i++) {
        char name[PIECE_NAME_BYTES];
        float *target = optimizer_state(trainer->optimizer, i);
        snprintf(name, sizeof(name), "state-%" PRIu32, i + 1);
        status = trainer_is_local_sgd(trainer)
                     ? fetch_of_rank(link, trainer->ranks.first, name, count, target)
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

static enum status fetch_residuals(struct trainer *trainer, struct link *link)
{
    uint64_t count = trainer_value_count(trainer);
    if (!keeps_residual(trainer)) {
        return STATUS_OK;
    }
    float *residuals = memory_create_large(trainer_residuals_bytes(trainer));
    trainer->checkpoint.residuals = residuals;
    enum status status = residuals != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < trainer->ranks.count && status == STATUS_OK; i++) {
        status =
            fetch_of_rank(link, trainer->ranks.first + i, "residual", count, residuals + i * count);
    }
    return status;
}

/* Statistics of a rank where servers go on in place. */
static enum status find_statistics(struct trainer *trainer, struct link *link,
                                   const struct slice *slice, const struct kept_statistics *kept)
{
    uint64_t count = model_statistic_count(trainer->model);
    float *target = slice_statistics(&trainer->slices, slice);
    bool is_own;
    const float *values = kept_statistics_find(kept, slice->rank, count, &is_own);
    if (values != NULL && !is_own) {
        char name[PIECE_NAME_BYTES];
        trainer_rank_vector(slice->rank, "statistics", name);
        const struct fetch wanted = fetch_of(name, count, span_all(count), target);
        enum status status = link_fetch(link, &wanted);
        if (status != STATUS_INVALID) { // there is a copy, or no coordinator any more
            return status;
        }
    }
    if (values == NULL) {
        return fetch_of_rank(link, slice->rank, "statistics", count, target);
    }
    memcpy(target, values, count * sizeof(*target));
    return STATUS_OK;
}

/* What each rank that is carried here has alone, whoever carried it before. */
static enum status fetch_own(struct trainer *trainer, struct link *link,
                             const struct kept_statistics *kept)
{
    const struct slices *slices = &trainer->slices;
    uint64_t count = model_statistic_count(trainer->model);
    enum status status = model_fetch_statistics(trainer->model); // the host's are to be changed
    for (uint32_t i = 0; i < slices->count && status == STATUS_OK; i++) {
        struct slice *slice = &slices->list[i];
        link_open_slice(link, i, &slice->period.images, &slice->period.loss_sum);
        slice->period.steps = trainer->period.steps;
        slice->period.images_dropped = slices->count == 1 ? trainer->period.images_dropped : 0;
        if (count > 0 && link_is_in_place(link)) {
            status = find_statistics(trainer, link, slice, kept);
        } else if (count > 0) {
            status = fetch_of_rank(link, slice->rank, "statistics", count,
                                   slice_statistics(slices, slice));
        }
    }
    return status == STATUS_OK ? fetch_residuals(trainer, link) : status;
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
    // A short rest has a short warm-up, or nothing would be left to measure.
    uint64_t most = (trainer->step_count - begin) / 5;
    trainer->warmup_steps = begin + (trainer->warmup_steps < most ? trainer->warmup_steps : most);
    return slices_seek(&trainer->slices, begin / trainer->steps_per_epoch,
                       begin % trainer->steps_per_epoch);
}

/* The parameters. A worker whose servers go on in place pulls them before its first gradient. */
static enum status fetch_params(struct trainer *trainer, struct link *link)
{
    if (link_is_in_place(link)) {
        return STATUS_OK;
    }
    const char *params = trainer_has_known(trainer->job, trainer->phase) ? "known" : "params";
    return fetch(link, params, trainer_value_count(trainer), model_params(trainer->model));
}

void trainer_keep_statistics(struct trainer *trainer, struct kept_statistics *kept)
{
    const struct slices *slices = &trainer->slices;
    uint64_t count = model_statistic_count(trainer->model);
    if (trainer->link == NULL || count == 0) {
        return;
    }
    enum status status = model_fetch_statistics(trainer->model);
    if (status == STATUS_OK) {
        status = kept_statistics_create(kept, trainer->ranks, count);
    }
    if (status != STATUS_OK) {
        kept_statistics_finish(kept);
        return;
    }
    for (uint32_t i = 0; i < slices->count; i++) {
        memcpy(kept_statistics_at(kept, i), slice_statistics(slices, &slices->list[i]),
               count * sizeof(*kept->values));
    }
}

enum status trainer_restore(struct trainer *trainer, struct link *link,
                            const struct kept_statistics *kept)
{
    uint64_t begin = link_begin_step(link), count = trainer_value_count(trainer);
    if (begin == 0) {
        return trainer_expose(trainer);
    }
    enum status status = find_phase(trainer, begin);
    if (status != STATUS_OK) {
        return status;
    }
    trainer->checkpoint.begin_step = begin;
    trainer->period = *link_open_period(link);
    status = fetch_params(trainer, link);
    if (status != STATUS_OK) {
        return status;
    }
    status = fetch_states(trainer, link);
    if (status != STATUS_OK) {
        return status;
    }
    status = fetch_own(trainer, link, kept);
    if (status != STATUS_OK) {
        return status;
    }
    digest_floats(model_params(trainer->model), count, trainer->digest);
    return trainer_expose(trainer);
}
