/* Runs the communication thread: joins the job, waits for its start, then moves messages until the
 * end. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/channel/channel_trace.h"
#include "common/job/job_modes.h"
#include "worker/link/link_alone.h"
#include "worker/link/link_checkpoint.h"
#include "worker/link/link_phases.h"
#include "worker/link/link_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS         100
#define SMALL_FRAME_MAX (UINT64_C(4) << 20)

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
    if (status != STATUS_OK && status != STATUS_MALFORMED && status != STATUS_DENIED) {
        log_error("a neighbour cannot be reached: %s", status_text(status));
        exchange_stop(link->exchange, status);
    }
}

/* A bucket that the trainer has posted, or EXCHANGE_PULL. */
static void run_bucket(struct link *link, uint32_t bucket)
{
    struct trace_tape *trace = link->channel->trace;
    uint64_t step = link->exchange->step; // the trainer may begin the next one meanwhile
    uint32_t shown = bucket == EXCHANGE_PULL ? TRACE_NO_BUCKET : bucket;
    uint64_t began_ns = trace_enter(trace, TRACE_POSTED, shown);
    note_exchange(link, exchange_run_ready(link->exchange, bucket));
    if (trace != NULL) {
        trace_note_cpu(trace, trace_step_of(trace, step));
        trace_leave(trace, began_ns,
                    &(struct trace_tag){
                        .kind = TRACE_POSTED, .bucket = shown, .step = trace_step_of(trace, step)});
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
            break;
        }
        run_bucket(link, bucket);
    }
    if (link->exchange != NULL) {
        note_exchange(link, exchange_go_on(link->exchange));
    }
}

static void deliver(struct link *link, const struct message *message, struct envelope *envelope)
{
    enum status status = STATUS_MALFORMED;
    if (message->kind == MESSAGE_PROBE && message->job_id == link->channel->job_id) {
        status = link_probe(link, envelope->peer, message);
    } else if (link->exchange != NULL && message->job_id == link->channel->job_id) {
        status = exchange_deliver(link->exchange, message, envelope);
        note_exchange(link, status);
    }
    if (status == STATUS_MALFORMED || status == STATUS_DENIED) {
        channel_note_dropped(link->channel, envelope, message, status);
    }
}

static void post_ready(void *context, uint32_t first, uint32_t count)
{
    struct link *link = context;
    pthread_mutex_lock(&link->mutex);
    assert(link->ready_count + count <= LAYOUT_BUCKETS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        link->ready[(link->ready_head + link->ready_count) % LAYOUT_BUCKETS_MAX] = first + i;
        link->ready_count++;
    }
    pthread_mutex_unlock(&link->mutex);
    transport_wake(link->channel->transport);
}

static void note_decision(struct link *link, const struct wire_decision *decision)
{
    pthread_mutex_lock(&link->mutex);
    link->decided_count = decision->period + 1;
    link->is_enough = decision->is_enough;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->mutex);
}

static void note_sum(struct link *link, const struct wire_sum *sum)
{
    pthread_mutex_lock(&link->mutex);
    bool is_awaited =
        link->sum != NULL && sum->round == link->sum_round && sum->count == link->sum_count;
    if (is_awaited) {
        absence_note_sum(&link->absence, sum);
        memcpy(link->sum, sum->values, link->sum_count * sizeof(*link->sum));
        link->sum = NULL;
        link->sum_round++;
        pthread_cond_broadcast(&link->changed);
    }
    pthread_mutex_unlock(&link->mutex);
}

static void note_choices(struct link *link, const char *choices)
{
    pthread_mutex_lock(&link->mutex);
    if (!link->has_choices &&
        link->ranks.first != 0) { // rank 0's are its own, and may be on their way
        snprintf(link->choices, sizeof(link->choices), "%s", choices);
        link->has_choices = true;
        pthread_cond_broadcast(&link->changed);
    }
    pthread_mutex_unlock(&link->mutex);
}

