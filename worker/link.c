/* The communication thread.
 *
 * Linear code on both sides: the thread runs join, wait, start, loop; the trainer's thread waits
 * for its phases. What the trainer has to say goes through two bounded queues, of buckets that are
 * ready and of messages for the coordinator, and a wake of the transport. */
#include "worker/link.h"

#include "common/clock.h"
#include "common/endpoints.h"
#include "common/log.h"
#include "common/member.h"
#include "worker/neighbours.h"
#include "worker/outbox.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS   100
#define LINGER_MS 500

enum link_phase {
    LINK_JOINING,  // the thread: waits for the welcome
    LINK_WELCOMED, // the trainer: builds its model
    LINK_PREPARED, // the thread: says ready, waits for the start
    LINK_RUNNING,  // both
    LINK_ENDED,    // the thread is over; `ending` says why
};

struct link {
    struct link_options options;
    struct channel *channel;
    pthread_t thread;
    bool has_thread;

    // The thread's own.
    struct member member;
    char host[256];
    char place[ENDPOINTS_PLACE_BYTES];
    struct neighbours neighbours;

    // Set by one side before the phase that lets the other read it.
    struct job job;
    uint32_t rank;
    struct link_prepared prepared;
    struct exchange *exchange;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum link_phase phase;
    enum status ending;
    bool is_closing;                    // link_destroy: leave when the outbox is empty
    uint32_t ready[LAYOUT_BUCKETS_MAX]; // buckets, from ready_head, ready_count of them
    uint32_t ready_head, ready_count;
    struct outbox outbox;
    _Atomic uint64_t step;
};

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

static enum status create_exchange(struct link *link, const struct message *start)
{
    enum status status =
        neighbours_connect(link->channel, &link->job, start->text, &link->neighbours);
    if (status != STATUS_OK) {
        return status;
    }
    struct exchange_options options = {
        .mode = link->job.mode,
        .rank = link->rank,
        .world = link->job.workers,
        .layout = link->prepared.layout,
        .params = link->prepared.params,
        .grads = link->prepared.grads,
        .channel = link->channel,
        .peers = link->neighbours.peers,
        .peer_count = link->neighbours.count,
        .post_ready = post_ready,
        .context = link,
    };
    struct exchange *exchange;
    status = exchange_create(&options, &exchange);
    if (status != STATUS_OK) {
        log_error("cannot exchange in mode %s: %s", link->job.mode, status_text(status));
        return status;
    }
    pthread_mutex_lock(&link->mutex);
    link->exchange = exchange;
    pthread_mutex_unlock(&link->mutex);
    if (endpoints_may_share(link->job.transport)) {
        channel_share(link->channel, link->prepared.region);
    }
    return member_connected(&link->member);
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
        } else if (message.kind == MESSAGE_START && link->exchange == NULL &&
                   phase_of(link) == LINK_PREPARED) {
            status = create_exchange(link, &message);
        } else if (message.kind == MESSAGE_GO && link->exchange != NULL &&
                   phase_of(link) == LINK_PREPARED) {
            status = neighbours_offer(link->channel, &link->neighbours);
            if (status == STATUS_OK) {
                status = exchange_start(link->exchange);
            }
            set_phase(link, LINK_RUNNING);
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
    bool has_peers = strcmp(link->job.mode, "ring") == 0 && link->job.workers > 1;
    if (!has_peers) {
        return STATUS_OK;
    }
    const char *address = link->options.address[0] != '\0' ? link->options.address : "127.0.0.1";
    return endpoints_bind(link->channel->transport, link->job.transport, address, link->place);
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

static void *run_thread(void *data)
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

enum status link_create(const struct link_options *options, struct link **ret_link)
{
    struct link *link = calloc(1, sizeof(*link));
    if (link == NULL) {
        return STATUS_NO_MEMORY;
    }
    link->options = *options;
    pthread_mutex_init(&link->mutex, NULL);
    pthread_cond_init(&link->changed, NULL);
    outbox_init(&link->outbox);
    enum status status = channel_create(&link->channel);
    if (status != STATUS_OK) {
        link_destroy(link);
        return status;
    }
    if (pthread_create(&link->thread, NULL, run_thread, link) != 0) {
        log_error("cannot start the communication thread");
        link_destroy(link);
        return STATUS_NO_MEMORY;
    }
    link->has_thread = true;
    *ret_link = link;
    return STATUS_OK;
}

void link_destroy(struct link *link)
{
    if (link == NULL) {
        return;
    }
    if (link->has_thread) {
        pthread_mutex_lock(&link->mutex);
        link->is_closing = true;
        pthread_mutex_unlock(&link->mutex);
        transport_wake(link->channel->transport);
        pthread_join(link->thread, NULL);
    }
    // Its messages read grads and call the exchange, which in turn may hold some that came.
    if (link->channel != NULL) {
        channel_close(link->channel, LINGER_MS);
    }
    exchange_destroy(link->exchange);
    channel_destroy(link->channel, 0);
    neighbours_free(&link->neighbours);
    outbox_finish(&link->outbox);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->mutex);
    free(link);
}

