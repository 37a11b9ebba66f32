/* The communication thread: joins, waits, starts, then moves messages until the end. */
#include "common/clock.h"
#include "common/log.h"
#include "worker/link_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS 100

static enum link_phase phase_of(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    enum link_phase phase = link->phase;
    pthread_mutex_unlock(&link->mutex);
    return phase;
}

static void set_phase(struct link *link, enum link_phase phase)
{
    pthread_mutex_lock(&link->mutex);
    link->phase = phase;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->mutex);
}

/* The exchange failed in this process; the trainer finds out at its next wait. */
static void note_exchange(struct link *link, enum status status)
{
    if (status != STATUS_OK && status != STATUS_MALFORMED) {
        log_error("a neighbour cannot be reached: %s", status_text(status));
        exchange_stop(link->exchange, status);
    }
}

static void run_ready(struct link *link)
{
    for (;;) {
        pthread_mutex_lock(&link->mutex);
        bool has_bucket = link->ready_count > 0;
        uint32_t bucket = link->ready[link->ready_head];
        if (has_bucket) {
            link->ready_head = (link->ready_head + 1) % LAYOUT_BUCKETS_MAX;
            link->ready_count--;
        }
        pthread_mutex_unlock(&link->mutex);
        if (!has_bucket) {
            return;
        }
        note_exchange(link, exchange_run_ready(link->exchange, bucket));
    }
}

static void deliver(struct link *link, const struct message *message, struct envelope *envelope)
{
    enum status status = STATUS_MALFORMED;
    if (link->exchange != NULL && message->job_id == link->channel->job_id) {
        status = exchange_deliver(link->exchange, message, envelope);
        note_exchange(link, status);
    }
    if (status == STATUS_MALFORMED) {
        log_warn("dropped a %s that does not fit: rank=%u step=%llu bucket=%u",
                 message_kind_name(message->kind), message->rank, (unsigned long long)message->step,
                 message->bucket);
    }
}

static void post_ready(void *context, uint32_t bucket)
{
    struct link *link = context;
    pthread_mutex_lock(&link->mutex);
    assert(link->ready_count < LAYOUT_BUCKETS_MAX);
    link->ready[(link->ready_head + link->ready_count) % LAYOUT_BUCKETS_MAX] = bucket;
    link->ready_count++;
    pthread_mutex_unlock(&link->mutex);
    transport_wake(link->channel->transport);
}

/* Who a phase exchanges with: all servers, or the next worker. */
static void choose_peers(const struct link *link, const struct phase *phase,
                         struct exchange_options *options)
{
    const struct neighbours *neighbours = &link->neighbours;
    bool is_ring = strcmp(phase->mode, "ring") == 0;
    options->peers = is_ring ? neighbours->peers + neighbours->server_count : neighbours->peers;
    options->peer_count =
        is_ring ? neighbours->count - neighbours->server_count : neighbours->server_count;
}

/* Whatever was exchanged in the last phase has come: see exchange_drain. */
static void replace_exchange(struct link *link, struct exchange *exchange)
{
    pthread_mutex_lock(&link->mutex);
    struct exchange *old = link->exchange;
    link->exchange = exchange;
    pthread_mutex_unlock(&link->mutex);
    exchange_destroy(old);
}

/* The exchange of the phase. */
static enum status create_exchange(struct link *link)
{
    const struct phase *phase = &link->phases.list[link->phase_index];
    struct exchange_options options = {
        .mode = phase->mode,
        .rank = link->rank,
        .world = link->job.workers,
        .layout = link->prepared.layout,
        .params = link->prepared.params,
        .grads = link->prepared.grads,
        .is_free = phase->is_free,
        .group = link->group_memory.group,
        .states = link->states,
        .state_count = link->state_count,
        .channel = link->channel,
        .post_ready = post_ready,
        .context = link,
    };
    choose_peers(link, phase, &options);
    struct exchange *exchange;
    enum status status = exchange_create(&options, &exchange);
    if (status != STATUS_OK) {
        log_error("cannot exchange in mode %s: %s", phase->mode, status_text(status));
        return status;
    }
    replace_exchange(link, exchange);
    return STATUS_OK;
}

/* The first START: connections to others, and their memory if that is how gradients are added up.
 * *ret_refusal says why it cannot be mapped. */
