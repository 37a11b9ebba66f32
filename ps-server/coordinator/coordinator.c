/* The state machine of a job: members join, training starts, is watched, and ends. */
#include "ps-server/coordinator/coordinator.h"

#include "ps-server/coordinator/agreement.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/deadlines.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// How long members have to answer a STOP before the process ends.
#define CLOSING_MS   1000
#define HEARTBEAT_MS 500

__attribute__((format(printf, 3, 4))) static void say(const struct coordinator *coordinator,
                                                      bool is_error, const char *format, ...)
{
    char sentence[COORDINATOR_REASON_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    coordinator->port.log(coordinator->port.context, is_error, sentence);
}

static void send(const struct coordinator *coordinator, uint64_t peer,
                 const struct message *message)
{
    coordinator->port.send(coordinator->port.context, peer, message);
}

static void send_slots(const struct coordinator *coordinator, const struct slot *slots,
                       uint32_t count, const struct message *message)
{
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].state != SLOT_FREE && slots[i].state != SLOT_GONE) {
            send(coordinator, slots[i].peer, message);
        }
    }
}

static void send_workers(const struct coordinator *coordinator, const struct message *message)
{
    const struct membership *membership = &coordinator->membership;
    send_slots(coordinator, membership->workers, membership->worker_count, message);
}

static void send_all(const struct coordinator *coordinator, const struct message *message)
{
    const struct membership *membership = &coordinator->membership;
    send_workers(coordinator, message);
    send_slots(coordinator, membership->servers, membership->server_count, message);
}

enum status coordinator_init(struct coordinator *coordinator, const struct job *job,
                             const char *job_text, const struct coordinator_port *port,
                             uint64_t now_ms)
{
    *coordinator = (struct coordinator){.job = job,
                                        .job_text = job_text,
                                        .port = *port,
                                        .created_ms = now_ms,
                                        .arrived_ms = now_ms};
    enum status status =
        membership_init(&coordinator->membership, job->workers, job_shard_count(job));
    if (status != STATUS_OK) {
        return status;
    }
    status = results_init(&coordinator->results, job->workers, job_shard_count(job));
    if (status == STATUS_OK) {
        status = sums_init(&coordinator->sums, job->workers);
    }
    if (status != STATUS_OK) {
        coordinator_finish(coordinator);
    }
    return status;
}

void coordinator_finish(struct coordinator *coordinator)
{
    sums_finish(&coordinator->sums);
    results_finish(&coordinator->results);
    membership_finish(&coordinator->membership);
}

/* The one place where the verdict is set. */
void coordinator_amend(struct coordinator *coordinator, enum status verdict, const char *reason)
{
    coordinator->verdict = verdict;
    snprintf(coordinator->reason, sizeof(coordinator->reason), "%s", reason);
    if (verdict != STATUS_OK) {
        say(coordinator, true, "the job ends: %s", coordinator->reason);
    }
}

static void close_job(struct coordinator *coordinator, enum status verdict, const char *reason,
                      uint64_t now_ms)
{
    if (coordinator->state >= COORDINATOR_CLOSING) {
        return;
    }
    coordinator->state = COORDINATOR_CLOSING;
    coordinator_amend(coordinator, verdict, reason);
    coordinator->ended_ms = now_ms;
    coordinator->closing_deadline_ms = now_ms + CLOSING_MS;
    struct message stop = {.kind = MESSAGE_STOP, .reason = verdict, .text = coordinator->reason};
    send_all(coordinator, &stop);
}

