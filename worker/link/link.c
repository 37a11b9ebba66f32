/* Lets the trainer wait for the communication thread, and hand it buckets and messages.
 *
 * Linear code on both sides: the thread runs join, wait, start, loop; the trainer's thread waits
 * for its phases. What the trainer has to say goes through two bounded queues, one of ready buckets
 * and one of messages for the coordinator; then it wakes the transport. */
#include "worker/link/link.h"

#include "common/base/log.h"
#include "common/security/security.h"
#include "worker/link/link_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINGER_MS 500

struct wire_member link_describe(const struct link *link)
{
    const struct link_options *options = &link->options;
    return (struct wire_member){
        .role = ROLE_WORKER,
        .has_rank = options->has_rank,
        .rank = options->rank,
        .host_id = transport_host_id(),
        .host = link->host,
        .process_id = (uint64_t)getpid(),
        .endpoints = link->place,
        .loopback = security_told_loopback(options->coordinator, options->address),
        .launch = options->launch,
    };
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
    if (status == STATUS_OK) {
        status = channel_secure(link->channel, options->security);
    }
    if (status != STATUS_OK) {
        link_destroy(link);
        return status;
    }
    link->departures = transport_note_departures(link->channel->transport);
    if (pthread_create(&link->thread, NULL, communication_run, link) != 0) {
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
    // Queued messages read grads and call the exchange, and the exchange may hold messages that
    // came.
    if (link->channel != NULL) {
        // What is queued for one that is lost would be waited for in vain, and the others begin
        // again.
        channel_close(link->channel, link->ending == STATUS_AGAIN ? 0 : LINGER_MS);
    }
    exchange_destroy(link->exchange);
    channel_destroy(link->channel, 0);
    neighbours_free(&link->neighbours);
    group_memory_finish(&link->group_memory);
    probe_finish(&link->probe);
    outbox_finish(&link->outbox);
    absence_finish(&link->absence);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->mutex);
    free(link);
}

/* Waits until the phase is reached. The thread may end instead. */
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

enum status link_welcome(struct link *link, struct job *ret_job, uint32_t *ret_process)
{
    enum status status = wait_for(link, LINK_WELCOMED);
    if (status == STATUS_OK) {
        *ret_job = link->job;
        *ret_process = link->process;
    }
    return status;
}

uint32_t link_generation(const struct link *link)
{
    return link->member.generation;
}

uint32_t link_number(const struct link *link)
{
    return link->member.generation == 0 ? link->process : link->number;
}