static enum status connect_to_others(struct link *link, const struct message *start,
                                     enum status *ret_refusal)
{
    const struct neighbours_named named = {
        .places = start->text,
        .has_all_workers = start->all_reduce == ALL_REDUCE_DIRECT,
        .rank = link->rank,
    };
    *ret_refusal = STATUS_OK;
    enum status status = neighbours_connect(link->channel, &link->job, &named, &link->neighbours);
    if (status != STATUS_OK || !endpoints_may_share(link->job.transport)) {
        return status;
    }
    const struct region *region = link->prepared.region;
    channel_share(link->channel, region);
    bool is_direct = start->all_reduce == ALL_REDUCE_DIRECT && job_has_mode(&link->job, "ring") &&
                     link->job.workers > 1;
    if (is_direct && link->job.workers <= ALL_REDUCE_DIRECT_MAX) {
        *ret_refusal =
            region == NULL
                ? STATUS_UNSUPPORTED
                : group_memory_map(&link->group_memory,
                                   neighbours_workers(start->text, job_shard_count(&link->job)),
                                   link->rank, link->job.workers, region);
    }
    return STATUS_OK;
}

/* START: the first one says where the others are. */
static enum status begin_phase(struct link *link, const struct message *start)
{
    char why[OPTION_ERROR_BYTES];
    if (start->phase != link->phase_index) {
        return STATUS_OK; // not due: a coordinator of ours does not send it
    }
    enum status status, refusal = STATUS_OK;
    if (start->phase > 0) {
        status = create_exchange(link);
        return status == STATUS_OK ? member_connected(&link->member, STATUS_OK) : status;
    }
    status = phases_of(&link->job, link->prepared.train_samples, &link->phases, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("%s", why); // the trainer has found it before
        return status;
    }
    status = connect_to_others(link, start, &refusal);
    if (status == STATUS_OK) {
        status = create_exchange(link);
    }
    return status == STATUS_OK ? member_connected(&link->member, refusal) : status;
}

/* All workers have mapped each other's memory: the exchange that was made before is not needed. */
static enum status begin_group(struct link *link)
{
    enum status status = group_memory_begin(&link->group_memory, link->rank, link->job.workers,
                                            link->prepared.layout);
    return status == STATUS_OK ? create_exchange(link) : status;
}

/* GO: everybody is ready for the phase. */
static enum status run_phase(struct link *link, const struct message *go)
{
    bool is_first = link->phase_index == 0;
    enum status status = is_first ? neighbours_offer(link->channel, &link->neighbours) : STATUS_OK;
    if (status == STATUS_OK && is_first && go->all_reduce == ALL_REDUCE_DIRECT &&
        link->group_memory.board_bytes != NULL) {
        status = begin_group(link);
    }
    if (status == STATUS_OK) {
        status = exchange_start(link->exchange);
    }
    set_phase(link, LINK_RUNNING);
    return status;
}

static void note_decision(struct link *link, const struct message *message)
{
    pthread_mutex_lock(&link->mutex);
    link->decided_count = message->epoch + 1;
    link->is_enough = message->reason == STATUS_END_OF_DATA;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->mutex);
}

static void note_sum(struct link *link, const struct message *message)
{
    pthread_mutex_lock(&link->mutex);
    bool is_awaited = link->sum != NULL && message->step == link->sum_round &&
                      message->span.count == 2 * (uint64_t)link->sum_count;
    if (is_awaited && message->values != NULL) {
        memcpy(link->sum, message->values, link->sum_count * sizeof(*link->sum));
        link->sum = NULL;
        link->sum_round++;
        pthread_cond_broadcast(&link->changed);
    }
    pthread_mutex_unlock(&link->mutex);
}

/* What the coordinator says to workers alone. */
static enum status handle_coordinator(struct link *link, const struct message *message)
{
    bool is_prepared = phase_of(link) == LINK_PREPARED;
    if (message->kind == MESSAGE_START && is_prepared) {
        return begin_phase(link, message);
    }
    if (message->kind == MESSAGE_GO && is_prepared && link->exchange != NULL) {
        return run_phase(link, message);
    }
    if (message->kind == MESSAGE_PROCEED) {
        note_decision(link, message);
    }
    if (message->kind == MESSAGE_SUM) {
        note_sum(link, message);
    }
    return STATUS_OK;
}

/* With --transport auto, who may not read our memory gets messages. */
static enum status check_sharing(struct link *link)
{
    enum status refusal = link->channel->sharing.refusal;
    if (refusal == STATUS_OK || strcmp(link->job.transport, "shm") != 0) {
        return STATUS_OK;
    }
    log_error("a neighbour cannot read this process's memory: %s; --transport auto goes without",
              status_text(refusal));
    member_leave(&link->member, refusal, "a neighbour cannot read its memory (--transport shm)");
    return refusal;
}

/* One message, if there is one. */
static enum status pump(struct link *link, int timeout_ms)
{
    member_tick(&link->member, clock_now_ms(), link->step);
    struct envelope envelope;
    struct message message;
    enum status status = channel_receive(link->channel, timeout_ms, &envelope, &message);
    if (status != STATUS_OK) {
        return check_sharing(link);
    }
    if (!member_handle(&link->member, &envelope, &message)) {
        if (envelope.peer != link->member.coordinator) {
            deliver(link, &message, &envelope);
        } else {
            status = handle_coordinator(link, &message);
        }
    }
    envelope_release(&envelope);
    return status;
}

