/* The loop around a shard: receive, decode, shard_receive, send. */
#include "ps-server/shard/shard_service.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/channel/member.h"
#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "common/transport/endpoints.h"
#include "ps-server/shard/codes.h"
#include "ps-server/shard/far_workers.h"
#include "ps-server/shard/frame_limit.h"
#include "ps-server/shard/shard.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS         100
#define LINGER_MS       200
#define SLOTS_BYTES_MAX (UINT64_C(1) << 30)

/* One more shard of the same server. */
struct shard_thread {
    struct shard_service_options options;
    pthread_t id;
};

struct service {
    const struct shard_service_options *options;
    struct channel *channel;
    struct member member;
    struct job job;
    uint32_t next_phase; // that the next START begins
    struct shard *shard; // of this phase; NULL before, and in a phase without servers
    struct far_workers far;

    // What workers of this host may read: the parameters, and behind them a slot for each worker's
    // answers while workers are free. Empty if there is none.
    struct region region;
    uint64_t slot_count,
        value_count; // of the slots; that the parameters, and a slot, have room for

    // Of the phases that are over.
    struct staleness staleness;
    uint64_t late_count, update_count;

    struct codes codes; // of compressed gradients

    struct shard_thread *threads; // (thread_count), owned
    uint32_t thread_count;

    // Its load.
    uint64_t started_ns, busy_ns;
    uint64_t backlog, backlog_max; // messages that came without a wait between them
};

/* Copies an answer to where it stays as it is: a worker asks again only after it has read all of
 * the last one, so each has one slot. False if there is none. */
static bool keep_answer(struct service *service, uint32_t rank, struct message *message)
{
    struct span span;
    if (service->slot_count == 0) {
        return false;
    }
    float *params = service->region.bytes;
    const float *part = shard_params(service->shard, message->bucket, &span);
    float *slot = params + (1 + rank) * service->value_count + (part - params);
    memcpy(slot, message->values, message->span.count * sizeof(float));
    message->values = slot;
    return true;
}

static void send_to_worker(void *context, uint32_t rank, const struct message *message)
{
    struct service *service = context;
    struct message answer = *message;
    codes_encode(&service->codes, &answer);
    bool is_stable = answer.code != NULL || shard_values_are_stable(service->shard) ||
                     keep_answer(service, rank, &answer);
    if (far_workers_answer(&service->far, rank, &answer, is_stable) != STATUS_OK) {
        // The coordinator decides when a worker is lost; until then this is only a fact.
        log_warn("cannot send %s: worker=%u is gone", message_kind_name(message->kind), rank);
    }
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
    uint64_t slots = job_is_unsynchronised(&service->job) ? service->job.workers : 0;
    if (slots * count * sizeof(float) > SLOTS_BYTES_MAX) {
        slots = 0; // answers are copied into messages then
    }
    enum status status = region_create((1 + slots) * count * sizeof(float), &service->region);
    if (status == STATUS_OK) {
        service->slot_count = slots;
        service->value_count = count;
        config->params = service->region.bytes;
        channel_share(service->channel, &service->region);
    }
    return status;
}

/* What a shard is to do in a phase. */
static enum status configure(const struct service *service, const struct message *start,
                             const struct phase *phase, struct shard_config *ret_config)
{
    const struct job *job = &service->job;
    bool is_local_sgd = job->sync_every > 1;
    struct shard_config config = {
        .index = service->options->index,
        .shard_count = job_shard_count(job),
        .workers = job->workers,
        .layout = *start->layout,
        .schedule = job_schedule(job, start->step),
        .optimizer = job->optimizer,
        .settings = job->settings,
        .marks = phase->marks,
        .updates_before = phase->updates_before,
        .seeds_states = start->phase > 0 && !is_local_sgd,
        .sync_every = job->sync_every,
        .backup = phase->mode.kind == MODE_PS_SYNC ? job->backup : 0,
        .keeps_epochs = job->eval == EVALUATION_EPOCH,
        .seed = job->seed,
        .has_views = job->delay_model == DELAY_MODEL_PER_WORKER,
        .gradients_per_update = job->gradients_per_update,
        .remedy = remedy_of(job->remedy),
        .remedy_lambda = (float)job->remedy_lambda,
    };
    if (config.remedy != NULL && job->remedy_lambda <= 0) {
        config.remedy_lambda = config.remedy->lambda;
    }
    if (is_local_sgd) {
        // Workers send by how much their parameters have become less: a gradient of rate 1.
        config.optimizer = OPTIMIZER_SGD;
        config.settings = (struct optimizer_settings){0};
        config.schedule = (struct schedule){.base_rate = 1, .start_rate = 1};
    }
    char why[OPTION_ERROR_BYTES];
    enum status status = consistency_find(phase->mode, &config.consistency);
    if (status == STATUS_OK) {
        status = order_parse(job->order, &config.order, why, sizeof(why));
    }
    *ret_config = config;
    return status;
}

