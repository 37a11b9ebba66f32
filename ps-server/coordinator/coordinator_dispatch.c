/* Passes each message to its handler; handles reports, sums, DONE and LEAVE itself. */
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/choices.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/coordinator_handshake.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/generation.h"

#include <stdio.h>
#include <string.h>

void coordinator_conclude(struct coordinator *coordinator, uint64_t now_ms)
{
    if (coordinator->state != COORDINATOR_TRAINING || !generation_is_done(coordinator) ||
        checkpoint_schedule_awaits_last(coordinator, now_ms)) {
        return;
    }
    const struct slot *workers = coordinator->membership.workers, *first = workers;
    while (first->state != SLOT_DONE) {
        first++; // it was lost, and the others have done without
    }
    for (uint32_t i = 0; i < coordinator->membership.worker_count; i++) {
        if (workers[i].state == SLOT_DONE && strcmp(workers[i].digest, first->digest) != 0) {
            coordinator_fail(
                coordinator, STATUS_MISMATCH, NULL, now_ms,
                "the parameters of worker %u (%.12s...) differ from those of worker %u "
                "(%.12s...) after the last step%s",
                workers[i].number, workers[i].digest, first->number, first->digest,
                job_is_external(coordinator->job)
                    ? ": what its program writes has to be the same in all processes; a test of "
                      "other parameters is made with a copy of the model"
                    : "");
            return;
        }
    }
    snprintf(coordinator->params_digest, sizeof(coordinator->params_digest), "%s", first->digest);
    coordinator_close(coordinator, STATUS_OK, "", NULL, now_ms);
}

/* The rank that a worker's message is about: one that it carries. A worker that carries a single
 * one need not say which. False, and said, if it carries no such rank. */
static bool find_rank(const struct coordinator *coordinator, const struct sender *from,
                      const struct message *message, uint32_t *ret_rank)
{
    struct rank_block block = carriers_block(coordinator->carriers, from->index);
    *ret_rank = block.count == 1 ? block.first : message->rank;
    if (rank_block_has(block, *ret_rank)) {
        return true;
    }
    coordinator_port_say(&coordinator->port, true,
                         "worker %u (host %s) sent %s of rank %u; it carries ranks %u to %u: the "
                         "message was dropped",
                         from->slot->number, from->slot->host, message_kind_name(message->kind),
                         message->rank, block.first, block.first + block.count - 1);
    return false;
}

/* Tells what has been evaluated in a program of its own. */
static void tell_evaluations(struct coordinator *coordinator)
{
    uint32_t period;
    while (results_tell_next(&coordinator->results, &period)) {
        if (!results_was_told(&coordinator->results, period)) {
            coordinator->port.period_closed(coordinator->port.context, period);
        }
    }
}

static void handle_done(struct coordinator *coordinator, const struct sender *from,
                        const struct message *message, uint64_t now_ms)
{
    struct slot *slot = from->slot;
    if (slot->state == SLOT_DONE || slot->state == SLOT_GONE) {
        return;
    }
    slot_enter(&coordinator->membership, slot, SLOT_DONE, now_ms);
    if (from->role == ROLE_SERVER) {
        slot->is_over = true; // its answer to STOP
        results_close_server(&coordinator->results, from->index, message->report);
        return;
    }
    results_close_worker(&coordinator->results,
                         carriers_block(coordinator->carriers, from->index).first, message->report);
    snprintf(slot->digest, sizeof(slot->digest), "%s", message->member->params_digest);
    slot_hear(slot, message->step, now_ms);
    if (job_is_external(coordinator->job)) {
        (void)results_add_rest(&coordinator->results); // without memory it is no row of its own
        tell_evaluations(coordinator);
    }
    coordinator_conclude(coordinator, now_ms);
}

