/* Creates the trainer, and runs the phases of a job one after the other. */
#include "worker/train/trainer.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "common/transport/endpoints.h"
#include "worker/link/outbox.h"
#include "worker/train/device_sums.h"
#include "worker/train/job_model.h"
#include "worker/train/trainer_state.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Steps that the job's speed leaves out: at most so many, at most a fifth of all; and trials.
#define WARMUP_STEPS_MAX 10

/* What comes between two steps, or turns. `step` counts those that were made. */
static enum status follow_turn(struct trainer *trainer, struct link *link, uint64_t step)
{
    uint64_t began_ns = trace_enter(trainer->clock.trace, TRACE_AFTER_STEP, TRACE_NO_BUCKET);
    enum status status = trainer_after_step(trainer, link, step);
    trace_leave(trainer->clock.trace, began_ns,
                &(struct trace_tag){.kind = TRACE_AFTER_STEP,
                                    .bucket = TRACE_NO_BUCKET,
                                    .step = trainer->clock.step});
    return status;
}

/* A step, or a turn of one: what follows it, and the checkpoint behind a step that is whole. */
static enum status train_turn(struct trainer *trainer, struct link *link, uint64_t *step)
{
    uint64_t started_ns = clock_now_ns();
    struct step_times times;
    enum status status = trainer_step(trainer, *step, &times);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t turn_ns = clock_now_ns() - started_ns;
    bool is_whole = trainer->turn + 1 == exchange_turns(trainer->exchange);
    trainer_count_step(trainer, *step, &times, turn_ns);
    trainer->turns_ns += turn_ns;
    *step += is_whole;
    status = follow_turn(trainer, link, *step);
    trainer->turn = is_whole ? 0 : trainer->turn + 1;
    if (status != STATUS_OK || !is_whole) {
        return status;
    }
    trial_add(&trainer->trial, trainer->turns_ns, trainer->round_steps == 0);
    trainer->turns_ns = 0;
    return trainer_checkpoint_after_step(trainer, link, *step);
}