static enum status begin_codes(struct service *service, const struct shard_config *config,
                               const struct phase *phase)
{
    return codes_begin(&service->codes, &service->job.compress, !phase->is_unsynchronised,
                       &config->layout, config->index, config->shard_count);
}

static enum status create_shard(struct service *service, const struct message *start,
                                const struct phase *phase)
{
    struct shard_config config;
    enum status status = configure(service, start, phase, &config);
    if (status == STATUS_OK) {
        status = frame_limit_check(&service->job, &config.layout, config.index);
    }
    if (status == STATUS_OK && shard_history_bytes(&config) > 0) {
        log_info("what --order %s keeps takes %.1f MiB", service->job.order,
                 (double)shard_history_bytes(&config) / (1 << 20));
    }
    if (status == STATUS_OK) {
        status = create_region(service, &config);
    }
    if (status == STATUS_OK) {
        status = begin_codes(service, &config, phase);
    }
    if (status == STATUS_OK) {
        bool is_level = !phase->is_unsynchronised && config.backup == 0;
        status = credits_begin(&service->far.credits, config.workers, config.layout.bucket_count,
                               is_level);
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

/* Adds what the shard has counted to what the phases before had. */
static void add_counts(struct service *service)
{
    if (service->shard == NULL) {
        return;
    }
    staleness_add_all(&service->staleness, shard_staleness(service->shard));
    service->late_count += shard_late_count(service->shard);
    service->update_count += shard_version(service->shard);
}

/* START: a phase begins. */
static enum status begin_phase(struct service *service, const struct message *start)
{
    struct phases phases;
    char why[OPTION_ERROR_BYTES];
    enum status status = phases_of(&service->job, start->step, &phases, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("%s", why);
        return status;
    }
    if (start->phase != service->next_phase || start->phase >= phases.count) {
        return STATUS_OK; // not due: a coordinator of ours does not send it
    }
    service->next_phase++;
    // Workers have all they need of the last phase, and read nothing of it any more.
    add_counts(service);
    shard_destroy(service->shard);
    service->shard = NULL;
    const struct phase *phase = &phases.list[start->phase];
    if (phase->mode.kind != MODE_RING) {
        status = create_shard(service, start, phase);
    }
    return status == STATUS_OK ? member_connected(&service->member) : status;
}

static enum status meet_worker(struct service *service, const struct message *hello, uint64_t peer)
{
    bool is_new;
    enum status status = callers_meet(&service->far.callers, hello, peer, &is_new);
    if (status != STATUS_OK) {
        return status;
    }
    if (hello->is_far) {
        channel_go_far(service->channel);
    }
    if (is_new && sharing_has_view(&service->channel->sharing, peer) &&
        channel_offer(service->channel, peer) != STATUS_OK) {
        log_warn("cannot answer worker=%u: it is gone", hello->rank);
    }
    return STATUS_OK;
}

/* Data of a worker. Malformed: dropped, the job is not disturbed. */
static void handle_data(struct service *service, const struct message *message,
                        struct envelope *envelope)
{
    enum status status = STATUS_MALFORMED;
    bool is_member = message->job_id == service->channel->job_id && service->shard != NULL;
    if (is_member && message->kind == MESSAGE_HELLO) {
        status = meet_worker(service, message, envelope->peer);
    } else if (is_member) {
        struct message decoded = *message;
        bool is_theirs = callers_are(&service->far.callers, message->rank, envelope->peer);
        status = is_theirs ? codes_decode(&service->codes, &decoded, envelope) : STATUS_DENIED;
        if (status == STATUS_OK && message->kind == MESSAGE_SEED) {
            codes_note_seed(&service->codes, message);
        }
        if (status == STATUS_OK) {
            status = shard_receive(service->shard, &decoded, envelope, send_to_worker, service);
        }
        if (status == STATUS_OK && message->kind == MESSAGE_PUSH) {
            far_workers_credit(&service->far, message);
        }
    }
    if (status != STATUS_OK) {
        channel_note_dropped(service->channel, envelope, message, status);
    }
}

static enum status handle(struct service *service, const struct message *message,
                          struct envelope *envelope)
{
    if (member_handle(&service->member, envelope, message)) {
        return STATUS_OK;
    }
    if (envelope->peer == service->member.coordinator) {
        return message->kind == MESSAGE_START ? begin_phase(service, message)
                                              : STATUS_OK; // GO is for workers: they speak first
    }
    handle_data(service, message, envelope);
    return STATUS_OK;
}

/* Tells the coordinator what travelled: the closing message of a server. */
static void send_done(struct service *service)
{
    struct wire_report report = {
        .bytes_sent = service->channel->bytes_sent,
        .bytes_received = service->channel->bytes_received,
        .compute_ns = service->busy_ns,
        .total_ns = clock_now_ns() - service->started_ns,
        .backlog = service->backlog_max,
    };
    add_counts(service);
    report.late = service->late_count;
    if (service->staleness.total > 0) {
        report.staleness = service->staleness.counts;
        report.staleness_bins = staleness_bins(&service->staleness);
        report.staleness_sum = service->staleness.sum;
        report.staleness_max = service->staleness.max;
    }
    struct message done = {
        .kind = MESSAGE_DONE,
        .rank = service->options->index,
        .step = service->update_count,
        .member = &service->member.self,
        .report = &report,
    };
    if (channel_send(service->channel, service->member.coordinator, &done, NULL, NULL) !=
        STATUS_OK) {
        log_warn("could not tell the coordinator that shard %u is done", service->options->index);
    }
}

/* The next message: without waiting, if there is one. Counts how many came so. */
static enum status receive(struct service *service, struct envelope *envelope,
                           struct message *message)
{
    enum status status = channel_receive(service->channel, 0, envelope, message);
    if (status == STATUS_TIMED_OUT) { // after a wake there is something else to do first
        service->backlog = 0;
        status = channel_receive(service->channel, POLL_MS, envelope, message);
    }
    service->backlog += status == STATUS_OK;
    if (service->backlog > service->backlog_max) {
        service->backlog_max = service->backlog;
    }
    return status;
}

static enum status serve(struct service *service)
{
    service->started_ns = clock_now_ns();
    while (!service->member.is_stopped) {
        if (*service->options->is_interrupted != 0) {
            member_leave(&service->member, STATUS_INTERRUPTED, "interrupted by a signal");
            return STATUS_INTERRUPTED;
        }
        uint64_t version = service->shard != NULL ? shard_version(service->shard) : 0;
        uint64_t now_ms = clock_now_ms();
        notify_alive(service->options->notify, now_ms);
        member_tick(&service->member, now_ms, version);
        if (pacer_go_on(service->far.pacer) != STATUS_OK) {
            log_warn("cannot send PARAMS: a worker is gone");
        }
        struct envelope envelope;
        struct message message;
        enum status status = receive(service, &envelope, &message);
        if (status != STATUS_OK) {
            continue;
        }
        uint64_t began_ns = clock_now_ns();
        status = handle(service, &message, &envelope);
        envelope_release(&envelope);
        service->busy_ns += clock_now_ns() - began_ns;
        if (status != STATUS_OK) {
            member_leave(&service->member, status, "the shard cannot be held");
            return status;
        }
    }
    send_done(service);
    return service->member.stop_status;
}

static enum status join(struct service *service, char *place, char *host, size_t host_size)
{
    const struct shard_service_options *options = service->options;
    gethostname(host, host_size);
    host[host_size - 1] = '\0';
    service->member = (struct member){
        .channel = service->channel,
        .self = {.role = ROLE_SERVER,
                 .has_rank = true,
                 .rank = options->index,
                 .host_id = transport_host_id(),
                 .host = host,
                 .process_id = (uint64_t)getpid(),
                 .endpoints = place},
        .notify = options->notify,
    };
    uint32_t index;
    enum status status =
        member_join(&service->member, options->coordinator, options->join_timeout_ms,
                    options->is_interrupted, &service->job, &index);
    if (status != STATUS_OK) {
        return status;
    }
    status = far_workers_create(service->channel, &service->job, &service->far);
    if (status != STATUS_OK) {
        return status;
    }
    const struct endpoints_wish wish = {.address = options->address,
                                        .port_range = options->port_range,
                                        .toward = options->coordinator};
    transport_limit_frames(service->channel->transport, frame_limit_of(&service->job));
    status = channel_listen(service->channel, service->job.transport, &wish, place);
    if (status != STATUS_OK) {
        member_leave(&service->member, status, "the data socket cannot be opened");
        return status;
    }
    return member_ready(&service->member, NULL);
}

static void *run_thread(void *data)
{
    const struct shard_service_options *options = data;
    pthread_setname_np(pthread_self(), "shard");
    if (shard_service_run(options) != STATUS_OK) {
        log_debug("shard %u has ended early", options->index); // it has said why
    }
    return NULL;
}

/* The other shards of this server: those behind its first one, which alone knows how many. */
static enum status start_threads(struct service *service)
{
    const struct job *job = &service->job;
    if (service->options->index >= job->servers || job->server_threads == 1) {
        return STATUS_OK;
    }
    service->threads = calloc(job->server_threads, sizeof(*service->threads));
    for (uint32_t i = 1; i < job->server_threads && service->threads != NULL; i++) {
        struct shard_thread *thread = &service->threads[i - 1];
        thread->options = *service->options;
        thread->options.index += i * job->servers;
        thread->options.notify = NULL; // the first one speaks for all
        if (pthread_create(&thread->id, NULL, run_thread, &thread->options) != 0) {
            break;
        }
        service->thread_count++;
    }
    if (service->thread_count + 1 < job->server_threads) {
        member_leave(&service->member, STATUS_NO_MEMORY, "it cannot start all of its threads");
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static void join_threads(struct service *service)
{
    for (uint32_t i = 0; i < service->thread_count; i++) {
        pthread_join(service->threads[i].id, NULL);
    }
    free(service->threads);
}

enum status shard_service_run(const struct shard_service_options *options)
{
    struct service service = {.options = options};
    char place[ENDPOINTS_PLACE_BYTES] = "", host[256];
    enum status status = channel_create(&service.channel);
    if (status != STATUS_OK) {
        return status;
    }
    status = channel_secure(service.channel, options->security);
    if (status == STATUS_OK) {
        status = join(&service, place, host, sizeof(host));
    }
    if (status == STATUS_OK) {
        status = start_threads(&service);
    }
    if (status == STATUS_OK) {
        log_info("shard %u of %u: listening at %s", options->index, job_shard_count(&service.job),
                 place);
        char said[64];
        snprintf(said, sizeof(said), "joined as shard %u of %u", options->index,
                 job_shard_count(&service.job));
        notify_ready(options->notify, said);
        status = serve(&service);
    }
    // Its messages read the shard's parameters, and the shard may hold some that came.
    channel_close(service.channel, LINGER_MS);
    join_threads(&service);
    shard_destroy(service.shard);
    codes_finish(&service.codes);
    channel_destroy(service.channel, 0);
    region_destroy(&service.region);
    far_workers_destroy(&service.far);
    return status;
}