__attribute__((format(printf, 4, 5))) static void fail_job(struct coordinator *coordinator,
                                                           enum status verdict, uint64_t now_ms,
                                                           const char *format, ...)
{
    char reason[COORDINATOR_REASON_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    close_job(coordinator, verdict, reason, now_ms);
}

bool coordinator_all_reduce(const struct coordinator *coordinator, char *ret_text, size_t text_size)
{
    bool has_any = job_has_mode(coordinator->job, "ring") && coordinator->job->workers > 1;
    if (has_any) {
        topology_describe(&coordinator->topology, ret_text, text_size);
    }
    return has_any;
}

void coordinator_stop(struct coordinator *coordinator, enum status status, const char *reason,
                      uint64_t now_ms)
{
    assert(status != STATUS_OK);
    close_job(coordinator, status, reason, now_ms);
}

/* Sends a refusal to a peer that is not a member. It reveals nothing about the job. */
static void tell_refused(const struct coordinator *coordinator, uint64_t peer, enum status reason,
                         const char *told)
{
    struct message refusal = {.kind = MESSAGE_REFUSE, .reason = reason, .text = told};
    send(coordinator, peer, &refusal);
}

static void refuse(const struct coordinator *coordinator, uint64_t peer, enum status reason,
                   const char *sentence)
{
    say(coordinator, true, "refused a member: %s", sentence);
    tell_refused(coordinator, peer, reason, sentence);
}

static void handle_join(struct coordinator *coordinator, uint64_t peer,
                        const struct message *message, uint64_t now_ms)
{
    const struct wire_member *member = message->member;
    enum member_role role;
    uint32_t index;
    char sentence[COORDINATOR_REASON_BYTES];
    if (membership_find(&coordinator->membership, peer, &role, &index) != NULL) {
        return; // asked twice
    }
    if (coordinator->state != COORDINATOR_GATHERING) {
        refuse(coordinator, peer, STATUS_INVALID, "the job has already begun");
        return;
    }
    if (strcmp(message->text, RINGSIDE_VERSION) != 0) {
        snprintf(sentence, sizeof(sentence),
                 "it is version %.32s of ringside, the coordinator is %s: use the same everywhere",
                 message->text, RINGSIDE_VERSION);
        refuse(coordinator, peer, STATUS_MISMATCH, sentence);
        return;
    }
    struct membership_refusal refusal;
    if (membership_join(&coordinator->membership, member, peer, now_ms, &index, &refusal) !=
        STATUS_OK) {
        say(coordinator, true, "refused a member: %s", refusal.reason);
        tell_refused(coordinator, peer, STATUS_INVALID, refusal.told);
        return;
    }
    coordinator->arrived_ms = now_ms;
    say(coordinator, false, "%s %u joined: host=%s pid=%llu",
        member->role == ROLE_WORKER ? "worker" : "server", index, member->host,
        (unsigned long long)member->process_id);
    struct message welcome = {
        .kind = MESSAGE_WELCOME,
        .rank = index,
        .text = coordinator->job_text,
        .seal_key = coordinator->seal_key,
    };
    send(coordinator, peer, &welcome);
}

/* Everybody is ready: finds out how workers can exchange, or begins the first phase. */
static void begin_job(struct coordinator *coordinator, uint64_t now_ms)
{
    bool needs_trial;
    topology_begin(coordinator->job, &coordinator->membership, &coordinator->topology,
                   &needs_trial);
    if (needs_trial) {
        connecting_try(coordinator, now_ms);
    } else {
        connecting_start(coordinator, now_ms);
    }
}

static void handle_tried(struct coordinator *coordinator, struct slot *slot, uint32_t rank,
                         const struct message *message, uint64_t now_ms)
{
    const struct membership *membership = &coordinator->membership;
    if (slot->state != SLOT_READY || coordinator->state != COORDINATOR_CONNECTING) {
        return;
    }
    slot->state = SLOT_TRIED;
    coordinator->arrived_ms = now_ms;
    topology_note(&coordinator->topology, rank, message);
    if (message->reason != STATUS_OK) {
        say(coordinator, false, "host %s, pid %llu cannot map the memory of the other workers: %s",
            slot->host, (unsigned long long)slot->process_id, status_text(message->reason));
    }
    if (membership_count(membership->workers, membership->worker_count, SLOT_TRIED) <
        membership->worker_count) {
        return;
    }
    if (topology_decide(coordinator->job, &coordinator->topology) != STATUS_OK) {
        const struct slot *refuser = &membership->workers[coordinator->topology.refuser];
        fail_job(coordinator, STATUS_UNREACHABLE, now_ms,
                 "worker %u (host %s, pid %llu) cannot map the memory of the other workers, and "
                 "--transport shm does without messages; they have to be of one container and one "
                 "user, or use --transport auto",
                 coordinator->topology.refuser, refuser->host,
                 (unsigned long long)refuser->process_id);
        return;
    }
    connecting_start(coordinator, now_ms);
}

static void handle_connected(struct coordinator *coordinator, struct slot *slot, uint64_t now_ms)
{
    if (slot->state != SLOT_READY || coordinator->state != COORDINATOR_CONNECTING) {
        return;
    }
    slot->state = SLOT_CONNECTED;
    coordinator->arrived_ms = now_ms;
    if (membership_everybody_is(&coordinator->membership, SLOT_CONNECTED)) {
        connecting_go(coordinator, now_ms);
    }
}

static void handle_ready(struct coordinator *coordinator, struct slot *slot, enum member_role role,
                         uint32_t index, const struct message *message, uint64_t now_ms)
{
    if (slot->state != SLOT_JOINED || coordinator->state != COORDINATOR_GATHERING) {
        return;
    }
    if (role == ROLE_WORKER) {
        char why[COORDINATOR_REASON_BYTES];
        if (message->layout == NULL) {
            return;
        }
        if (!coordinator->has_layout) {
            coordinator->layout = *message->layout;
            coordinator->has_layout = true;
            coordinator->train_samples = message->member->train_samples;
            coordinator->test_samples = message->member->test_samples;
            coordinator->data_digest = message->member->data_digest;
            coordinator->parameters = message->member->parameters;
        } else if (!agreement_check(coordinator, message, why, sizeof(why))) {
            char sentence[2 * COORDINATOR_REASON_BYTES];
            snprintf(sentence, sizeof(sentence), "worker %u (host %s): %s", index, slot->host, why);
            refuse(coordinator, slot->peer, STATUS_MISMATCH, sentence);
            fail_job(coordinator, STATUS_MISMATCH, now_ms, "%s", sentence);
            return;
        }
        snprintf(slot->digest, sizeof(slot->digest), "%s", message->member->params_digest);
        snprintf(slot->device, sizeof(slot->device), "%s", message->member->device);
    }
    snprintf(slot->place, sizeof(slot->place), "%s", message->member->endpoints);
    slot->state = SLOT_READY;
    coordinator->arrived_ms = now_ms;
    if (membership_everybody_is(&coordinator->membership, SLOT_READY)) {
        begin_job(coordinator, now_ms);
    }
}

/* A worker holds all that it needs of a phase. Once all do, the next one begins. */
static void handle_passed(struct coordinator *coordinator, struct slot *slot,
                          const struct message *message, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    if (slot->state != SLOT_CONNECTED || coordinator->state != COORDINATOR_TRAINING ||
        message->phase != coordinator->phase_index + 1) {
        return;
    }
    slot->state = SLOT_READY;
    tuning_note(&coordinator->tuning, coordinator->phase_index, message->step_ns);
    if (membership_count(membership->workers, membership->worker_count, SLOT_READY) <
        membership->worker_count) {
        return;
    }
    for (uint32_t i = 0; i < membership->server_count; i++) {
        membership->servers[i].state = SLOT_READY;
    }
    results_end_phase(&coordinator->results);
    coordinator->phase_index++;
    connecting_start(coordinator, now_ms);
}

/* All workers have done their steps: their parameters must be equal. */
static void conclude(struct coordinator *coordinator, uint64_t now_ms)
{
    const struct slot *workers = coordinator->membership.workers;
    for (uint32_t i = 1; i < coordinator->membership.worker_count; i++) {
        if (strcmp(workers[i].digest, workers[0].digest) != 0) {
            fail_job(coordinator, STATUS_MISMATCH, now_ms,
                     "the parameters of worker %u (%.12s...) differ from those of worker 0 "
                     "(%.12s...) after the last step",
                     i, workers[i].digest, workers[0].digest);
            return;
        }
    }
    snprintf(coordinator->params_digest, sizeof(coordinator->params_digest), "%s",
             workers[0].digest);
    close_job(coordinator, STATUS_OK, "", now_ms);
}

static void handle_done(struct coordinator *coordinator, struct slot *slot, enum member_role role,
                        uint32_t index, const struct message *message, uint64_t now_ms)
{
    if (slot->state == SLOT_DONE || slot->state == SLOT_GONE) {
        return;
    }
    slot->state = SLOT_DONE;
    if (role == ROLE_SERVER) {
        results_close_server(&coordinator->results, index, message->report);
        return;
    }
    results_close_worker(&coordinator->results, index, message->report);
    snprintf(slot->digest, sizeof(slot->digest), "%s", message->member->params_digest);
    if (coordinator->state == COORDINATOR_TRAINING &&
        membership_everybody_is(&coordinator->membership, SLOT_DONE)) {
        conclude(coordinator, now_ms);
    }
}

/* With a target accuracy, workers wait to hear after each evaluation whether it was reached. */
static void decide(struct coordinator *coordinator, uint32_t epoch)
{
    const struct job *job = coordinator->job;
    if (job->target_accuracy <= 0 || coordinator->results.epochs[epoch].test_images == 0) {
        return;
    }
    bool is_enough = results_accuracy(&coordinator->results, epoch) >= job->target_accuracy;
    if (is_enough && !coordinator->results.has_reached_target) {
        coordinator->results.has_reached_target = true;
        coordinator->results.target_epoch = epoch;
    }
    struct message proceed = {.kind = MESSAGE_PROCEED,
                              .epoch = epoch,
                              .reason = is_enough ? STATUS_END_OF_DATA : STATUS_OK};
    send_workers(coordinator, &proceed);
}

static void handle_report(struct coordinator *coordinator, uint32_t rank,
                          const struct message *message)
{
    if (results_add(&coordinator->results, rank, message) != STATUS_OK) {
        say(coordinator, true, "worker %u reports epoch %llu out of order", rank,
            (unsigned long long)message->epoch);
        return;
    }
    if (!message->report->is_epoch) {
        coordinator->port.reported(coordinator->port.context, rank, message);
    } else if (results_epoch_is_complete(&coordinator->results, (uint32_t)message->epoch)) {
        coordinator->port.epoch_closed(coordinator->port.context, (uint32_t)message->epoch);
        decide(coordinator, (uint32_t)message->epoch);
    }
}

/* Every worker waits for the sum that it gives to: none can be a round ahead. */
static void handle_sum(struct coordinator *coordinator, const struct slot *slot, uint32_t rank,
                       const struct message *message, uint64_t now_ms)
{
    const double *sum;
    uint32_t count = (uint32_t)(message->span.count / 2);
    if (coordinator->state != COORDINATOR_TRAINING || message->values == NULL) {
        return;
    }
    if (message->span.count > 2 * (uint64_t)SUMS_COUNT_MAX || message->span.count % 2 != 0) {
        fail_job(coordinator, STATUS_MALFORMED, now_ms,
                 "worker %u (host %s) gave %.1f numbers to a sum, which takes at most %u", rank,
                 slot->host, (double)message->span.count / 2, SUMS_COUNT_MAX);
        return;
    }
    enum status status =
        sums_add(&coordinator->sums, rank, message->step, message->values, count, &sum);
    if (status != STATUS_OK) {
        fail_job(coordinator, status, now_ms,
                 "worker %u (host %s) gave %u numbers to sum %llu, the others %u to sum %llu", rank,
                 slot->host, count, (unsigned long long)message->step, coordinator->sums.count,
                 (unsigned long long)coordinator->sums.round);
    } else if (sum != NULL) {
        const void *bytes = sum;
        const struct message answer = {.kind = MESSAGE_SUM,
                                       .step = message->step,
                                       .span = {0, message->span.count},
                                       .values = bytes};
        send_workers(coordinator, &answer);
    }
}

static void handle_leave(struct coordinator *coordinator, struct slot *slot, enum member_role role,
                         uint32_t index, const struct message *message, uint64_t now_ms)
{
    slot->state = SLOT_GONE;
    if (coordinator->state >= COORDINATOR_CLOSING) {
        return;
    }
    enum status reason = message->reason == STATUS_OK ? STATUS_UNREACHABLE : message->reason;
    bool has_diverged = reason == STATUS_NOT_FINITE;
    coordinator->diverged_step = has_diverged ? message->step + 1 : 0;
    coordinator->workers_lost += role == ROLE_WORKER && !has_diverged;
    fail_job(coordinator, reason, now_ms, "%s %u (host %s, pid %llu) left: %s",
             role == ROLE_WORKER ? "worker" : "server", index, slot->host,
             (unsigned long long)slot->process_id, message->text);
}

void coordinator_receive(struct coordinator *coordinator, uint64_t peer,
                         const struct message *message, uint64_t now_ms)
{
    if (message->kind == MESSAGE_JOIN) {
        handle_join(coordinator, peer, message, now_ms);
        return;
    }
    enum member_role role;
    uint32_t index;
    struct slot *slot = membership_find(&coordinator->membership, peer, &role, &index);
    if (slot == NULL || slot->state == SLOT_GONE) {
        return; // not, or no longer, one of us
    }
    uint64_t step = message->kind == MESSAGE_HEARTBEAT ? message->step : slot->step;
    slot_hear(slot, step, now_ms);
    if (message->kind == MESSAGE_READY) {
        handle_ready(coordinator, slot, role, index, message, now_ms);
    } else if (message->kind == MESSAGE_CONNECTED) {
        handle_connected(coordinator, slot, now_ms);
    } else if (message->kind == MESSAGE_TRIED && role == ROLE_WORKER) {
        handle_tried(coordinator, slot, index, message, now_ms);
    } else if (message->kind == MESSAGE_PASSED && role == ROLE_WORKER) {
        handle_passed(coordinator, slot, message, now_ms);
    } else if (message->kind == MESSAGE_REPORT && role == ROLE_WORKER) {
        handle_report(coordinator, index, message);
    } else if (message->kind == MESSAGE_SUM && role == ROLE_WORKER) {
        handle_sum(coordinator, slot, index, message, now_ms);
    } else if (message->kind == MESSAGE_DONE) {
        handle_done(coordinator, slot, role, index, message, now_ms);
    } else if (message->kind == MESSAGE_LEAVE) {
        handle_leave(coordinator, slot, role, index, message, now_ms);
    }
}

void coordinator_tick(struct coordinator *coordinator, uint64_t now_ms, uint64_t away_ms)
{
    if (coordinator->state == COORDINATOR_CLOSING) {
        if (!membership_may_answer(&coordinator->membership) ||
            now_ms >= coordinator->closing_deadline_ms) {
            coordinator->state = COORDINATOR_OVER;
        }
        return;
    }
    if (now_ms - coordinator->heartbeat_sent_ms >= HEARTBEAT_MS) {
        coordinator->heartbeat_sent_ms = now_ms;
        struct message heartbeat = {.kind = MESSAGE_HEARTBEAT,
                                    .step = deadlines_patience_ms(coordinator)};
        send_all(coordinator, &heartbeat);
    }
    deadlines_excuse(coordinator, away_ms, now_ms);
    char reason[COORDINATOR_REASON_BYTES];
    enum status status = deadlines_check(coordinator, now_ms, reason, sizeof(reason));
    if (status != STATUS_OK) {
        close_job(coordinator, status, reason, now_ms);
    } else if (deadlines_should_warn(coordinator, now_ms, reason, sizeof(reason))) {
        say(coordinator, true, "%s", reason);
    }
}
