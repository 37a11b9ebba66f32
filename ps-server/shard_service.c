/* The loop around a shard: receive, decode, shard_receive, send. */
#include "ps-server/shard_service.h"

#include "common/clock.h"
#include "common/endpoints.h"
#include "common/log.h"
#include "common/member.h"
#include "ps-server/shard.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS   100
#define LINGER_MS 200

struct service {
    const struct shard_service_options *options;
    struct channel *channel;
    struct member member;
    struct job job;
    struct shard *shard;  // NULL until START
    struct region region; // its parameters, if workers of this host may read them; or empty
    uint64_t *peers;      // (workers) where each worker's HELLO came from; 0: not yet
};

static void send_to_worker(void *context, uint32_t rank, const struct message *message)
{
    struct service *service = context;
    bool is_stable = shard_values_are_stable(service->shard);
    if (channel_send(service->channel, service->peers[rank], message,
                     is_stable ? payload_keep : NULL, NULL) != STATUS_OK) {
        // The coordinator decides when a worker is lost; until then this is only a fact.
        log_warn("cannot send %s: worker=%u is gone", message_kind_name(message->kind), rank);
    }
}

/* Where the parameters lie, if workers of this host may read them there. */
static enum status create_region(struct service *service, struct shard_config *config)
{
    uint64_t count = shard_value_count(config);
    if (!endpoints_may_share(service->job.transport) || count == 0) {
        return STATUS_OK;
    }
    enum status status = region_create(count * sizeof(float), &service->region);
    if (status == STATUS_OK) {
        config->params = service->region.bytes;
        channel_share(service->channel, &service->region);
    }
    return status;
}

/* Capped, not wrapped: the counts may come from a peer. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static enum status create_shard(struct service *service, const struct message *start)
{
    const struct job *job = &service->job;
    struct shard_config config = {
        .index = service->options->index,
        .shard_count = job->servers,
        .workers = job->workers,
        .layout = *start->layout,
        .schedule = job_schedule(job, start->step),
        .optimizer = job->optimizer,
        .settings = job->settings,
        .seed = job->seed,
        .gradient_total = times(job_total_steps(job, start->step), job->workers),
        .epoch_gradients = times(job_steps_per_epoch(job, start->step), job->workers),
        .keeps_epochs = strcmp(job->eval, "epoch") == 0,
        .gradients_per_update = job->gradients_per_update,
        .remedy_lambda = (float)job->remedy_lambda,
    };
    char why[OPTION_ERROR_BYTES];
    enum status status = consistency_find(job->mode, &config.consistency);
    if (status == STATUS_OK) {
        status = remedy_find(job->remedy, &config.remedy);
    }
    if (status == STATUS_OK && config.remedy != NULL && job->remedy_lambda <= 0) {
        config.remedy_lambda = config.remedy->lambda;
    }
    if (status == STATUS_OK) {
        status = order_parse(job->order, &config.order, why, sizeof(why));
    }
    if (status == STATUS_OK && config.epoch_gradients == 0) {
        status = STATUS_INVALID; // fewer samples than a global batch: workers have refused it
    }
    if (status == STATUS_OK && shard_history_bytes(&config) > 0) {
        log_info("older versions for --order %s take %.1f MiB", job->order,
                 (double)shard_history_bytes(&config) / (1 << 20));
    }
    if (status == STATUS_OK) {
        status = create_region(service, &config);
    }
    if (status == STATUS_OK) {
        status = shard_create(&config, &service->shard);
    }
    if (status != STATUS_OK) {
        log_error("cannot hold shard %u of %u: %s", config.index, config.shard_count,
                  status_text(status));
        return status;
    }
    return member_connected(&service->member);
}

/* Data of a worker. Malformed: dropped, the job is not disturbed. */
static void handle_data(struct service *service, const struct message *message,
                        struct envelope *envelope)
{
    enum status status = STATUS_MALFORMED;
    bool is_member = message->job_id == service->channel->job_id &&
                     message->rank < service->job.workers && service->shard != NULL;
    if (is_member && message->kind == MESSAGE_HELLO) {
        service->peers[message->rank] = envelope->peer;
        if (sharing_has_view(&service->channel->sharing, envelope->peer) &&
            channel_offer(service->channel, envelope->peer) != STATUS_OK) {
            log_warn("cannot answer worker=%u: it is gone", message->rank);
        }
        return;
    }
    if (is_member && service->peers[message->rank] == envelope->peer) {
        status = shard_receive(service->shard, message, envelope, send_to_worker, service);
    }
    if (status != STATUS_OK) {
        log_warn("dropped a %s that does not fit: rank=%u step=%llu bucket=%u",
                 message_kind_name(message->kind), message->rank, (unsigned long long)message->step,
                 message->bucket);
    }
}