/* What the coordinator says to workers alone. */
static enum status handle_coordinator(struct link *link, const struct message *message)
{
    bool is_prepared = phase_of(link) == LINK_PREPARED;
    if (message->kind == MESSAGE_GO && link->member.is_alone) {
        link_alone_return(link, message);
        return STATUS_OK;
    }
    if (message->kind == MESSAGE_TRY && is_prepared) {
        return link_try(link, message);
    }
    if (message->kind == MESSAGE_START && is_prepared) {
        return link_begin_phase(link, message, post_ready);
    }
    if (message->kind == MESSAGE_GO && is_prepared && link->exchange != NULL) {
        enum status status = link_run_phase(link);
        link_alone_note_go(link);
        set_phase(link, LINK_RUNNING);
        return status;
    }
    if (message->kind == MESSAGE_CHOICES) {
        note_choices(link, message->text);
    }
    if (message->kind == MESSAGE_PROCEED) {
        note_decision(link, message->decision);
    }
    if (message->kind == MESSAGE_SUM) {
        note_sum(link, message->sum);
    }
    return link_handle_checkpoint(link, message);
}

/* With --transport auto, a neighbour that may not read this process's memory gets messages
 * instead. */
static enum status check_sharing(struct link *link)
{
    enum status refusal = channel_refusal(link->channel);
    if (refusal != STATUS_OK && link->prepared.device_memory != NULL) {
        log_error("a server and this worker cannot reach the memory of each other's GPUs: %s; use "
                  "--server-device host",
                  status_text(refusal));
        member_leave(&link->member, refusal,
                     "it and a server cannot reach the memory of each other's GPUs");
        return refusal;
    }
    if (refusal == STATUS_OK || link->job.transport != TRANSPORT_SHM) {
        return STATUS_OK;
    }
    log_error(
        "a neighbour cannot read this process's memory: %s; --transport auto does without that",
        status_text(refusal));
    member_leave(&link->member, refusal, "a neighbour cannot read its memory (--transport shm)");
    return refusal;
}

/* Ends the job if another member refuses this one, which would otherwise wait for --stall-fail. */
static enum status check_doors(struct link *link)
{
    if (!transport_is_shut_out(link->channel->transport)) {
        return STATUS_OK;
    }
    // The transport has logged which member it is, and why.
    member_leave(&link->member, STATUS_DENIED,
                 "another member refuses its connection; its log names that member");
    return STATUS_DENIED;
}

/* Sends heartbeats, which say whom this worker waits for. */
static void tick(struct link *link, uint64_t now_ms)
{
    struct wire_wait wait;
    if (member_is_due(&link->member, now_ms)) {
        link_note_broken(link, now_ms);
        bool is_waiting = link->exchange != NULL && exchange_awaits(link->exchange, &wait);
        member_note_wait(&link->member, is_waiting ? &wait : NULL, now_ms);
    }
    link_alone_prepare(link);
    member_tick(&link->member, now_ms, link->step);
    link_alone_knock(link);
}

/* Takes one message, if there is one. */
static enum status pump(struct link *link, int timeout_ms)
{
    uint64_t now_ms = clock_now_ms();
    notify_alive(link->options.notify, now_ms);
    tick(link, now_ms);
    struct envelope envelope;
    struct message message;
    enum status status = channel_receive(link->channel, timeout_ms, &envelope, &message);
    if (status != STATUS_OK) {
        status = check_sharing(link);
        return status == STATUS_OK ? check_doors(link) : status;
    }
    uint64_t began_ns = trace_begin(link->channel->trace);
    if (!member_handle(&link->member, &envelope, &message)) {
        if (envelope.peer != link->member.coordinator) {
            deliver(link, &message, &envelope);
        } else {
            status = handle_coordinator(link, &message);
        }
    }
    channel_trace_message(link->channel, TRACE_RECEIVE, &message, began_ns);
    envelope_release(&envelope);
    return status;
}

static bool is_closing(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    bool is_closing = link->is_closing;
    pthread_mutex_unlock(&link->mutex);
    return is_closing;
}

