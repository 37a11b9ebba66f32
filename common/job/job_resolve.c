/* Fills batch, length, rate and defaults of a job, and has it checked. */
#include "common/job/job_resolve.h"

#include "common/job/job_checks.h"
#include "common/job/job_modes.h"

#include <stdio.h>

#define DEFAULT_BATCH 32

static enum status resolve_batch(struct job *job, char *ret_error, size_t error_size)
{
    uint32_t workers = job->workers;
    if (job->batch == 0 && job->global_batch == 0) {
        job->batch = DEFAULT_BATCH;
    }
    if (job->global_batch == 0) {
        uint64_t global = (uint64_t)job->batch * workers;
        if (global > JOB_BATCH_MAX) {
            snprintf(ret_error, error_size,
                     "--batch %u times %u workers is more than the %u images that a step may have",
                     job->batch, workers, JOB_BATCH_MAX);
            return STATUS_INVALID;
        }
        job->global_batch = (uint32_t)global;
    }
    if (job->global_batch < workers) {
        snprintf(
            ret_error, error_size,
            "--global-batch %u leaves some of the %u workers without an image: make it larger, "
            "or use fewer --workers",
            job->global_batch, workers);
        return STATUS_INVALID;
    }
    uint32_t share = (job->global_batch + workers - 1) / workers;
    if (job->batch != 0 && job->batch != share) {
        snprintf(ret_error, error_size,
                 "--batch %u and --global-batch %u contradict each other with %u workers: give one "
                 "of them",
                 job->batch, job->global_batch, workers);
        return STATUS_INVALID;
    }
    job->batch = share;
    return STATUS_OK;
}

static enum status resolve_length(struct job *job, char *ret_error, size_t error_size)
{
    if (job->epochs != 0 && job->steps != 0) {
        snprintf(ret_error, error_size,
                 "--epochs %u and --steps %llu contradict each other: give one of them",
                 job->epochs, (unsigned long long)job->steps);
        return STATUS_INVALID;
    }
    if (job->epochs == 0 && job->steps == 0) {
        job->epochs = job_is_external(job) ? 0 : 1;
        job->steps = job_is_external(job) ? JOB_STEPS_OPEN : 0;
    }
    return STATUS_OK;
}

static enum status resolve_optimizer(struct job *job, char *ret_error, size_t error_size)
{
    if (job->optimizer == OPTIMIZER_AUTO) {
        return STATUS_OK; // its program says the rest, and which: see job_take_optimizer
    }
    if (job->lr <= 0) {
        job->lr = optimizer_default_rate(job->optimizer);
    }
    optimizer_fill_defaults(job->optimizer, &job->settings);
    // As the loops have it; a divisor that vanishes there is what epsilon is to prevent.
    if (job->settings.epsilon > 0 && (float)job->settings.epsilon <= 0) {
        snprintf(ret_error, error_size, "--epsilon %g is 0 in single precision: make it larger",
                 job->settings.epsilon);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* A program of its own brings its data, and evaluates by itself. */
static void resolve_external(struct job *job)
{
    if (!job_is_external(job)) {
        job->optimizer = job->optimizer == OPTIMIZER_AUTO ? OPTIMIZER_MOMENTUM : job->optimizer;
        return;
    }
    snprintf(job->data, sizeof(job->data), "%s", job->model);
    job->eval = EVALUATION_NONE;
    job->on_loss = job->on_loss == ON_LOSS_AUTO ? ON_LOSS_FAIL : job->on_loss;
}

enum status job_resolve(struct job *job, char *ret_error, size_t error_size)
{
    resolve_external(job);
    enum status status = resolve_length(job, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    status = resolve_batch(job, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    if (job->stall_warn > job->stall_fail) {
        snprintf(ret_error, error_size,
                 "--stall-warn %g is longer than --stall-fail %g: there would be no warning",
                 job->stall_warn, job->stall_fail);
        return STATUS_INVALID;
    }
    if (job->timeline_steps.first > 0 || job->timeline_steps.end < UINT64_MAX) {
        job->timeline = true;
    }
    if (job->lr_scale != LR_SCALE_LINEAR) {
        job->lr_workers = 1; // counts for nothing: jobs that differ in it are the same
    } else if (job->lr_workers == 0) {
        job->lr_workers = job->workers;
    }
    if (job->mode.kind == MODE_LOCAL) {
        job->workers = 1;
        job->processes = 0;
        job->batch = job->global_batch;
        job->sync_every = 1; // one worker is in step with itself
    }
    if (!job_has_mode(job, MODE_RING)) {
        job->all_reduce = ALL_REDUCE_CHOICE_AUTO; // counts for nothing
    }
    if (job->mode.kind == MODE_LOCAL) {
        job->compress = (struct codec){.kind = CODEC_NONE};
    }
    if (!job_has_servers(job)) {
        job->servers = 0;
    } else if (job->servers == 0) {
        snprintf(ret_error, error_size, "mode %s needs at least one of --servers",
                 job->mode.kind == MODE_RING ? job->switches : mode_text(job->mode).text);
        return STATUS_INVALID;
    }
    if (job->on_loss == ON_LOSS_AUTO) {
        job->on_loss = job_can_redeal(job) ? ON_LOSS_REDEAL : ON_LOSS_FAIL;
    }
    status = job_check(job, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    return resolve_optimizer(job, ret_error, error_size);
}
