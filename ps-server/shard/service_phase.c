/* Makes the shard of a phase: what it is to do, where its parameters lie, and what strikes it. */
#include "common/base/log.h"
#include "common/base/number.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/job/job_text.h"
#include "common/job/phases.h"
#include "common/service/job_memory.h"
#include "common/service/strike.h"
#include "common/transport/endpoints.h"
#include "common/vector/vector_device.h"
#include "ps-server/shard/frame_limit.h"
#include "ps-server/shard/service_state.h"
#include "ps-server/shard/shard_checkpoint.h"
#include "worker/device/device.h"

#include <stdio.h>

/* The same on a GPU, where workers have to read them. */
static enum status create_on_gpu(struct service *service, uint64_t count, uint64_t answers,
                                 struct shard_config *config)
{
    const struct device_options options = {.threads = 1, .local_rank = service->index};
    size_t size = (1 + answers) * count * sizeof(float);
    float *memory;
    enum status status =
        device_open_vectors(service->job.server_device, &options, &service->vectors);
    if (status != STATUS_OK) {
        return status;
    }
    struct vector_device *vectors = service->vectors;
    status = vectors->ops->create(vectors, size / sizeof(float), &memory);
    if (status != STATUS_OK) {
        return status;
    }
    service->region = (struct region){.key = {.size = size}, .bytes = memory};
    service->answer_count = answers;
    service->value_count = count;
    service->device.vectors = vectors;
    config->params = memory;
    config->device = vectors;
    channel_share_device(service->channel, &service->region, &service->device);
    return vectors->ops->share(vectors, memory, size, service->device.share);
}

void service_free_region(struct service *service)
{
    struct vector_device *vectors = service->vectors;
    if (vectors == NULL) {
        region_destroy(&service->region);
        return;
    }
    vectors->ops->destroy(vectors, service->region.bytes);
    vectors->ops->close(vectors);
}

/* Where the parameters lie, if workers of this host may read them there. */
static enum status create_region(struct service *service, struct shard_config *config)
{
    const struct layout *layout = &config->layout;
    if (!endpoints_may_share(service->job.transport) || shard_value_count(config) == 0) {
        return STATUS_OK;
    }
    config->params = service->region.bytes;
    if (config->params != NULL) {
        // Of an earlier phase, which nobody reads any more.
        return shard_value_count(config) <= service->value_count ? STATUS_OK : STATUS_MALFORMED;
    }
    // Later phases may have fewer buckets (--bucket-mb auto): a shard has up to a float more than
    // its share of each.
    uint64_t count = layout->value_count / config->shard_count + layout->bucket_count;
    uint64_t answers = job_is_unsynchronised(&service->job) ? service->job.workers : 0;
    if (job_has_gpu_servers(&service->job)) {
        return create_on_gpu(service, count, answers, config);
    }
    if (answers * count * sizeof(float) > JOB_MEMORY_ANSWERS_MAX) {
        answers = 0; // they are copied into messages then
    }
    enum status status = region_create((1 + answers) * count * sizeof(float), &service->region);
    if (status == STATUS_OK) {
        service->answer_count = answers;
        service->value_count = count;
        config->params = service->region.bytes;
        channel_share(service->channel, &service->region);
    }
    return status;
}