/* Why the thread has to end now; STATUS_OK: it has not. */
static enum status check_end(struct link *link)
{
    if (link->member.is_stopped) {
        // The verdict "completed" is STATUS_OK: END_OF_DATA tells it from going on.
        return link->member.stop_status == STATUS_OK ? STATUS_END_OF_DATA
                                                     : link->member.stop_status;
    }
    if (*link->options.is_interrupted != 0) {
        member_leave(&link->member, STATUS_INTERRUPTED, "interrupted by a signal");
        return STATUS_INTERRUPTED;
    }
    pthread_mutex_lock(&link->mutex);
    bool is_closing = link->is_closing;
    pthread_mutex_unlock(&link->mutex);
    return is_closing && outbox_is_empty(&link->outbox) ? STATUS_END_OF_DATA : STATUS_OK;
}

/* Handles messages until the phase is reached, or the end. */
static enum status pump_until(struct link *link, enum link_phase phase)
{
    for (;;) {
        outbox_flush(&link->outbox, link->channel, link->member.coordinator);
        enum status status = check_end(link);
        if (status != STATUS_OK) {
            return status;
        }
        if (phase_of(link) == phase) {
            return STATUS_OK;
        }
        status = pump(link, POLL_MS);
        if (status != STATUS_OK) {
            return status;
        }
    }
}

static enum status join(struct link *link)
{
    gethostname(link->host, sizeof(link->host));
    link->host[sizeof(link->host) - 1] = '\0';
    link->member = (struct member){
        .channel = link->channel,
        .self = {.role = ROLE_WORKER,
                 .has_rank = link->options.has_rank,
                 .rank = link->options.rank,
                 .host_id = transport_host_id(),
                 .host = link->host,
                 .process_id = (uint64_t)getpid(),
                 .endpoints = link->place},
    };
    return member_join(&link->member, link->options.coordinator, link->options.join_timeout_ms,
                       link->options.is_interrupted, &link->job, &link->rank);
}

/* The address that other hosts reach this one by: loopback if the coordinator is reached so. */
static enum status listen(struct link *link)
{
    bool has_peers = job_has_mode(&link->job, "ring") && link->job.workers > 1;
    if (!has_peers) {
        return STATUS_OK;
    }
    const char *address = link->options.address[0] != '\0' ? link->options.address : "127.0.0.1";
    enum status status =
        endpoints_bind(link->channel->transport, link->job.transport, address, link->place);
    if (status != STATUS_OK || link->prepared.region == NULL ||
        strcmp(link->job.all_reduce, "ring") == 0) {
        return status;
    }
    return group_memory_offer(&link->group_memory, link->rank, link->prepared.layout,
                              link->prepared.region, link->place);
}

static enum status say_ready(struct link *link)
{
    enum status status = listen(link);
    if (status != STATUS_OK) {
        return status;
    }
    link->member.self.rank = link->rank;
    link->member.self.params_digest = link->prepared.params_digest;
    link->member.self.device = link->prepared.device;
    link->member.self.train_samples = link->prepared.train_samples;
    link->member.self.test_samples = link->prepared.test_samples;
    link->member.self.data_digest = link->prepared.data_digest;
    link->member.self.parameters = link->prepared.parameters;
    return member_ready(&link->member, link->prepared.layout);
}

static enum status run(struct link *link)
{
    enum status status = join(link);
    if (status != STATUS_OK) {
        return status;
    }
    set_phase(link, LINK_WELCOMED);
    status = pump_until(link, LINK_PREPARED);
    if (status == STATUS_OK) {
        status = say_ready(link);
    }
    if (status == STATUS_OK) {
        status = pump_until(link, LINK_RUNNING);
    }
    while (status == STATUS_OK) {
        run_ready(link);
        outbox_flush(&link->outbox, link->channel, link->member.coordinator);
        status = check_end(link);
        if (status == STATUS_OK) {
            status = pump(link, POLL_MS);
        }
    }
    return status;
}

void *communication_run(void *data)
{
    struct link *link = data;
    pthread_setname_np(pthread_self(), "communication");
    enum status status = run(link);
    // A trainer that waits in the exchange must not wait for ever.
    pthread_mutex_lock(&link->mutex);
    link->ending = status;
    struct exchange *exchange = link->exchange;
    pthread_mutex_unlock(&link->mutex);
    if (exchange != NULL) {
        exchange_stop(exchange, status);
    }
    outbox_close(&link->outbox);
    set_phase(link, LINK_ENDED);
    return NULL;
}