/* With a target accuracy, workers wait to hear after each evaluation whether it was reached. */
static void decide(struct coordinator *coordinator, uint32_t period)
{
    const struct job *job = coordinator->job;
    if (job->target_accuracy <= 0 || coordinator->results.periods[period].test_images == 0) {
        return;
    }
    bool is_enough = results_accuracy(&coordinator->results, period) >= job->target_accuracy;
    if (is_enough && !coordinator->results.has_reached_target) {
        coordinator->results.has_reached_target = true;
        coordinator->results.target_period = period;
    }
    const struct wire_decision decision = {.period = period, .is_enough = is_enough};
    const struct message proceed = {.kind = MESSAGE_PROCEED, .decision = &decision};
    coordinator_port_send_workers(&coordinator->port, &coordinator->membership, &proceed);
}

/* REPORT of a program of its own, which evaluates when it likes. */
static void take_own_report(struct coordinator *coordinator, uint32_t rank,
                            const struct message *message)
{
    const struct wire_report *report = message->report;
    enum status status = report->closes_period
                             ? results_add_evaluation(&coordinator->results, rank, message)
                             : results_add(&coordinator->results, rank, message);
    if (status != STATUS_OK) {
        coordinator_port_say(&coordinator->port, true,
                             "an evaluation of rank %u has no room in memory", rank);
        return;
    }
    if (!report->closes_period && report->images > 0) { // some programs tell no loss
        coordinator->port.reported(coordinator->port.context, rank, message);
    }
    tell_evaluations(coordinator);
}

static void handle_report(struct coordinator *coordinator, const struct sender *from,
                          const struct message *message)
{
    const struct wire_report *report = message->report;
    uint32_t rank;
    if (from->role != ROLE_WORKER || !find_rank(coordinator, from, message, &rank)) {
        return;
    }
    if (job_is_external(coordinator->job)) {
        take_own_report(coordinator, rank, message);
        return;
    }
    if (results_add(&coordinator->results, rank, message) != STATUS_OK) {
        coordinator_port_say(&coordinator->port, true, "rank %u reports period %llu out of order",
                             rank, (unsigned long long)report->period);
        return;
    }
    if (report->is_repeated && report->closes_period) {
        // The coordinator before has shown it. Somebody may wait for what follows.
        if (results_period_is_complete(&coordinator->results, (uint32_t)report->period)) {
            decide(coordinator, (uint32_t)report->period);
        }
    } else if (!report->closes_period) {
        coordinator->port.reported(coordinator->port.context, rank, message);
    } else if (results_period_is_complete(&coordinator->results, (uint32_t)report->period)) {
        coordinator->port.period_closed(coordinator->port.context, (uint32_t)report->period);
        decide(coordinator, (uint32_t)report->period);
    }
}

/* Every worker waits for the sum that its ranks give to: none can be a round ahead. Programs of
 * one's own take sums before they are ready, too, which shows that they are getting on. */
static void handle_sum(struct coordinator *coordinator, const struct sender *from,
                       const struct message *message, uint64_t now_ms)
{
    const struct sums *sums = &coordinator->sums;
    const struct wire_sum *given = message->sum;
    const double *sum;
    uint32_t rank;
    if (from->role != ROLE_WORKER || coordinator->state >= COORDINATOR_RENEWING ||
        !find_rank(coordinator, from, message, &rank)) {
        return;
    }
    if (given->count > SUMS_COUNT_MAX) {
        coordinator_fail(coordinator, STATUS_MALFORMED, from, now_ms,
                         "worker %u (host %s) gave %u numbers to a sum, which takes at most %u",
                         from->slot->number, from->slot->host, given->count, SUMS_COUNT_MAX);
        return;
    }
    enum status status =
        sums_add(&coordinator->sums, rank, given->round, given->values, given->count, &sum);
    if (status != STATUS_OK) {
        coordinator_fail(
            coordinator, status, from, now_ms,
            "worker %u (host %s) gave %u numbers to sum %llu; the others gave %u to sum %llu",
            from->slot->number, from->slot->host, given->count, (unsigned long long)given->round,
            sums->count, (unsigned long long)sums->round);
        return;
    }
    if (sum != NULL) {
        coordinator->membership.arrived_ms = now_ms;
        const struct wire_sum total = {given->round, given->count, sum};
        const struct message answer = {.kind = MESSAGE_SUM, .sum = &total};
        coordinator_port_send_workers(&coordinator->port, &coordinator->membership, &answer);
    }
}

