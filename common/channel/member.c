/* Joins a job, and sends heartbeats. */
#include "common/channel/member.h"

#include "common/base/clock.h"
#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/channel/long_text.h"
#include "common/channel/member_alone.h"
#include "common/job/carriers.h"
#include "common/job/job_text.h"
#include "common/service/resources.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define POLL_MS 50

// How often a newcomer asks again that was told to, because the job is under way.
#define ASK_AGAIN_MS 200

// How often one that asks says that it still waits.
#define SAY_AGAIN_MS 30000

static enum status send_leave(struct member *member, enum status reason, const char *text)
{
    struct message leave = {
        .kind = MESSAGE_LEAVE, .rank = member->self.rank, .reason = reason, .text = text};
    return channel_send(member->channel, member->coordinator, &leave, NULL, NULL);
}

void member_leave(struct member *member, enum status reason, const char *text)
{
    if (send_leave(member, reason, text) != STATUS_OK) {
        log_warn("could not tell the coordinator: %s", text);
    }
}

/* The verdict has come. A shard answers with what it has counted, a worker with nothing more than
 * that it knows. Who goes on says so in the next generation. */
static void take_stop(struct member *member, const struct message *stop)
{
    member->stop_newcomers = stop->rank;
    member_mark_stopped(member, stop->reason, stop->text);
    if (member->self.role == ROLE_WORKER && stop->reason != STATUS_AGAIN &&
        send_leave(member, STATUS_OK, "") != STATUS_OK) {
        log_debug("STOP is not answered: the coordinator is gone");
    }
}

bool member_handle(struct member *member, const struct envelope *envelope,
                   const struct message *message)
{
    if (envelope->peer != member->coordinator) {
        return false;
    }
    member->coordinator_heard_ms = clock_now_ms();
    if (message->kind == MESSAGE_HEARTBEAT && message->patience_ms > 0) {
        member->patience_ms = message->patience_ms;
    }
    if (message->kind == MESSAGE_HEARTBEAT && message->reason == STATUS_AGAIN) {
        member_come_back(member, clock_now_ms());
    }
    if (message->kind == MESSAGE_HEARTBEAT && message->clock != NULL) {
        trace_add_ping(member->channel->trace,
                       &(struct trace_ping){.sent_ns = message->clock->asked_ns,
                                            .received_ns = clock_now_ns(),
                                            .there_ns = message->clock->told_ns});
    }
    if (message->kind == MESSAGE_STOP) {
        take_stop(member, message);
        return true;
    }
    if (message->kind == MESSAGE_REFUSE) {
        log_error("refused by the coordinator: %s", message->text);
        member_mark_stopped(member,
                            message->reason == STATUS_OK ? STATUS_MISMATCH : message->reason,
                            message->text);
        return true;
    }
    return message->kind == MESSAGE_HEARTBEAT;
}

/* Why the coordinator may not have answered so far, and what to look for. Static. */
static const char *explain_silence(const struct member *member)
{
    struct transport *transport = member->channel->transport;
    enum handshake handshake = transport_handshake(transport, member->coordinator);
    if (handshake == HANDSHAKE_NONE) {
        return transport_is_near(transport, member->coordinator)
                   ? "nobody listens there: is `ps` running still, on this host and as this user?"
                   : "there is no connection: is `ps` running there, and is the port open?";
    }
    if (handshake == HANDSHAKE_DONE) {
        return transport_has_left(transport, member->coordinator)
                   ? "the connection was closed: is `ps` running still?"
                   : "there is a connection, and nothing comes: is `ps` stopped, or its host "
                     "overloaded?";
    }
    return transport_explain(transport, member->coordinator);
}

static void log_no_answer(const struct member *member, const char *endpoint, uint32_t timeout_ms)
{
    log_error("no answer from the coordinator at %s within %.1f s: %s", endpoint,
              (double)timeout_ms / 1000, explain_silence(member));
}

/* An endpoint that is mistyped or old is noticed by whoever has started the process, who still
 * looks at it. */
static uint64_t first_warning_ms(const struct member *member)
{
    return member->stall_warn_ms < MEMBER_FIRST_WARNING_MS ? member->stall_warn_ms
                                                           : MEMBER_FIRST_WARNING_MS;
}

/* Says for whom this process waits, and why, once that is due. */
static void warn_of_silence(const struct member *member, const char *endpoint, uint32_t timeout_ms,
                            uint64_t waited_ms, uint64_t *warn_ms)
{
    if (member->stall_warn_ms == 0 || waited_ms < *warn_ms) {
        return;
    }
    *warn_ms = waited_ms + member->stall_warn_ms;
    log_warn(
        "waiting for the coordinator at %s: no answer for %.1f s, and this process gives up after "
        "%.1f s (--join-timeout): %s",
        endpoint, (double)waited_ms / 1000, (double)timeout_ms / 1000, explain_silence(member));
}