/* All steps of a phase. *step counts those of the job that were made. */
static enum status train_phase(struct trainer *trainer, struct link *link, uint64_t *step)
{
    trainer->round_steps = 0;
    trainer->marks_closed = phase_marks_before(trainer->phase);
    trainer->round = phase_rounds_before(trainer->phase, trainer->job->sync_every) *
                     exchange_turns(trainer->exchange);
    trainer->turn = 0;
    trainer->turns_ns = 0;
    trainer->trial = (struct trial){0};
    enum status status = device_sums_meet(trainer);
    if (status != STATUS_OK) {
        return status;
    }
    status = trainer_checkpoint_begin_phase(trainer, link);
    if (status != STATUS_OK) {
        return status;
    }
    status = trainer_before_steps(trainer, link, *step);
    while (status == STATUS_OK && !trainer_phase_is_over(trainer, *step)) {
        status = train_turn(trainer, link, step);
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
    return slices_seek(&trainer->slices, first / trainer->steps_per_epoch,
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
    uint64_t step = trainer->checkpoint.begin_step;
    enum status status = train(trainer, link, &step);
    if (status == STATUS_OK) {
        status = trainer_checkpoint_end(trainer, link);
    }
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

static enum status create_model(struct trainer *trainer, struct device *device,
                                const struct dataset *train)
{
    const struct job *job = trainer->job;
    struct model_options options =
        job_model_options(job, job_batch_max(job), device, train, &trainer->source);
    options.gradient_count = carriers_gradient_count(job, trainer->ranks.count);
    trainer->takes_bytes = options.source != NULL;
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
        trainer->statistics =
            calloc(trainer->ranks.count * statistics, sizeof(*trainer->statistics));
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
    enum status status;
    // Also to carry states from one phase to the next.
    if (is_local_sgd || trainer->phases.count > 1 ||
        exchange_of(job->mode.kind)->delivers == EXCHANGE_GRADIENTS) {
        status = optimizer_create(job->optimizer, &job->settings, count, &trainer->optimizer);
        if (status != STATUS_OK) {
            return status;
        }
    }
    trainer->device_updates = makes_updates(trainer) && model_may_update(trainer->model);
    if (trainer->device_updates) {
        status = model_hold(trainer->model, trainer->optimizer);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (!is_local_sgd) {
        return STATUS_OK;
    }
    trainer->base = memory_create_large(count * sizeof(float));
    return trainer->base != NULL
               ? optimizer_create(OPTIMIZER_SGD, &plain, count, &trainer->averager)
               : STATUS_NO_MEMORY;
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
    faulting_init(&trainer->faulting, job, trainer->ranks);
    if (faults_check_phases(&trainer->faulting.faults, &trainer->phases, error, sizeof(error)) !=
        STATUS_OK) {
        log_error("%s", error);
        return STATUS_INVALID;
    }
    trainer->phase = &trainer->phases.list[0];
    trainer->steps_per_epoch = job_steps_per_epoch(job, trainer->train_samples);
    trainer->step_count = job_total_steps(job, trainer->train_samples);
    return STATUS_OK;
}

/* Steps whose time does not count. */
static void plan_warmup(struct trainer *trainer)
{
    trainer->warmup_steps = trainer->step_count / 5;
    if (trainer->warmup_steps > WARMUP_STEPS_MAX) {
        trainer->warmup_steps = WARMUP_STEPS_MAX;
    }
    if (trainer->phases.trial_count > 0) {
        // Some with buckets that were not chosen.
        trainer->warmup_steps = phases_trial_steps(trainer->job);
    }
}

static enum status create_slices(struct trainer *trainer, const struct trainer_tools *tools)
{
    const struct slices_sources sources = {
        .job = trainer->job,
        .ranks = trainer->ranks,
        .train = tools->train,
        .test = tools->test,
        .trace = tools->trace,
        .train_samples = trainer->train_samples,
        .test_samples = trainer->test_samples,
        .model = trainer->model,
        .device = tools->device,
        .takes_bytes = trainer->takes_bytes,
    };
    return slices_init(&trainer->slices, &sources);
}

/* The first `limit` samples, if there is a limit. */
static uint64_t limit_samples(uint64_t count, uint64_t limit)
{
    return limit > 0 && limit < count ? limit : count;
}

/* For servers that keep parameters on a GPU, and take gradients there. */
static enum status expose_model(struct trainer *trainer)
{
    static const struct device_options options = {.threads = 1};
    struct program_exposed *exposed = &trainer->exposed;
    struct vector_device *vectors = NULL;
    char name[32];
    enum status status = model_expose(trainer->model, exposed);
    if (status != STATUS_OK) {
        return status;
    }
    snprintf(name, sizeof(name), "cuda:%u", exposed->gpu);
    status = device_open_vectors(name, &options, &vectors);
    if (status != STATUS_OK) {
        return status;
    }
    trainer->device_memory.vectors = vectors;
    trainer->exposed_region =
        (struct region){.key = {.size = exposed->size}, .bytes = exposed->memory};
    status =
        vectors->ops->share(vectors, exposed->memory, exposed->size, trainer->device_memory.share);
    if (status == STATUS_UNSUPPORTED) {
        log_error("processes of this host cannot share the memory of its GPUs: use --server-device "
                  "host");
    }
    return status;
}

/* For the GPUs of others, by NCCL. */
static enum status introduce_device(struct trainer *trainer, struct device *device)
{
    struct device_introduction introduction;
    struct wire_nccl *nccl = &trainer->nccl;
    bool is_first = trainer->ranks.first == 0;
    enum status status = device_introduce(device, is_first, &introduction);
    if (status != STATUS_OK) {
        return status;
    }
    *nccl =
        (struct wire_nccl){.version = introduction.version, .has_id = is_first, .has_gpu = true};
    memcpy(nccl->gpu, introduction.gpu, sizeof(nccl->gpu));
    memcpy(nccl->id, introduction.id, sizeof(nccl->id));
    return STATUS_OK;
}

static enum status create_parts(struct trainer *trainer, const struct trainer_tools *tools)
{
    const struct trace_window window = job_timeline(trainer->job);
    enum status status = dataset_digest(tools->train, trainer->train_samples, tools->test,
                                        trainer->test_samples, &trainer->data_digest);
    if (status == STATUS_OK) {
        status = plan_phases(trainer);
    }
    if (status == STATUS_OK && job_has_nccl(trainer->job)) {
        status = introduce_device(trainer, tools->device);
    }
    if (status != STATUS_OK) {
        return status;
    }
    plan_warmup(trainer);
    status = trace_open_tape(tools->trace, TRACE_COMPUTE, trainer->ranks.first, &window,
                             &trainer->clock.trace);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_model(trainer, tools->device, tools->train);
    if (status != STATUS_OK) {
        return status;
    }
    status = stream_tapes_open(&trainer->streams, tools->trace, trainer->model,
                               trainer->ranks.first, &window);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_slices(trainer, tools);
    if (status != STATUS_OK) {
        return status;
    }
    trainer->device_of_sums = device_sums(trainer->model);
    status = create_optimizers(trainer);
    return status == STATUS_OK && job_has_gpu_servers(trainer->job) ? expose_model(trainer)
                                                                    : status;
}

enum status trainer_create(const struct job *job, struct rank_block ranks,
                           const struct trainer_tools *tools, struct trainer **ret_trainer)
{
    struct trainer *trainer = calloc(1, sizeof(*trainer));
    if (trainer == NULL) {
        return STATUS_NO_MEMORY;
    }
    trainer->job = job;
    trainer->ranks = ranks;
    trainer->trace = tools->trace;
    trainer->train_samples = limit_samples(tools->train->sample_count, job->limit_train);
    trainer->test_samples = limit_samples(tools->test->sample_count, job->limit_test);
    trainer->schedule = job_schedule(job, trainer->train_samples);
    snprintf(trainer->device, sizeof(trainer->device), "%s", tools->device->ops->name);
    enum status status = create_parts(trainer, tools);
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
    slices_finish(&trainer->slices);
    if (trainer->base != NULL) {
        memory_destroy_large(trainer->base,
                             model_layout(trainer->model)->value_count * sizeof(float));
    }
    if (trainer->device_memory.vectors != NULL) {
        trainer->device_memory.vectors->ops->close(trainer->device_memory.vectors);
    }
    free(trainer->statistics);
    trainer_checkpoint_finish(trainer);
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
        .vectors = model_gradients(trainer->model),
        .region = model_region(trainer->model),
        .params_digest = trainer->digest,
        .device = trainer->device,
        .train_samples = trainer->train_samples,
        .test_samples = trainer->test_samples,
        .data_digest = trainer->data_digest,
        .parameters = model_published_count(trainer->model),
        .nccl = job_has_nccl(trainer->job) ? &trainer->nccl : NULL,
        .trace = trainer->trace,
    };
    if (trainer->device_memory.vectors != NULL) {
        ret_prepared->params = trainer->exposed.params;
        ret_prepared->grads = trainer->exposed.grads;
        ret_prepared->vectors = &trainer->exposed.grads;
        ret_prepared->region = &trainer->exposed_region;
        ret_prepared->device_memory = &trainer->device_memory;
    }
}

void trainer_describe_program(const struct trainer *trainer, char *ret_text, size_t text_size)
{
    model_describe(trainer->model, ret_text, text_size);
}
