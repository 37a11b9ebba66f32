/* Creates the trainer, and runs the phases of a job one after the other. */
#include "worker/train/trainer.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/job/phases.h"
#include "common/transport/endpoints.h"
#include "worker/link/outbox.h"
#include "worker/train/trainer_state.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Batches that the loader is ahead.
#define READ_AHEAD 4

// Steps that the job's speed leaves out: at most so many, at most a fifth of all; and trials.
#define WARMUP_STEPS_MAX 10

/* All steps of a phase. *step counts those of the job that were made. */
static enum status train_phase(struct trainer *trainer, struct link *link, uint64_t *step)
{
    trainer->marks_closed = trainer->round = trainer->round_steps = 0;
    trainer->trial = (struct trial){0};
    enum status status = trainer_before_steps(trainer, link, *step);
    while (status == STATUS_OK && !trainer_phase_is_over(trainer, *step)) {
        uint64_t started_ns = clock_now_ns();
        struct step_times times;
        double loss_sum;
        status = trainer_step(trainer, *step, &loss_sum, &times);
        if (status != STATUS_OK) {
            break;
        }
        uint64_t step_ns = clock_now_ns() - started_ns;
        trainer_count_step(trainer, *step, loss_sum, &times, step_ns);
        trial_add(&trainer->trial, step_ns, trainer->round_steps == 0);
        status = trainer_after_step(trainer, link, ++*step);
    }
    return status == STATUS_OK ? exchange_settle(trainer->exchange) : status;
}

/* Fills `states`, which borrow from the optimizer, with what this phase leaves behind: parameters
 * in the model, and the states of servers that have some. */
static enum status collect_states(struct trainer *trainer, float **states, uint32_t *ret_count)
{
    bool servers_have_states = trainer->phase->mode.kind != MODE_RING && trainer->base == NULL;
    uint32_t count = trainer->base == NULL ? optimizer_state_count(trainer->optimizer) : 0;
    enum status status = model_fetch(trainer->model);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        states[i] = optimizer_state(trainer->optimizer, i);
        if (servers_have_states) {
            status = exchange_pull_state(trainer->exchange, 1 + i, states[i]);
        }
    }
    *ret_count = count;
    return status;
}

/* Takes what the next phase needs out of the one that ends, and waits for it to begin: then all
 * workers hold the same parameters and states, and go on in the same place of the data. */
static enum status pass_phase(struct trainer *trainer, struct link *link)
{
    float *states[OPTIMIZER_STATES_MAX];
    struct link_passed passed = {.states = states, .step_ns = trial_step_ns(&trainer->trial)};
    enum status status = collect_states(trainer, states, &passed.state_count);
    if (status != STATUS_OK) {
        return status;
    }
    status = exchange_drain(trainer->exchange);
    if (status != STATUS_OK) {
        return status;
    }
    status = link_pass(link, &passed);
    trainer->exchange = link_exchange(link); // the old one may be gone, also if the job ends
    if (status != STATUS_OK) {
        return status;
    }
    trainer->phase++;
    model_merge_buckets(trainer->model, link_bucket_bytes(link));
    uint64_t first = trainer->phase->marks.first;
    return batcher_seek(trainer->batcher, first / trainer->steps_per_epoch,
                        first % trainer->steps_per_epoch);
}

static enum status train(struct trainer *trainer, struct link *link, uint64_t *ret_step)
{
    const struct phase *last = &trainer->phases.list[trainer->phases.count - 1];
    for (;;) {
        enum status status = train_phase(trainer, link, ret_step);
        if (status != STATUS_OK || trainer->phase == last || trainer->is_enough) {
            return status;
        }
        status = pass_phase(trainer, link);
        if (status != STATUS_OK) {
            return status;
        }
        *ret_step = trainer->phase->marks.first;
    }
}

/* What helps against a loss that is not finite. */
static void describe_divergence(const struct trainer *trainer, uint64_t step, char *ret_text,
                                size_t text_size)
{
    const struct job *job = trainer->job;
    double rate = trainer->schedule.base_rate;
    char effective[64] = "", stale[192] = "";
    if (rate > job->lr) {
        snprintf(effective, sizeof(effective), " (%g by --lr-scale linear)", rate);
    }
    if (trainer->staleness_max > 0) {
        bool has_remedy = job->remedy != REMEDY_NONE;
        snprintf(stale, sizeof(stale),
                 "; gradients were up to %.0f updates old, and the rate that training survives "
                 "falls with that: less staleness%s helps, too",
                 ceil(trainer->staleness_max), has_remedy ? "" : ", or --remedy staleness-lr,");
    }
    snprintf(ret_text, text_size,
             "the loss is not finite at step %llu: try a lower --lr than %g%s%s%s",
             (unsigned long long)step + 1, job->lr, effective,
             job->warmup_epochs > 0 ? "" : ", or --warmup-epochs", stale);
}

