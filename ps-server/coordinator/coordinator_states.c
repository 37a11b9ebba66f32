/* Begins each state of the coordinator: sends TRY, START, GO and STOP. */
#include "ps-server/coordinator/coordinator_states.h"

#include "common/channel/member.h"
#include "common/job/job_modes.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/generation.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

// How long members have to answer a STOP, those that have left before they heard it have to knock,
// and those who were told to join have to come, before the process ends. Whoever interrupts a
// launcher waits for the last of these.
#define CLOSING_MS 1000
#define KNOCK_MS   (MEMBER_KNOCK_MS + CLOSING_MS)
#define CALLED_MS  2000

/* Sends the message to each worker, with the places of the members it connects to. */
static void send_places(const struct coordinator *coordinator, struct message message)
{
    char text[TOPOLOGY_TEXT_BYTES];
    const struct membership *membership = &coordinator->membership;
    message.text = text;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        topology_places(coordinator->job, membership, coordinator->topology.all_reduce, i, text,
                        sizeof(text));
        message.rank = i;
        coordinator_port_send(&coordinator->port, membership->workers[i].peer, &message);
    }
}

/* Asks workers what is possible between them. */
static void send_try(const struct coordinator *coordinator)
{
    const struct wire_start start = {.all_reduce = coordinator->topology.all_reduce};
    send_places(coordinator, (struct message){.kind = MESSAGE_TRY, .start = &start});
}

/* The phase that a job goes on with which is resumed. Members find the same. */
static void find_phase(struct coordinator *coordinator)
{
    struct phases phases;
    char why[OPTION_ERROR_BYTES];
    if (phases_of(coordinator->job, coordinator->train_samples, &phases, why, sizeof(why)) ==
        STATUS_OK) {
        (void)phases_resume(coordinator->job, &phases, coordinator->resume->step,
                            &coordinator->phase_index);
    }
}

/* Returns how large the buckets of the phase are. */
static uint64_t begin_tuning(struct coordinator *coordinator)
{
    const struct coordinator_resume *resume = coordinator->resume;
    bool is_first = coordinator->started_ms == 0;
    char text[COORDINATOR_REASON_BYTES];
    if (is_first) {
        bool is_shared = coordinator->topology.all_reduce == ALL_REDUCE_SHARED;
        tuning_init(coordinator->job, coordinator->train_samples, is_shared, &coordinator->tuning);
    }
    if (is_first && resume != NULL) {
        find_phase(coordinator);
        tuning_resume(&coordinator->tuning, resume->bucket_bytes);
    }
    uint32_t phase = coordinator->phase_index;
    uint64_t bucket_bytes = tuning_begin_phase(&coordinator->tuning, phase);
    if (tuning_describe_news(&coordinator->tuning, phase, text, sizeof(text))) {
        coordinator_port_say(&coordinator->port, false, "%s", text);
    }
    return bucket_bytes;
}

/* Where NCCL adds up, START says where workers meet. */
static struct message with_nccl(const struct coordinator *coordinator, struct message start)
{
    const struct topology *topology = &coordinator->topology;
    start.nccl = topology->all_reduce == ALL_REDUCE_NCCL ? &topology->nccl : NULL;
    return start;
}

/* Begins a phase of the job: tells everybody where the others are. */
static void send_start(struct coordinator *coordinator, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    uint64_t bucket_bytes = begin_tuning(coordinator);
    layout_merge(&coordinator->layout, bucket_bytes, &coordinator->phase_layout);
    const struct wire_start start = {.phase = coordinator->phase_index,
                                     .train_samples = coordinator->train_samples,
                                     .all_reduce = coordinator->topology.all_reduce,
                                     .limits = coordinator->topology.limits,
                                     .bucket_bytes = bucket_bytes};
    const struct message message = {.kind = MESSAGE_START,
                                    .step = coordinator->begin_step,
                                    .start = &start,
                                    .layout = &coordinator->phase_layout,
                                    .text = coordinator->optimizer};
    struct message to_servers = message;
    to_servers.groups = coordinator->groups;
    const struct message to_workers = with_nccl(coordinator, message);
    coordinator_port_send_servers(&coordinator->port, membership, &to_servers);
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        slot_enter(membership, &membership->workers[i], SLOT_READY, now_ms);
    }
    send_places(coordinator, to_workers);
}