static enum status handle(struct service *service, const struct message *message,
                          struct envelope *envelope)
{
    if (member_handle(&service->member, envelope, message)) {
        return STATUS_OK;
    }
    if (envelope->peer == service->member.coordinator) {
        return message->kind == MESSAGE_START && service->shard == NULL
                   ? create_shard(service, message)
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
    };
    if (service->shard != NULL && shard_staleness(service->shard)->total > 0) {
        const struct staleness *staleness = shard_staleness(service->shard);
        report.staleness = staleness->counts;
        report.staleness_bins = staleness_bins(staleness);
        report.late = shard_late_count(service->shard);
    }
    struct message done = {
        .kind = MESSAGE_DONE,
        .rank = service->options->index,
        .step = service->shard != NULL ? shard_version(service->shard) : 0,
        .member = &service->member.self,
        .report = &report,
    };
    if (channel_send(service->channel, service->member.coordinator, &done, NULL, NULL) !=
        STATUS_OK) {
        log_warn("could not tell the coordinator that shard %u is done", service->options->index);
    }
}

static enum status serve(struct service *service)
{
    while (!service->member.is_stopped) {
        if (*service->options->is_interrupted != 0) {
            member_leave(&service->member, STATUS_INTERRUPTED, "interrupted by a signal");
            return STATUS_INTERRUPTED;
        }
        uint64_t version = service->shard != NULL ? shard_version(service->shard) : 0;
        member_tick(&service->member, clock_now_ms(), version);
        struct envelope envelope;
        struct message message;
        enum status status = channel_receive(service->channel, POLL_MS, &envelope, &message);
        if (status != STATUS_OK) {
            continue;
        }
        status = handle(service, &message, &envelope);
        envelope_release(&envelope);
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
    };
    uint32_t index;
    enum status status =
        member_join(&service->member, options->coordinator, options->join_timeout_ms,
                    options->is_interrupted, &service->job, &index);
    if (status != STATUS_OK) {
        return status;
    }
    service->peers = calloc(service->job.workers, sizeof(*service->peers));
    if (service->peers == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = endpoints_bind(service->channel->transport, service->job.transport, options->address,
                            place);
    if (status != STATUS_OK) {
        member_leave(&service->member, status, "the data socket cannot be opened");
        return status;
    }
    return member_ready(&service->member, NULL);
}

enum status shard_service_run(const struct shard_service_options *options)
{
    struct service service = {.options = options};
    char place[ENDPOINTS_PLACE_BYTES] = "", host[256];
    enum status status = channel_create(&service.channel);
    if (status != STATUS_OK) {
        return status;
    }
    status = join(&service, place, host, sizeof(host));
    if (status == STATUS_OK) {
        log_info("shard %u of %u: listening at %s", options->index, service.job.servers, place);
        status = serve(&service);
    }
    // Its messages read the shard's parameters, and the shard may hold some that came.
    channel_close(service.channel, LINGER_MS);
    shard_destroy(service.shard);
    channel_destroy(service.channel, 0);
    region_destroy(&service.region);
    free(service.peers);
    return status;
}