static void say_why_not(const struct trainer *trainer, struct link *link, uint64_t step,
                        enum status status)
{
    char text[OUTBOX_TEXT_BYTES];
    if (status == STATUS_NOT_FINITE) {
        describe_divergence(trainer, step, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "step %llu failed: %s", (unsigned long long)step + 1,
                 status_text(status));
    }
    log_error("%s", text);
    link_leave(link, status, text);
}

enum status trainer_run(struct trainer *trainer, struct link *link)
{
    trainer->link = link;
    trainer->exchange = link_exchange(link);
    model_merge_buckets(trainer->model, link_bucket_bytes(link));
    link_traffic(link, &trainer->sent_before, &trainer->received_before); // to get here
    uint64_t step = 0;
    enum status status = train(trainer, link, &step);
    if (status == STATUS_OK) {
        status = model_fetch(trainer->model);
    }
    enum status ending = exchange_stopped(trainer->exchange);
    if (status != STATUS_OK && status == ending) {
        return link_verdict(link); // the job was ended elsewhere: the coordinator knows
    }
    if (status != STATUS_OK) {
        say_why_not(trainer, link, step, status);
        return status;
    }
    uint64_t dropped = (uint64_t)(trainer->warm_dropped + 0.5);
    struct wire_report report = {.warm_images = trainer->warm_images - dropped,
                                 .warm_ns = trainer->warm_ns};
    digest_floats(model_params(trainer->model), model_layout(trainer->model)->value_count,
                  trainer->digest);
    link_done(link, step, &report, trainer->digest);
    return link_verdict(link);
}

static enum conv_algorithm conv_of(enum job_conv conv)
{
    switch (conv) {
    case JOB_CONV_AUTO:
        return CONV_AUTO;
    case JOB_CONV_DIRECT:
        return CONV_DIRECT;
    case JOB_CONV_WINOGRAD:
        return CONV_WINOGRAD;
    }
    return CONV_AUTO;
}

static enum precision precision_of(enum job_precision precision)
{
    switch (precision) {
    case JOB_PRECISION_FP32:
        return PRECISION_FP32;
    case JOB_PRECISION_TF32:
        return PRECISION_TF32;
    case JOB_PRECISION_BF16:
        return PRECISION_BF16;
    }
    return PRECISION_FP32;
}