static void begin_connecting(struct coordinator *coordinator, uint64_t now_ms)
{
    coordinator->membership.arrived_ms = now_ms;
    if (coordinator->needs_trial) {
        send_try(coordinator);
    } else {
        send_start(coordinator, now_ms);
    }
}

static void begin_training(struct coordinator *coordinator, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    const struct coordinator_port *port = &coordinator->port;
    coordinator->stall_warned_ms = now_ms;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        membership->workers[i].step_since_ms = now_ms;
    }
    checkpointing_begin_phase(coordinator, now_ms);
    newcomers_share_commit(coordinator);
    if (job_may_commit(coordinator->job)) {
        results_cut(&coordinator->results, coordinator->begin_step);
    }
    if (coordinator->started_ms == 0) {
        generation_begin_measuring(coordinator, now_ms);
        coordinator->started_ms = now_ms;
        port->started(port->context);
    } else {
        port->switched(port->context);
    }
    const struct message go = {.kind = MESSAGE_GO, .term = coordinator->term};
    coordinator_port_send_all(port, membership, &go);
}

static struct message stop_of(const struct coordinator *coordinator)
{
    return (struct message){.kind = MESSAGE_STOP,
                            .reason = coordinator->verdict,
                            .rank = coordinator->admitted,
                            .text = coordinator->reason};
}

static void send_stop(const struct coordinator *coordinator)
{
    const struct message stop = stop_of(coordinator);
    coordinator_port_send_all(&coordinator->port, &coordinator->membership, &stop);
}

bool coordinator_awaits_called(const struct coordinator *coordinator)
{
    return coordinator->calls_back && membership_lacks(&coordinator->membership);
}

static void begin_closing(struct coordinator *coordinator, uint64_t now_ms)
{
    coordinator->ended_ms = coordinator->stopped_ms = coordinator->told_ms = now_ms;
    coordinator->awaits_knocks =
        coordinator->verdict == STATUS_OK && job_outlasts_coordinator(coordinator->job);
    send_stop(coordinator);
    newcomers_dismiss(coordinator);
}

void coordinator_send_verdict(const struct coordinator *coordinator, uint64_t peer)
{
    const struct message stop = stop_of(coordinator);
    coordinator_port_send(&coordinator->port, peer, &stop);
}

bool coordinator_find_again(struct coordinator *coordinator, uint64_t peer,
                            const struct message *back, uint64_t now_ms)
{
    struct sender at = membership_same(&coordinator->membership, back->member);
    if (at.slot != NULL) {
        at.slot->peer = peer;
        at.slot->closed_ms = 0;
        slot_hear(at.slot, back->step, now_ms);
        coordinator->told_ms = now_ms;
    }
    return at.slot != NULL && at.slot->state != SLOT_GONE;
}

void coordinator_tell_verdict(struct coordinator *coordinator, uint64_t peer,
                              const struct message *back, uint64_t now_ms)
{
    (void)coordinator_find_again(coordinator, peer, back, now_ms);
    coordinator_send_verdict(coordinator, peer);
}

/* Whether a member that has left will knock, as far as is known. It has to have heard nothing: it
 * would have answered. */
static bool may_knock(const struct coordinator *coordinator, struct slot *slot)
{
    return coordinator->awaits_knocks &&
           coordinator_port_look(&coordinator->port, slot) != PRESENCE_ENDED;
}

/* Whether the process stays for the sake of this member. */
static bool is_awaited(const struct coordinator *coordinator, struct slot *slot, uint64_t now_ms)
{
    if (!slot_may_answer(slot)) {
        return false;
    }
    if (slot->closed_ms != 0 && may_knock(coordinator, slot)) {
        return now_ms - coordinator->stopped_ms < KNOCK_MS;
    }
    bool has_left = slot->closed_ms != 0 && slot->state == SLOT_DONE; // it has nothing more to say
    return !has_left && now_ms - coordinator->told_ms < CLOSING_MS;
}

static void say_awaited(struct coordinator *coordinator, const struct sender *member)
{
    if (!coordinator->says_awaited) {
        coordinator->says_awaited = true;
        coordinator_port_say(&coordinator->port, false,
                             "the job is complete; %s %u has lost its connection before it heard "
                             "that, and is awaited for up to %.0f s",
                             role_name(member->role), member->slot->number,
                             (double)KNOCK_MS / 1000);
    }
}