/* Whether others may do what the member could not. They could not train what has diverged, or agree
 * on what it did not agree on. */
static bool is_of_member_alone(enum status reason)
{
    return reason == STATUS_INTERRUPTED || reason == STATUS_UNREACHABLE ||
           reason == STATUS_TIMED_OUT || reason == STATUS_IO || reason == STATUS_NO_MEMORY ||
           reason == STATUS_DEVICE;
}

static void handle_leave(struct coordinator *coordinator, const struct sender *from,
                         const struct message *message, uint64_t now_ms)
{
    char sentence[COORDINATOR_REASON_BYTES];
    struct slot *slot = from->slot;
    if (coordinator->state >= COORDINATOR_CLOSING) {
        if (message->reason == STATUS_OK) {
            slot->is_over = true; // its answer to STOP
        } else {
            slot_enter(&coordinator->membership, slot, SLOT_GONE, now_ms);
        }
        return;
    }
    enum status reason = message->reason == STATUS_OK ? STATUS_UNREACHABLE : message->reason;
    snprintf(sentence, sizeof(sentence), "%s %u (host %s, pid %llu) left: %s",
             role_name(from->role), slot->number, slot->host, (unsigned long long)slot->process_id,
             message->text);
    bool is_users_program = from->role == ROLE_WORKER && job_is_external(coordinator->job);
    if (reason == STATUS_INTERRUPTED && !is_users_program &&
        handshake_vacate(coordinator, from, sentence, now_ms)) {
        return; // its host may have asked for it, and starts it elsewhere
    }
    bool has_diverged = reason == STATUS_NOT_FINITE;
    coordinator->diverged_step = has_diverged ? message->step + 1 : 0;
    // A program that says why it leaves has failed, which is no loss that others go on from. One
    // that is new has done nothing yet that the others need, whatever it lacks.
    bool is_alone = is_of_member_alone(reason) && !job_may_commit(coordinator->job);
    if (is_alone || slot->is_new) {
        generation_lose(coordinator, reason, sentence, from, now_ms);
        return;
    }
    slot_enter(&coordinator->membership, slot, SLOT_GONE, now_ms);
    coordinator->workers_lost += from->role == ROLE_WORKER && !has_diverged;
    coordinator_close(coordinator, reason, sentence, from, now_ms);
}

/* A piece of the names of classes, which comes while worker 0 prepares. What does not fit together
 * is as if it had not come: a job does without. */
static void handle_classes(struct coordinator *coordinator, const struct sender *from,
                           const struct message *message)
{
    if (from->role != ROLE_WORKER || from->index != 0 || from->slot->state != SLOT_JOINED) {
        return;
    }
    enum status status = long_text_add(&coordinator->classes, message->span.offset,
                                       message->span.count, message->text);
    if (status != STATUS_OK) {
        long_text_finish(&coordinator->classes);
    }
}

static void handle_checkpoint(struct coordinator *coordinator, const struct sender *from,
                              const struct message *message, uint64_t now_ms)
{
    if (message->kind == MESSAGE_SNAPSHOT && message->reason == STATUS_AGAIN) {
        in_place_take(coordinator, from, message);
    } else {
        checkpointing_handle(coordinator, from, message, now_ms);
    }
}