/* What was not reported of the period in which a worker's job is resumed, of each rank that it is
 * to carry. False, and said: the welcome is about others. */
static bool take_open_period(struct member *member, const struct message *welcome,
                             const struct job *job)
{
    const struct carriers carriers = job_carriers(job);
    const struct wire_slices *slices = welcome->slices;
    member->open_count = 0;
    if (member->self.role != ROLE_WORKER || welcome->step == 0 ||
        welcome->rank >= carriers.processes) {
        return true; // there is none, or the link says that the job has no such worker
    }
    uint32_t count = carriers_block(carriers, welcome->rank).count;
    if (welcome->report == NULL || slices == NULL || slices->count != count) {
        log_error("the coordinator's welcome tells what %u ranks had at the checkpoint, and this "
                  "worker is to carry %u",
                  slices != NULL ? slices->count : 0, count);
        return false;
    }
    member->open_period = *welcome->report;
    member->open_period.staleness = NULL; // of servers
    member->open_period.staleness_bins = 0;
    member->open_count = count;
    memcpy(member->open_images, slices->images, count * sizeof(*slices->images));
    memcpy(member->open_loss_sums, slices->loss_sums, count * sizeof(*slices->loss_sums));
    return true;
}

/* Takes what the welcome says: this member's rank, the job, and how data travel. */
static enum status take_welcome(struct member *member, const struct message *welcome,
                                struct job *ret_job)
{
    char error[OPTION_ERROR_BYTES], limit[RESOURCES_ERROR_BYTES];
    member->channel->job_id = welcome->job_id;
    member->channel->has_gone_on = welcome->generation > 0;
    member->begin_step = welcome->step;
    member->generation = welcome->generation;
    member->is_in_place = welcome->reason == STATUS_AGAIN;
    enum status status = job_decode(welcome->text, ret_job, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("the coordinator's job makes no sense here: %s", error);
        return STATUS_MISMATCH;
    }
    if (!take_open_period(member, welcome, ret_job)) {
        return STATUS_MISMATCH;
    }
    bool has_seals = ret_job->security == SECURITY_AUTH_ONLY;
    if (has_seals != (welcome->seal_key != NULL)) {
        log_error("the coordinator's job makes no sense here: --security %s, and %s key for seals",
                  security_choices[ret_job->security].name, has_seals ? "no" : "a");
        return STATUS_MISMATCH;
    }
    enum resources_role role =
        member->self.role == ROLE_WORKER ? RESOURCES_WORKER : RESOURCES_SHARD;
    status = resources_check(role, ret_job, limit);
    if (status != STATUS_OK) {
        log_error("%s", limit);
        member_leave(member, status, limit);
        return status;
    }
    if (has_seals) {
        channel_seal(member->channel, welcome->seal_key, member->coordinator);
    }
    return STATUS_OK;
}

/* Asks to join. Of the generation nothing is said but whether there was one before for it. */
static enum status ask(struct member *member)
{
    struct message join = {.kind = MESSAGE_JOIN,
                           .step = member->made_step,
                           .generation = member->outlast_ms > 0,
                           .member = &member->self,
                           .text = RINGSIDE_VERSION};
    enum status status = channel_send(member->channel, member->coordinator, &join, NULL, NULL);
    // If the handshake has failed already, JOIN cannot be sent. The wait then says why it failed.
    return status == STATUS_UNREACHABLE ? STATUS_OK : status;
}

/* How long a member waits for its welcome. */
struct wait {
    const char *endpoint;
    uint32_t timeout_ms;
    uint64_t deadline_ms, warn_ms;
    uint64_t ask_ms;           // when to ask again; 0: not
    uint64_t began_ms, say_ms; // since when it waits; when to say so again; 0: it was not said
    struct job *ret_job;
    uint32_t *ret_rank;
};

/* The job is under way, and will have a place: under which number, the answer says. */
static void note_place(struct member *member, const struct message *refusal, struct wait *wait)
{
    uint64_t now_ms = clock_now_ms();
    if (wait->say_ms == 0 || now_ms >= wait->say_ms) {
        wait->say_ms = now_ms + SAY_AGAIN_MS;
        log_info("the job is under way, and admits this process as worker %u when there is a fresh "
                 "copy, or a commit, to begin with; waited_s=%.0f",
                 refusal->rank, (double)(now_ms - wait->began_ms) / 1000);
    }
    member->self.has_rank = true;
    member->self.rank = refusal->rank;
    wait->ask_ms = now_ms + ASK_AGAIN_MS;
    wait->deadline_ms = now_ms + wait->timeout_ms;
}