/* What a shard is to do in a phase. */
static enum status configure(const struct service *service, const struct message *message,
                             const struct phase *phase, struct shard_config *ret_config)
{
    const struct job *job = &service->job;
    bool is_local_sgd = job->sync_every > 1;
    bool goes_on = job_may_commit(job) && phase->begin > 0;
    bool makes_updates = job_servers_update(job);
    struct shard_config config = {
        .index = service->index,
        .shard_count = job_shard_count(job),
        .workers = job->workers,
        .processes = job_carriers(job).processes,
        .left_out = job->left_out,
        .layout = *message->layout,
        .schedule = job_schedule(job, message->start->train_samples),
        .optimizer = job->optimizer,
        .settings = job->settings,
        .groups = message->groups,
        .marks = phase->marks,
        .updates_before = phase->updates_before,
        .seeds_states = (message->start->phase > 0 || goes_on) && !is_local_sgd && makes_updates,
        .tells_states = job_may_commit(job) && makes_updates,
        .hands_back_means = !makes_updates,
        .sync_every = job->sync_every,
        .backup = phase->mode.kind == MODE_PS_SYNC ? job->backup : 0,
        .keeps_marks = job->eval == EVALUATION_EPOCH,
        .seed = job->seed,
        .has_views = job->delay_model == DELAY_MODEL_PER_WORKER,
        .gradients_per_update = job->gradients_per_update,
        .remedy = remedy_of(job->remedy),
        .remedy_lambda = (float)job->remedy_lambda,
    };
    if (is_local_sgd || !makes_updates) {
        // Workers send by how much their parameters have become less: a gradient of rate 1. Where
        // they get the mean back, nothing is applied at all.
        config.optimizer = OPTIMIZER_SGD;
        config.settings = (struct optimizer_settings){0};
        config.groups = NULL;
        config.schedule = (struct schedule){.base_rate = 1, .start_rate = 1};
    }
    if (config.remedy != NULL && job->remedy_lambda <= 0) {
        config.remedy_lambda = config.remedy->lambda;
    }
    *ret_config = config;
    char why[OPTION_ERROR_BYTES];
    enum status status = consistency_find(phase->mode, &ret_config->consistency);
    if (status != STATUS_OK) {
        return status;
    }
    return order_parse(job->order, &ret_config->order, why, sizeof(why));
}

static enum status begin_encoder(struct service *service, const struct shard_config *config,
                                 const struct phase *phase)
{
    enum encoded_answers answers = phase->is_unsynchronised   ? ANSWERS_PLAIN
                                   : config->hands_back_means ? ANSWERS_MEANS
                                                              : ANSWERS_CHANGES;
    return answer_encoder_begin(&service->answer_encoder, &service->job.compress, answers,
                                &config->layout, config->index, config->shard_count);
}

/* Everything that a phase needs besides its shard. */
static enum status prepare(struct service *service, const struct phase *phase,
                           struct shard_config *config)
{
    enum status status = frame_limit_check(&service->job, &config->layout, config->index);
    if (status != STATUS_OK) {
        return status;
    }
    if (shard_history_bytes(config) > 0) {
        char size[NUMBER_SIZE_BYTES];
        number_describe_size(shard_history_bytes(config), size);
        log_info("what --order %s keeps takes %s", service->job.order, size);
    }
    status = create_region(service, config);
    if (status != STATUS_OK) {
        return status;
    }
    status = begin_encoder(service, config, phase);
    if (status != STATUS_OK) {
        return status;
    }
    far_workers_begin_phase(&service->far);
    bool is_level = !phase->is_unsynchronised && config->backup == 0;
    return credits_begin(&service->far.credits, config->workers, config->layout.bucket_count,
                         is_level);
}

static enum status create_shard(struct service *service, const struct message *message,
                                const struct phase *phase, bool is_resumed)
{
    struct shard_config config;
    enum status status = configure(service, message, phase, &config);
    config.is_restored = is_resumed;
    config.watch = service_watch(service);
    config.rounds_before = phase_rounds_before(phase, service->job.sync_every);
    if (status == STATUS_OK && is_resumed && service->member.is_in_place) {
        status = kept_shard_ahead(service->options->kept, phase->begin, config.workers,
                                  &config.gradients_ahead);
    }
    if (status == STATUS_OK) {
        status = prepare(service, phase, &config);
    }
    if (status == STATUS_OK) {
        status = shard_create(&config, &service->shard);
    }
    if (status != STATUS_OK) {
        log_error("cannot hold shard %u of %u: %s", config.index, config.shard_count,
                  status_text(status));
    }
    return status;
}

void service_add_counts(struct service *service)
{
    if (service->shard == NULL) {
        return;
    }
    staleness_add_all(&service->staleness, shard_staleness(service->shard));
    service->late_count += shard_late_count(service->shard);
    service->update_count += shard_version(service->shard);
}

/* A job that was resumed: the phases as they are cut then. *ret_is_resumed: the one that begins is
 * where it goes on. */
static enum status resume(struct service *service, struct phases *phases, bool *ret_is_resumed)
{
    uint32_t index;
    enum status status = phases_resume(&service->job, phases, service->member.begin_step, &index);
    if (status == STATUS_OK && service->next_phase < index) {
        service->next_phase = index;
    }
    *ret_is_resumed = status == STATUS_OK && service->next_phase == index;
    return status;
}