static enum status create_model(struct trainer *trainer, struct device *device,
                                const struct dataset *train)
{
    const struct job *job = trainer->job;
    bool has_peers = job->servers > 0 || job->workers > 1;
    struct model_options options = {
        .name = job->model,
        .input = train->sample,
        .class_count = train->class_count,
        .batch_size = job_batch_of(job, trainer->rank),
        .seed = job->seed,
        .bucket_bytes = phases_bucket_bytes(job),
        .conv = conv_of(job->conv),
        .precision = precision_of(job->precision),
        .has_region = has_peers && endpoints_may_share(job->transport),
    };
    enum status status = model_create(&options, device, &trainer->model);
    if (status != STATUS_OK) {
        return status;
    }
    const struct layout *layout = model_layout(trainer->model);
    digest_floats(model_params(trainer->model), layout->value_count, trainer->digest);
    uint64_t statistics = model_statistic_count(trainer->model);
    if (job->sync_bn && statistics == 0) {
        log_error("--sync-bn is for models with batch normalisation, and %s has none", job->model);
        return STATUS_INVALID;
    }
    if (statistics > 0 && job->workers > 1) {
        trainer->statistics = calloc(statistics, sizeof(*trainer->statistics));
        return trainer->statistics != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* Whether workers make updates in some phase, each the same from the mean gradient. */
static bool makes_updates(const struct trainer *trainer)
{
    bool makes = false;
    for (uint32_t i = 0; i < trainer->phases.count; i++) {
        makes =
            makes || exchange_of(trainer->phases.list[i].mode.kind)->delivers == EXCHANGE_GRADIENTS;
    }
    return makes && trainer->job->sync_every <= 1;
}

/* What the worker itself needs to change parameters. */
static enum status create_optimizers(struct trainer *trainer)
{
    static const struct optimizer_settings plain;
    const struct job *job = trainer->job;
    uint64_t count = model_layout(trainer->model)->value_count;
    bool is_local_sgd = job->sync_every > 1;
    enum status status = STATUS_OK;
    // Also to carry states from one phase to the next.
    if (is_local_sgd || trainer->phases.count > 1 ||
        exchange_of(job->mode.kind)->delivers == EXCHANGE_GRADIENTS) {
        status = optimizer_create(job->optimizer, &job->settings, count, &trainer->optimizer);
    }
    trainer->device_updates = makes_updates(trainer) && model_may_update(trainer->model);
    if (status == STATUS_OK && trainer->device_updates) {
        status = model_hold(trainer->model, trainer->optimizer);
    }
    if (status == STATUS_OK && is_local_sgd) {
        status = optimizer_create(OPTIMIZER_SGD, &plain, count, &trainer->averager);
        trainer->base = memory_create_large(count * sizeof(float));
    }
    return status == STATUS_OK && is_local_sgd && trainer->base == NULL ? STATUS_NO_MEMORY : status;
}

/* When which mode rules; before anything is built that might not be needed. */
static enum status plan_phases(struct trainer *trainer)
{
    const struct job *job = trainer->job;
    char error[OPTION_ERROR_BYTES];
    if (phases_of(job, trainer->train_samples, &trainer->phases, error, sizeof(error)) !=
        STATUS_OK) {
        log_error("%s", error);
        return STATUS_INVALID;
    }
    trainer->phase = &trainer->phases.list[0];
    trainer->steps_per_epoch = job_steps_per_epoch(job, trainer->train_samples);
    trainer->step_count = job_total_steps(job, trainer->train_samples);
    return STATUS_OK;
}

static enum status create_batches(struct trainer *trainer, struct device *device,
                                  const struct dataset *train, const struct dataset *test)
{
    const struct job *job = trainer->job;
    trainer->warmup_steps = trainer->step_count / 5;
    if (trainer->warmup_steps > WARMUP_STEPS_MAX) {
        trainer->warmup_steps = WARMUP_STEPS_MAX;
    }
    if (trainer->phases.trial_count > 0) {
        trainer->warmup_steps = phases_trial_steps(job); // some with buckets that were not chosen
    }
    struct batcher_options options = {
        .batch_size = job_batch_of(job, trainer->rank),
        .global_batch = job->global_batch,
        .rank = trainer->rank,
        .world = job->workers,
        .seed = job->seed,
        .sample_count = trainer->train_samples,
        .is_local = job->shard == SAMPLE_SPLIT_LOCAL,
        .is_training = true,
        .depth = READ_AHEAD,
        .device = device,
    };
    enum status status = batcher_create(&options, train, &trainer->batcher);
    if (status != STATUS_OK) {
        return status;
    }
    options.is_training = options.is_local = false;
    options.sample_count = trainer->test_samples;
    options.depth = 1;
    return evaluator_create(&options, test, trainer->model, &trainer->evaluator);
}

/* The first `limit` samples, if there is a limit. */
static uint64_t limit_samples(uint64_t count, uint64_t limit)
{
    return limit > 0 && limit < count ? limit : count;
}

static enum status create_parts(struct trainer *trainer, struct device *device,
                                const struct dataset *train, const struct dataset *test)
{
    enum status status = plan_phases(trainer);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_model(trainer, device, train);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_batches(trainer, device, train, test);
    if (status != STATUS_OK) {
        return status;
    }
    return create_optimizers(trainer);
}

enum status trainer_create(const struct job *job, uint32_t rank, struct device *device,
                           const struct dataset *train, const struct dataset *test,
                           struct trainer **ret_trainer)
{
    struct trainer *trainer = calloc(1, sizeof(*trainer));
    if (trainer == NULL) {
        return STATUS_NO_MEMORY;
    }
    trainer->job = job;
    trainer->rank = rank;
    straggling_init(&trainer->straggling, job, rank);
    trainer->train_samples = limit_samples(train->sample_count, job->limit_train);
    trainer->test_samples = limit_samples(test->sample_count, job->limit_test);
    trainer->data_digest = dataset_digest(train, trainer->train_samples, LAYOUT_DIGEST_SEED);
    trainer->data_digest = dataset_digest(test, trainer->test_samples, trainer->data_digest);
    trainer->schedule = job_schedule(job, trainer->train_samples);
    snprintf(trainer->device, sizeof(trainer->device), "%s", device->ops->name);
    enum status status = create_parts(trainer, device, train, test);
    if (status != STATUS_OK) {
        if (status != STATUS_INVALID) { // what does not fit was said where it was found
            log_error("cannot prepare training of %s on %s: %s", job->model, job->data,
                      status_text(status));
        }
        trainer_destroy(trainer);
        return status;
    }
    *ret_trainer = trainer;
    return STATUS_OK;
}

void trainer_destroy(struct trainer *trainer)
{
    if (trainer == NULL) {
        return;
    }
    evaluator_destroy(trainer->evaluator);
    batcher_destroy(trainer->batcher);
    if (trainer->base != NULL) {
        memory_destroy_large(trainer->base,
                             model_layout(trainer->model)->value_count * sizeof(float));
    }
    free(trainer->statistics);
    model_destroy(trainer->model);
    optimizer_destroy(trainer->optimizer); // whose states the model may hold
    optimizer_destroy(trainer->averager);
    free(trainer);
}

void trainer_describe(const struct trainer *trainer, struct link_prepared *ret_prepared)
{
    *ret_prepared = (struct link_prepared){
        .layout = model_fine_layout(trainer->model),
        .params = model_params(trainer->model),
        .grads = model_grads(trainer->model),
        .region = model_region(trainer->model),
        .params_digest = trainer->digest,
        .device = trainer->device,
        .train_samples = trainer->train_samples,
        .test_samples = trainer->test_samples,
        .data_digest = trainer->data_digest,
        .parameters = model_published_count(trainer->model),
    };
}

void trainer_describe_program(const struct trainer *trainer, char *ret_text, size_t text_size)
{
    model_describe(trainer->model, ret_text, text_size);
}