bool coordinator_is_closed(struct coordinator *coordinator, uint64_t now_ms)
{
    static const enum member_role roles[] = {ROLE_WORKER, ROLE_SERVER};
    bool is_closed =
        !coordinator_awaits_called(coordinator) || now_ms - coordinator->stopped_ms >= CALLED_MS;
    for (uint32_t i = 0; i < 2; i++) {
        struct sender at = membership_member(&coordinator->membership, roles[i], 0);
        for (; at.slot != NULL;
             at = membership_member(&coordinator->membership, roles[i], at.index + 1)) {
            if (!is_awaited(coordinator, at.slot, now_ms)) {
                continue;
            }
            is_closed = false;
            if (now_ms - coordinator->told_ms >= CLOSING_MS) {
                say_awaited(coordinator, &at);
            }
        }
    }
    return is_closed;
}

void coordinator_enter(struct coordinator *coordinator, enum coordinator_state state,
                       uint64_t now_ms)
{
    coordinator->state = state;
    switch (state) {
    case COORDINATOR_GATHERING:
        coordinator->membership.arrived_ms = now_ms;
        break;
    case COORDINATOR_CONNECTING:
        begin_connecting(coordinator, now_ms);
        break;
    case COORDINATOR_TRAINING:
        begin_training(coordinator, now_ms);
        break;
    case COORDINATOR_RENEWING:
        coordinator->ended_ms = now_ms;
        break;
    case COORDINATOR_CLOSING:
        begin_closing(coordinator, now_ms);
        break;
    case COORDINATOR_OVER:
        break;
    }
}

bool coordinator_takes_back(const struct coordinator *coordinator)
{
    return coordinator->is_returned && coordinator->state == COORDINATOR_GATHERING;
}

/* The one place where the verdict is set. */
void coordinator_amend(struct coordinator *coordinator, enum status verdict, const char *reason,
                       const struct sender *culprit)
{
    coordinator->verdict = verdict;
    coordinator->culprit = culprit != NULL ? *culprit : (struct sender){.slot = NULL};
    snprintf(coordinator->reason, sizeof(coordinator->reason), "%s", reason);
    if (verdict != STATUS_OK) {
        coordinator_port_say(&coordinator->port, true, "the job %s: %s",
                             verdict == STATUS_AGAIN ? "goes on" : "ends", coordinator->reason);
    }
}

void coordinator_close(struct coordinator *coordinator, enum status verdict, const char *reason,
                       const struct sender *culprit, uint64_t now_ms)
{
    if (coordinator->state >= COORDINATOR_CLOSING) {
        return;
    }
    coordinator_amend(coordinator, verdict, reason, culprit);
    coordinator_enter(coordinator,
                      verdict == STATUS_AGAIN ? COORDINATOR_RENEWING : COORDINATOR_CLOSING, now_ms);
}

void coordinator_call_back(struct coordinator *coordinator, uint64_t now_ms)
{
    assert(coordinator->state == COORDINATOR_RENEWING && coordinator->verdict == STATUS_AGAIN);
    send_stop(coordinator);
    // Nobody answers: members come back to the next generation.
    coordinator_enter(coordinator, COORDINATOR_OVER, now_ms);
}

/* Those that were told to join are waited for. */
static void release_called(struct slot *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].state != SLOT_GONE) {
            slot_release(&slots[i]);
        }
    }
}

void coordinator_fail_to_renew(struct coordinator *coordinator, enum status verdict,
                               const char *reason, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    const struct sender culprit = coordinator->culprit;
    assert(coordinator->verdict == STATUS_AGAIN && verdict != STATUS_AGAIN);
    if (coordinator->state == COORDINATOR_OVER) {
        release_called(membership->workers, membership->worker_count);
        release_called(membership->servers, membership->server_count);
        coordinator->calls_back = true;
    }
    coordinator_amend(coordinator, verdict, reason, &culprit);
    coordinator_enter(coordinator, COORDINATOR_CLOSING, now_ms);
}

void coordinator_fail(struct coordinator *coordinator, enum status verdict,
                      const struct sender *culprit, uint64_t now_ms, const char *format, ...)
{
    char reason[COORDINATOR_REASON_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    coordinator_close(coordinator, verdict, reason, culprit, now_ms);
}