/* Of a program that commits: the phase, which is the only one, begins where the program goes on.
 * Its processes may have been others before, so how many updates each step was is not known where
 * each gradient is one; as many as now, says this. */
static void begin_at(const struct job *job, uint64_t step, struct phase *phase)
{
    uint64_t of_each = mode_updates_on_push(phase->mode.kind) ? job->workers : 1;
    if (step > phase->marks.end) {
        step = phase->marks.end; // no coordinator of ours says so
    }
    phase->marks.first = phase->begin = step;
    phase->updates_before = step * of_each;
}

/* The first fault behind a step, if this phase comes to it. */
static void await_fault(struct service *service, uint64_t step)
{
    struct service_fault *of = &service->fault;
    const struct fault_seat seat = {.place = FAULT_AT_SHARD, .number = service->index};
    const struct shard_config *config = shard_config(service->shard);
    of->next = faults_next(&of->faults, &seat, step);
    if (of->next != NULL && shard_checkpoint_count(config, of->next->step) == UINT64_MAX) {
        of->next = NULL; // a later phase does
    }
}

static void begin_faults(struct service *service, const struct phase *phase)
{
    struct service_fault *of = &service->fault;
    of->faults = faults_of(&service->job);
    of->next = NULL;
    if (service->shard != NULL) {
        await_fault(service, phase->begin);
    }
}

enum status service_strike(struct service *service)
{
    const struct fault *fault = service->fault.next;
    if (service->shard == NULL || fault == NULL ||
        !shard_checkpoint_is_reached(
            service->shard, shard_checkpoint_count(shard_config(service->shard), fault->step))) {
        return STATUS_OK;
    }
    enum status status = strike_fault(fault, "server");
    await_fault(service, fault->step);
    return status;
}

/* Takes the optimizer that a program of its own has said, and looks at the groups of its
 * parameters.
 */
static enum status take_optimizer(struct service *service, const struct message *start)
{
    char why[OPTION_ERROR_BYTES];
    const char *text = start->text;
    enum status status = STATUS_OK;
    if (job_is_external(&service->job) && text != NULL && text[0] != '\0' &&
        service->next_phase == 0) {
        status = job_take_optimizer(&service->job, text, why, sizeof(why));
    }
    if (status == STATUS_OK && start->groups != NULL &&
        !optimizer_groups_are_valid(start->groups, service->job.optimizer,
                                    start->layout->value_count)) {
        snprintf(why, sizeof(why), "the groups of parameters are not those of the model");
        status = STATUS_INVALID;
    }
    if (status != STATUS_OK) {
        log_error("%s", why);
    }
    return status;
}

enum status service_begin_phase(struct service *service, const struct message *message)
{
    struct phases phases;
    char why[OPTION_ERROR_BYTES];
    enum status status = take_optimizer(service, message);
    if (status != STATUS_OK) {
        return status;
    }
    status = phases_of(&service->job, message->start->train_samples, &phases, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("%s", why);
        return status;
    }
    bool is_resumed = false;
    if (service->member.begin_step > 0) {
        status = resume(service, &phases, &is_resumed);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (message->start->phase != service->next_phase || message->start->phase >= phases.count) {
        return STATUS_OK; // not due: a coordinator of ours does not send it
    }
    service->next_phase++;
    service->is_running = false;
    service->begin_step = message->step;
    // Workers have all they need of the last phase, and read nothing of it any more.
    service_add_counts(service);
    shard_destroy(service->shard);
    service->shard = NULL;
    struct phase *phase = &phases.list[message->start->phase];
    if (job_may_commit(&service->job)) {
        begin_at(&service->job, message->step, phase);
    }
    trace_begin_phase(service->channel->trace, phase->begin, service->job.sync_every);
    if (phase->mode.kind != MODE_RING) {
        status = create_shard(service, message, phase, is_resumed);
    }
    bool is_ready = true;
    if (status == STATUS_OK) {
        begin_faults(service, phase);
        status = service_checkpoint_begin(service, message->start->train_samples,
                                          message->start->phase, &is_ready);
    }
    return status == STATUS_OK && is_ready ? member_connected(&service->member) : status;
}