/* Returns why the thread has to end now; STATUS_OK if it need not. */
static enum status check_end(struct link *link)
{
    if (link->member.is_stopped) {
        // The verdict "completed" is STATUS_OK, so END_OF_DATA stands for it here.
        return link->member.stop_status == STATUS_OK ? STATUS_END_OF_DATA
                                                     : link->member.stop_status;
    }
    if (*link->options.is_interrupted != 0) {
        member_leave(&link->member, STATUS_INTERRUPTED, "interrupted by a signal");
        return STATUS_INTERRUPTED;
    }
    return is_closing(link) && outbox_is_empty(&link->outbox) ? STATUS_END_OF_DATA : STATUS_OK;
}

/* Handles messages until the phase is reached, or the job ends. */
static enum status pump_until(struct link *link, enum link_phase phase)
{
    for (;;) {
        link_take_outbox(link);
        link_run_fetch(link);
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
        .self = link_describe(link),
        .notify = link->options.notify,
        .stall_warn_ms = link->options.stall_warn_ms,
        .outlast_ms = link->options.outlast_ms,
        .made_step = link->options.made_step,
    };
    enum status status = member_connect(&link->member, link->options.coordinator);
    return status != STATUS_OK
               ? status
               : member_join(&link->member, link->options.coordinator,
                             link->options.join_timeout_ms, link->options.is_interrupted,
                             &link->job, &link->process);
}

/* Which ranks this process has to carry. */
static void take_ranks(struct link *link)
{
    link->carriers = job_carriers(&link->job);
    link->ranks = carriers_block(link->carriers, link->process);
}

/* More bytes than any member of this job has to send at once: a bucket, an encoded bucket that
 * became larger, a probe. */
static uint64_t largest_frame(struct link *link)
{
    const struct layout *layout = link->prepared.layout;
    if (job_tunes_buckets(&link->job)) {
        // The largest size that is tried, because no phase has a layout yet.
        layout_merge(layout, phases_trial_bytes(PHASES_TRIALS - 1), &link->layouts[0]);
        layout = &link->layouts[0];
    }
    uint64_t count = 0;
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        count = layout->buckets[i].count > count ? layout->buckets[i].count : count;
    }
    return 4 * count * sizeof(float) + SMALL_FRAME_MAX;
}

/* As --bind says, for other workers. */
static enum status listen(struct link *link)
{
    bool has_peers = job_has_mode(&link->job, MODE_RING) && link->carriers.processes > 1;
    if (!has_peers || job_has_nccl(&link->job)) {
        return STATUS_OK;
    }
    const struct endpoints_wish wish = {
        .address = link->options.address[0] != '\0' ? link->options.address : "127.0.0.1",
        .port_range = link->options.port_range,
        .toward = link->options.coordinator,
    };
    transport_limit_frames(link->channel->transport, largest_frame(link));
    enum status status = channel_listen(link->channel, link->job.transport, &wish, link->place);
    if (status == STATUS_OK && link->options.has_no_door &&
        strstr(link->place, "ipc://@") != NULL) {
        log_error("other users of this host could connect to this process, because its Unix socket "
                  "has no private name here; use --transport tcp with --keys");
        return STATUS_DENIED;
    }
    if (status != STATUS_OK || !endpoints_may_share(link->job.transport) ||
        all_reduce_shuns_memory(link->job.all_reduce)) {
        return status;
    }
    const struct group_members members = {link->carriers, link->process};
    return group_memory_offer(&link->group_memory, &members, link->prepared.layout,
                              link->prepared.region, link->place);
}

/* 0 if there are none. */
static uint64_t digest_choices(const char *choices)
{
    return choices != NULL ? layout_digest_add(LAYOUT_DIGEST_SEED, choices, strlen(choices)) : 0;
}