static void dispatch(struct coordinator *coordinator, const struct sender *from,
                     const struct message *message, uint64_t now_ms)
{
    switch (message->kind) {
    case MESSAGE_CHOICES:
        choices_take(coordinator, from, message->text, now_ms);
        break;
    case MESSAGE_CLASSES:
        handle_classes(coordinator, from, message);
        break;
    case MESSAGE_READY:
        handshake_ready(coordinator, from, message, now_ms);
        break;
    case MESSAGE_TRIED:
        handshake_tried(coordinator, from, message, now_ms);
        break;
    case MESSAGE_CONNECTED:
        handshake_connected(coordinator, from, now_ms);
        break;
    case MESSAGE_PASSED:
        handshake_passed(coordinator, from, message, now_ms);
        break;
    case MESSAGE_REPORT:
        handle_report(coordinator, from, message);
        break;
    case MESSAGE_SUM:
        handle_sum(coordinator, from, message, now_ms);
        break;
    case MESSAGE_DONE:
        handle_done(coordinator, from, message, now_ms);
        break;
    case MESSAGE_LEAVE:
        handle_leave(coordinator, from, message, now_ms);
        break;
    case MESSAGE_SNAPSHOT:
    case MESSAGE_PIECE:
    case MESSAGE_FETCH:
        handle_checkpoint(coordinator, from, message, now_ms);
        break;
    case MESSAGE_COMMIT:
        newcomers_take_commit(coordinator, from, message, now_ms);
        break;
    case MESSAGE_HEARTBEAT:
        slot_note_wait(&coordinator->membership, from->slot, message->wait, now_ms);
        break;
    case MESSAGE_JOIN: // of a peer, not of a member
    case MESSAGE_BACK: // likewise, and the server's: see ps-server/returning
    // Those below are for members.
    case MESSAGE_TRY:
    case MESSAGE_PROBE:
    case MESSAGE_WELCOME:
    case MESSAGE_REFUSE:
    case MESSAGE_START:
    case MESSAGE_GO:
    case MESSAGE_STOP:
    case MESSAGE_HELLO:
    case MESSAGE_SEED:
    case MESSAGE_PUSH:
    case MESSAGE_PULL:
    case MESSAGE_TAKEN:
    case MESSAGE_PARAMS:
    case MESSAGE_CHUNK:
    case MESSAGE_OFFER:
    case MESSAGE_MAPPED:
    case MESSAGE_RETURN:
    case MESSAGE_PROCEED:
    case MESSAGE_GREET:
    case MESSAGE_COLLECT:
    case MESSAGE_KIND_COUNT:
        break;
    }
}

/* Programs of one's own make calls of each other before they are ready, and heartbeats count them:
 * they are getting on. */
static void note_calls(struct coordinator *coordinator, const struct sender *from,
                       const struct message *message, uint64_t now_ms)
{
    if (message->kind == MESSAGE_HEARTBEAT && from->role == ROLE_WORKER &&
        from->slot->state == SLOT_JOINED && message->step > from->slot->step) {
        coordinator->membership.arrived_ms = now_ms;
    }
}

void coordinator_receive(struct coordinator *coordinator, uint64_t peer,
                         const struct message *message, uint64_t now_ms)
{
    struct sender from;
    if (message->kind == MESSAGE_JOIN) {
        handshake_join(coordinator, peer, message, now_ms);
        return;
    }
    if (!membership_find(&coordinator->membership, peer, &from) || from.slot->state == SLOT_GONE) {
        return; // not a member, or no longer one
    }
    note_calls(coordinator, &from, message, now_ms);
    // One that waits for a sum has made more steps than its last heartbeat knew; one that is ready
    // has made none.
    bool has_step = message->kind == MESSAGE_HEARTBEAT || message->kind == MESSAGE_SUM ||
                    message->kind == MESSAGE_READY;
    slot_hear(from.slot, has_step ? message->step : from.slot->step, now_ms);
    generation_note_steps(coordinator, now_ms);
    dispatch(coordinator, &from, message, now_ms);
}