/* Takes what the coordinator answers. True: the wait is over, with *ret_status. */
static bool take_answer(struct member *member, const struct envelope *envelope,
                        const struct message *message, struct wait *wait, enum status *ret_status)
{
    bool is_coordinators = envelope->peer == member->coordinator;
    if (is_coordinators && message->kind == MESSAGE_WELCOME) {
        *wait->ret_rank = message->rank;
        *ret_status = take_welcome(member, message, wait->ret_job);
        return true;
    }
    if (is_coordinators && message->kind == MESSAGE_REFUSE && message->reason == STATUS_AGAIN) {
        note_place(member, message, wait);
        return false;
    }
    if (is_coordinators && message->kind == MESSAGE_STOP && message->reason == STATUS_AGAIN) {
        wait->ask_ms = clock_now_ms(); // what it asked for may be over, and this wait goes on
        return false;
    }
    member_handle(member, envelope, message);
    *ret_status = member->stop_status;
    return member->is_stopped;
}

/* The coordinator was lost while this process joined: it asks the one who listens next. One that
 * was in the job before waits longer for that. */
static enum status ask_next(struct member *member, struct wait *wait, uint64_t now_ms)
{
    if (member->outlast_ms > 0) {
        log_warn("the coordinator was lost: its connection was closed; this process waits up to "
                 "%g s for the next one (--outlast)",
                 (double)member->outlast_ms / 1000);
    }
    if (!member_reconnect(member)) {
        return STATUS_OK; // at the next turn, maybe
    }
    if (member->outlast_ms > 0) {
        wait->timeout_ms = (uint32_t)member->outlast_ms;
        wait->deadline_ms = now_ms + wait->timeout_ms;
    }
    wait->ask_ms = 0;
    return ask(member);
}

/* What is due while nothing has come. */
static enum status check_wait(struct member *member, struct wait *wait, uint64_t now_ms)
{
    wait->deadline_ms += attention_away_ms(&member->attention, now_ms, MEMBER_TURN_MS);
    notify_alive(member->notify, now_ms);
    if (now_ms >= wait->deadline_ms) {
        log_no_answer(member, wait->endpoint, wait->timeout_ms);
        return STATUS_TIMED_OUT;
    }
    warn_of_silence(member, wait->endpoint, wait->timeout_ms,
                    now_ms + wait->timeout_ms - wait->deadline_ms, &wait->warn_ms);
    if (transport_is_shut_out(member->channel->transport)) {
        return STATUS_DENIED; // the transport has logged why
    }
    if (member->endpoint != NULL &&
        transport_has_left(member->channel->transport, member->coordinator)) {
        return ask_next(member, wait, now_ms);
    }
    if (wait->ask_ms != 0 && now_ms >= wait->ask_ms) {
        wait->ask_ms = now_ms + ASK_AGAIN_MS;
        return ask(member);
    }
    return STATUS_OK;
}

/* Waits for the welcome. Anything else except a refusal is too early. */
static enum status wait_for_welcome(struct member *member, struct wait *wait,
                                    const atomic_int *is_interrupted)
{
    while (*is_interrupted == 0) {
        struct envelope envelope;
        struct message message;
        enum status status = check_wait(member, wait, clock_now_ms());
        if (status != STATUS_OK) {
            return status;
        }
        status = channel_receive(member->channel, POLL_MS, &envelope, &message);
        if (status == STATUS_MISMATCH) {
            return status;
        }
        if (status != STATUS_OK) {
            continue;
        }
        bool is_over = take_answer(member, &envelope, &message, wait, &status);
        envelope_release(&envelope);
        if (is_over) {
            return status;
        }
    }
    return STATUS_INTERRUPTED;
}

enum status member_connect(struct member *member, const char *endpoint)
{
    enum status status =
        transport_connect(member->channel->transport, endpoint, &member->coordinator);
    member->endpoint = endpoint;
    if (status == STATUS_OK) {
        (void)transport_has_left(member->channel->transport, member->coordinator); // from now on
    }
    return status;
}

