/* Creates a trainer: plans its job, and builds the model, the slices and the optimizers. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "worker/train/device_sums.h"
#include "worker/train/job_model.h"
#include "worker/train/trainer.h"
#include "worker/train/trainer_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Steps that the job's speed leaves out: at most so many, at most a fifth of all; and trials.
#define WARMUP_STEPS_MAX 10

// NOLINTNEXTLINE(misc-redundant-expression): two limits that have to agree.
static_assert(DATASET_CLASS_TEXT_BYTES <= WIRE_CLASSES_BYTES,
              "names of classes go to the coordinator");

static enum status create_model(struct trainer *trainer, struct device *device,
                                const struct dataset *train)
{
    const struct job *job = trainer->job;
    struct model_options options =
        job_model_options(job, job_batch_max(job), device, train, &trainer->source);
    options.gradient_count = carriers_gradient_count(job, trainer->ranks.count);
    if (job_has_gpu_servers(job)) { // they take all of them where the last one's are
        options.kept_count = options.gradient_count - 1;
        options.gradient_count = 1;
    }
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
        .loaders = tools->loaders,
    };
    trainer->loaders = tools->loaders;
    return slices_init(&trainer->slices, &sources);
}

/* The first `limit` samples, if there is a limit. */
static uint64_t limit_samples(uint64_t count, uint64_t limit)
{
    return limit > 0 && limit < count ? limit : count;
}

static void list_exposed_gradients(struct trainer *trainer)
{
    const struct program_exposed *exposed = &trainer->exposed;
    uint32_t count = carriers_gradient_count(trainer->job, trainer->ranks.count);
    assert(count <= JOB_GPU_SERVER_WORKERS_MAX);
    for (uint32_t i = 0; i + 1 < count; i++) {
        trainer->exposed_gradients[i] = exposed->kept + i * exposed->kept_stride;
    }
    trainer->exposed_gradients[count - 1] = exposed->grads;
}

enum status trainer_keep_gradients(struct trainer *trainer, uint32_t index)
{
    struct vector_device *vectors = trainer->device_memory.vectors;
    if (vectors == NULL) {
        model_keep_gradients(trainer->model, index);
        return STATUS_OK;
    }
    enum status status =
        vectors->ops->copy(vectors, trainer->exposed_gradients[index], trainer->exposed.grads,
                           model_layout(trainer->model)->value_count);
    return status == STATUS_OK ? vectors->ops->wait(vectors) : status;
}

enum status trainer_expose(struct trainer *trainer)
{
    static const struct device_options options = {.threads = 1};
    struct program_exposed *exposed = &trainer->exposed;
    struct vector_device *vectors = NULL;
    char name[32];
    if (!job_has_gpu_servers(trainer->job)) {
        return STATUS_OK;
    }
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
    list_exposed_gradients(trainer);
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
    layer_times_open(&trainer->layers, tools->trace, trainer->clock.trace, trainer->model);
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
    return create_optimizers(trainer);
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
    trainer->train_samples = job_train_samples(job, tools->train->sample_count);
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