/* Waits for one of two phases; the thread may end instead. */
static enum status wait_for(struct link *link, enum link_phase phase)
{
    pthread_mutex_lock(&link->mutex);
    while (link->phase != phase && link->phase != LINK_ENDED) {
        pthread_cond_wait(&link->changed, &link->mutex);
    }
    enum status status = link->phase == phase ? STATUS_OK : link->ending;
    pthread_mutex_unlock(&link->mutex);
    return status;
}

enum status link_welcome(struct link *link, struct job *ret_job, uint32_t *ret_rank)
{
    enum status status = wait_for(link, LINK_WELCOMED);
    if (status == STATUS_OK) {
        *ret_job = link->job;
        *ret_rank = link->rank;
    }
    return status;
}

enum status link_prepare(struct link *link, const struct link_prepared *prepared)
{
    pthread_mutex_lock(&link->mutex);
    bool is_alive = link->phase == LINK_WELCOMED;
    if (is_alive) {
        link->prepared = *prepared;
        link->phase = LINK_PREPARED;
    }
    pthread_mutex_unlock(&link->mutex);
    if (is_alive) {
        transport_wake(link->channel->transport);
    }
    return wait_for(link, LINK_RUNNING);
}

struct exchange *link_exchange(struct link *link)
{
    return link->exchange;
}

void link_traffic(const struct link *link, uint64_t *ret_sent, uint64_t *ret_received)
{
    *ret_sent = link->channel->bytes_sent;
    *ret_received = link->channel->bytes_received;
}

void link_set_step(struct link *link, uint64_t step)
{
    link->step = step;
}

/* Queues it for the thread, which is woken. */
static void post_message(struct link *link, struct message *message)
{
    message->rank = link->rank;
    outbox_add(&link->outbox, message);
    transport_wake(link->channel->transport);
}

void link_report(struct link *link, uint64_t step, uint64_t epoch, const struct wire_report *report)
{
    struct message message = {
        .kind = MESSAGE_REPORT, .step = step, .epoch = epoch, .report = report};
    post_message(link, &message);
}

void link_done(struct link *link, uint64_t step, const struct wire_report *report,
               const char *params_digest)
{
    struct wire_member member = {
        .role = ROLE_WORKER, .has_rank = true, .rank = link->rank, .params_digest = params_digest};
    struct message message = {
        .kind = MESSAGE_DONE, .step = step, .member = &member, .report = report};
    post_message(link, &message);
}

void link_leave(struct link *link, enum status reason, const char *text)
{
    struct message message = {.kind = MESSAGE_LEAVE, .reason = reason, .text = text};
    post_message(link, &message);
}

enum status link_verdict(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    while (link->phase != LINK_ENDED) {
        pthread_cond_wait(&link->changed, &link->mutex);
    }
    enum status status = link->ending == STATUS_END_OF_DATA ? STATUS_OK : link->ending;
    pthread_mutex_unlock(&link->mutex);
    return status;
}