static enum status say_ready(struct link *link)
{
    const struct trace_window window = job_timeline(&link->job);
    enum status status = trace_open_tape(link->prepared.trace, TRACE_COMMUNICATION,
                                         link->ranks.first, &window, &link->channel->trace);
    if (status != STATUS_OK) {
        member_leave(&link->member, status, "it has no memory for its timeline");
        return status;
    }
    status = listen(link);
    if (status != STATUS_OK) {
        member_leave(&link->member, status, "it cannot listen for other workers");
        return status;
    }
    link->member.self.rank = link->process;
    link->member.self.params_digest = link->prepared.params_digest;
    link->member.self.device = link->prepared.device;
    link->member.self.figures = link->prepared.figures;
    link->member.self.train_samples = link->prepared.train_samples;
    link->member.self.test_samples = link->prepared.test_samples;
    link->member.self.data_digest = link->prepared.data_digest;
    link->member.self.parameters = link->prepared.parameters;
    link->member.self.tensor_count = link->prepared.tensor_count;
    link->member.self.tensors = link->prepared.tensors;
    link->member.ready_step = link->prepared.begin_step;
    link->member.optimizer = link->prepared.optimizer;
    link->member.groups = link->prepared.groups;
    link->member.self.choices_digest = digest_choices(link->prepared.choices);
    if (link->process == 0 && link->prepared.classes != NULL) {
        status = member_tell_classes(&link->member, link->prepared.classes);
    }
    return status != STATUS_OK
               ? status
               : member_ready(&link->member, link->prepared.layout, link->prepared.nccl);
}

static enum status run(struct link *link)
{
    enum status status = join(link);
    if (status != STATUS_OK) {
        return status;
    }
    if (link->process >= job_carriers(&link->job).processes) {
        log_error("the coordinator's welcome is for worker %u, and the job has %u", link->process,
                  job_carriers(&link->job).processes);
        return STATUS_MISMATCH;
    }
    link->number = link->member.self.rank;
    take_ranks(link);
    set_phase(link, LINK_WELCOMED);
    char ranks[LINK_RANKS_BYTES], said[LINK_RANKS_BYTES + 16];
    link_describe_ranks(link, ranks);
    snprintf(said, sizeof(said), "joined as %s", ranks);
    notify_ready(link->options.notify, said); // for who watches the process
    status = pump_until(link, LINK_PREPARED);
    if (status != STATUS_OK) {
        return status;
    }
    status = say_ready(link);
    if (status != STATUS_OK) {
        return status;
    }
    status = pump_until(link, LINK_RUNNING);
    while (status == STATUS_OK) {
        run_ready(link);
        link_take_outbox(link);
        status = check_end(link);
        if (status == STATUS_OK) {
            status = pump(link, POLL_MS);
        }
    }
    return status;
}

/* The job goes on with other processes, and the trainer may be in a step that takes longer than a
 * member may be silent: until it comes back, the coordinator hears that this process is there. */
static void await_trainer(struct link *link)
{
    member_note_wait(&link->member, NULL, clock_now_ms());
    while (*link->options.is_interrupted == 0 && !is_closing(link)) {
        uint64_t now_ms = clock_now_ms();
        struct envelope envelope;
        struct message message;
        notify_alive(link->options.notify, now_ms);
        member_tick(&link->member, now_ms, link->step);
        if (channel_receive(link->channel, POLL_MS, &envelope, &message) == STATUS_OK) {
            envelope_release(&envelope); // of a generation that is over
        }
    }
}

void *communication_run(void *data)
{
    struct link *link = data;
    pthread_setname_np(pthread_self(), "communication");
    enum status status = run(link);
    // So that a trainer that waits in the exchange does not wait forever.
    pthread_mutex_lock(&link->mutex);
    link->ending = status;
    struct exchange *exchange = link->exchange;
    pthread_mutex_unlock(&link->mutex);
    if (exchange != NULL) {
        exchange_stop(exchange, status);
    }
    outbox_close(&link->outbox);
    set_phase(link, LINK_ENDED);
    if (status == STATUS_AGAIN) {
        await_trainer(link);
    }
    return NULL;
}