enum status link_prepare(struct link *link, const struct link_prepared *prepared)
{
    pthread_mutex_lock(&link->mutex);
    bool is_alive = link->phase == LINK_WELCOMED;
    if (is_alive) {
        link->prepared = *prepared;
        if (prepared->vectors == NULL) { // of a single rank
            link->prepared.vectors = &link->prepared.grads;
        }
        link->states = prepared->states;
        link->state_count = prepared->state_count;
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

uint64_t link_bucket_bytes(const struct link *link)
{
    return link->bucket_bytes;
}

void link_traffic(const struct link *link, uint64_t *ret_sent, uint64_t *ret_received)
{
    *ret_sent = link->channel->bytes_sent;
    *ret_received = link->channel->bytes_received;
}

/* Queues the message for the thread, and wakes the thread. */
static void post_message(struct link *link, struct message *message)
{
    outbox_add(&link->outbox, message);
    transport_wake(link->channel->transport);
}

void link_tell_choices(struct link *link, const char *choices)
{
    int length = snprintf(link->choices, sizeof(link->choices), "%s", choices);
    assert(length >= 0 && (size_t)length < sizeof(link->choices));
    struct message message = {.kind = MESSAGE_CHOICES, .text = link->choices};
    post_message(link, &message);
}

enum status link_await_choices(struct link *link, const char **ret_choices)
{
    struct message message = {.kind = MESSAGE_CHOICES, .text = ""};
    post_message(link, &message);
    pthread_mutex_lock(&link->mutex);
    while (!link->has_choices && link->phase != LINK_ENDED) {
        pthread_cond_wait(&link->changed, &link->mutex);
    }
    enum status status = link->has_choices ? STATUS_OK : link->ending;
    pthread_mutex_unlock(&link->mutex);
    *ret_choices = link->choices;
    return status;
}

enum status link_pass(struct link *link, const struct link_passed *passed)
{
    pthread_mutex_lock(&link->mutex);
    if (link->phase != LINK_ENDED) {
        link->phase = LINK_PREPARED;
        link->phase_index++;
        link->states = passed->states;
        link->state_count = passed->state_count;
    }
    uint32_t phase_index = link->phase_index;
    pthread_mutex_unlock(&link->mutex);
    const struct wire_passed told = {phase_index, passed->step_ns};
    struct message message = {.kind = MESSAGE_PASSED, .rank = link->ranks.first, .passed = &told};
    post_message(link, &message);
    return wait_for(link, LINK_RUNNING);
}

enum status link_await_decision(struct link *link, uint64_t period, bool *ret_is_enough)
{
    pthread_mutex_lock(&link->mutex);
    while (link->decided_count <= period && link->phase != LINK_ENDED) {
        pthread_cond_wait(&link->changed, &link->mutex);
    }
    enum status status = link->decided_count > period ? STATUS_OK : link->ending;
    *ret_is_enough = link->is_enough;
    pthread_mutex_unlock(&link->mutex);
    return status;
}

enum status link_sum(struct link *link, double *values, uint32_t count)
{
    pthread_mutex_lock(&link->mutex);
    link->sum = values;
    link->sum_count = count;
    uint64_t round = link->sum_round;
    pthread_mutex_unlock(&link->mutex);
    for (uint32_t i = 0; i < link->ranks.count; i++) {
        // The values stay until the answer comes.
        const struct wire_sum sum = {round, count, values + (size_t)i * count};
        struct message message = {
            .kind = MESSAGE_SUM, .rank = link->ranks.first + i, .step = link->step, .sum = &sum};
        post_message(link, &message);
    }
    pthread_mutex_lock(&link->mutex);
    while (link->sum != NULL && link->phase != LINK_ENDED) {
        pthread_cond_wait(&link->changed, &link->mutex);
    }
    enum status status = link->sum == NULL ? STATUS_OK : link->ending;
    link->sum = NULL;
    pthread_mutex_unlock(&link->mutex);
    return status;
}

void link_commit(struct link *link, uint64_t step)
{
    struct message message = {.kind = MESSAGE_COMMIT, .rank = link->ranks.first, .step = step};
    post_message(link, &message);
}

bool link_has_grown(struct link *link)
{
    return link_is_over(link) && link->member.stop_newcomers > 0;
}

void link_set_step(struct link *link, uint64_t step)
{
    link->step = step;
}

uint64_t link_steps(const struct link *link)
{
    return link->step;
}

void link_report(struct link *link, uint32_t rank, uint64_t step, const struct wire_report *report)
{
    struct message message = {.kind = MESSAGE_REPORT, .rank = rank, .step = step, .report = report};
    post_message(link, &message);
}

void link_done(struct link *link, uint64_t step, const struct wire_report *report,
               const char *params_digest)
{
    struct wire_member member = {.role = ROLE_WORKER,
                                 .has_rank = true,
                                 .rank = link->process,
                                 .params_digest = params_digest};
    struct message message = {.kind = MESSAGE_DONE,
                              .rank = link->ranks.first,
                              .step = step,
                              .member = &member,
                              .report = report};
    post_message(link, &message);
}

void link_leave(struct link *link, enum status reason, const char *text)
{
    struct message message = {.kind = MESSAGE_LEAVE,
                              .rank = link->ranks.first,
                              .step = link->step,
                              .reason = reason,
                              .text = text};
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

bool link_is_over(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    bool is_over = link->phase == LINK_ENDED;
    pthread_mutex_unlock(&link->mutex);
    return is_over;
}

const char *link_reason(struct link *link)
{
    return link_is_over(link) ? link->member.stop_text : "";
}