enum status member_join(struct member *member, const char *endpoint, uint32_t timeout_ms,
                        const atomic_int *is_interrupted, struct job *ret_job, uint32_t *ret_rank)
{
    struct wait wait = {.endpoint = endpoint,
                        .timeout_ms = timeout_ms,
                        .deadline_ms = clock_now_ms() + timeout_ms,
                        .began_ms = clock_now_ms(),
                        .warn_ms = first_warning_ms(member),
                        .ret_job = ret_job,
                        .ret_rank = ret_rank};
    member->self.cores = cores_available();
    log_info("waiting for the coordinator at %s to admit this process (Ctrl-C gives up)", endpoint);
    enum status status = ask(member);
    if (status != STATUS_OK) {
        return status;
    }
    status = wait_for_welcome(member, &wait, is_interrupted);
    if (status == STATUS_OK) {
        member->coordinator_heard_ms = clock_now_ms();
        // Twice as long as the coordinator waits: if the two cannot hear each other, the
        // coordinator decides. It says the time itself once it knows how crowded the hosts are.
        member->patience_ms = (uint64_t)(2000 * ret_job->lost_after);
    }
    return status;
}

enum status member_tell_classes(struct member *member, const char *classes)
{
    char piece[LONG_TEXT_PIECE_BYTES];
    struct message message = {.kind = MESSAGE_CLASSES, .rank = member->self.rank, .text = piece};
    message.span.count = strlen(classes);
    assert(message.span.count <= WIRE_CLASSES_BYTES);
    while (message.span.offset < message.span.count) {
        size_t size = long_text_cut(classes, message.span.offset, piece);
        enum status status =
            channel_send(member->channel, member->coordinator, &message, NULL, NULL);
        if (status != STATUS_OK) {
            return status;
        }
        message.span.offset += size;
    }
    return STATUS_OK;
}

enum status member_ready(struct member *member, const struct layout *layout,
                         const struct wire_nccl *nccl)
{
    struct message ready = {.kind = MESSAGE_READY,
                            .step = member->ready_step,
                            .member = &member->self,
                            .layout = layout,
                            .nccl = nccl,
                            .groups = member->groups,
                            .text = member->optimizer};
    return channel_send(member->channel, member->coordinator, &ready, NULL, NULL);
}

enum status member_connected(struct member *member)
{
    struct message connected = {.kind = MESSAGE_CONNECTED, .rank = member->self.rank};
    return channel_send(member->channel, member->coordinator, &connected, NULL, NULL);
}

bool member_is_due(const struct member *member, uint64_t now_ms)
{
    bool has_trace = trace_is_recording(member->channel->trace);
    return now_ms - member->heartbeat_sent_ms >=
           (has_trace ? MEMBER_CLOCK_MS : MEMBER_HEARTBEAT_MS);
}

/* Whether it is the same wait, which goes on: nothing that was awaited has come. */
static bool is_same_wait(const struct wire_wait *wait, const struct wire_wait *other)
{
    return wait->role == other->role && wait->index == other->index && wait->what == other->what &&
           wait->taken == other->taken;
}

void member_note_wait(struct member *member, const struct wire_wait *wait, uint64_t now_ms)
{
    if (wait == NULL) {
        member->is_waiting = false;
        return;
    }
    if (!member->is_waiting || !is_same_wait(wait, &member->wait)) {
        member->waiting_since_ms = now_ms;
    }
    member->is_waiting = true;
    member->wait = *wait;
    member->wait.waited_ms = now_ms - member->waiting_since_ms;
}

void member_note_broken(struct member *member, enum member_role role, uint32_t index,
                        uint64_t now_ms)
{
    const struct wire_wait broken = {.role = role, .index = index, .is_broken = true};
    if (!member->has_broken || !is_same_wait(&broken, &member->broken)) {
        member->broken_ms = now_ms;
    }
    member->has_broken = true;
    member->broken = broken;
}

const struct wire_wait *member_tell_wait(struct member *member, uint64_t now_ms)
{
    member->tells_broken = member->has_broken && !member->tells_broken;
    if (member->tells_broken) {
        member->broken.waited_ms = now_ms - member->broken_ms;
        return &member->broken;
    }
    return member->is_waiting ? &member->wait : NULL;
}

void member_tick(struct member *member, uint64_t now_ms, uint64_t step)
{
    if (member_is_due(member, now_ms)) {
        bool has_trace = trace_is_recording(member->channel->trace);
        const struct wire_clock clock = {.asked_ns = has_trace ? clock_now_ns() : 0};
        member->heartbeat_sent_ms = now_ms;
        struct message heartbeat = {.kind = MESSAGE_HEARTBEAT,
                                    .rank = member->self.rank,
                                    .step = step,
                                    .wait = member->is_stopped ? NULL
                                                               : member_tell_wait(member, now_ms),
                                    .clock = has_trace ? &clock : NULL};
        // The silence of a coordinator shows that it is gone.
        if (channel_send(member->channel, member->coordinator, &heartbeat, NULL, NULL) !=
            STATUS_OK) {
            log_debug("heartbeat not sent");
        }
    }
    member->step = step;
    member_judge(member, now_ms);
}
