/* Begins and ends a job, and watches its members from tick to tick. */
#include "ps-server/coordinator/coordinator.h"

#include "common/base/attention.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "ps-server/coordinator/coordinator_handshake.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"

#include <assert.h>
#include <stdlib.h>

#define HEARTBEAT_MS 500

enum status coordinator_init(struct coordinator *coordinator, const struct job *job,
                             const char *job_text, const struct coordinator_port *port,
                             uint64_t now_ms)
{
    uint32_t shards = job_shard_count(job);
    *coordinator = (struct coordinator){.job = job,
                                        .carriers = job_carriers(job),
                                        .job_text = job_text,
                                        .port = *port,
                                        .created_ms = now_ms};
    enum status status =
        membership_init(&coordinator->membership, coordinator->carriers.processes, shards);
    if (status != STATUS_OK) {
        goto fail;
    }
    for (uint32_t i = 0; i < shards; i++) {
        coordinator->membership.servers[i].number += job_first_server(job);
    }
    status = results_init(&coordinator->results, job->workers, shards);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = sums_init(&coordinator->sums, job->workers);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = checkpointing_init(&coordinator->checkpointing, coordinator->carriers, shards);
    if (status != STATUS_OK) {
        goto fail;
    }
    coordinator_enter(coordinator, COORDINATOR_GATHERING, now_ms);
    return STATUS_OK;
fail:
    coordinator_finish(coordinator);
    return status;
}

void coordinator_finish(struct coordinator *coordinator)
{
    checkpointing_finish(&coordinator->checkpointing);
    long_text_finish(&coordinator->classes);
    free(coordinator->groups);
    coordinator->groups = NULL;
    sums_finish(&coordinator->sums);
    results_finish(&coordinator->results);
    membership_finish(&coordinator->membership);
}

bool coordinator_all_reduce(const struct coordinator *coordinator, char *ret_text, size_t text_size)
{
    if (!job_has_mode(coordinator->job, MODE_RING) || coordinator->carriers.processes <= 1) {
        return false;
    }
    topology_describe(&coordinator->topology, ret_text, text_size);
    return true;
}

void coordinator_stop(struct coordinator *coordinator, enum status status, const char *reason,
                      uint64_t now_ms)
{
    assert(status != STATUS_OK);
    if (coordinator->state == COORDINATOR_CLOSING) {
        coordinator->awaits_knocks = false; // whoever ends the job does not want to wait
    }
    coordinator_close(coordinator, status, reason, NULL, now_ms);
}

static void send_heartbeat(struct coordinator *coordinator, uint64_t now_ms)
{
    if (now_ms - coordinator->heartbeat_sent_ms < HEARTBEAT_MS) {
        return;
    }
    coordinator->heartbeat_sent_ms = now_ms;
    const struct message heartbeat = {.kind = MESSAGE_HEARTBEAT,
                                      .patience_ms = deadlines_patience_ms(coordinator)};
    coordinator_port_send_all(&coordinator->port, &coordinator->membership, &heartbeat);
}

/* A member that was given up may still be there. One that was silent may join again if the job goes
 * on: see newcomers.h. One that has held the job up may not, since it would do so again. */
static void tell_lost(const struct coordinator *coordinator, const struct sender *lost,
                      enum status status)
{
    bool may_come = coordinator->verdict == STATUS_AGAIN && status != STATUS_TIMED_OUT &&
                    lost->role == ROLE_WORKER;
    const struct message stop = {.kind = MESSAGE_STOP,
                                 .reason = may_come ? STATUS_AGAIN : status,
                                 .text = coordinator->reason};
    if (lost->slot != NULL && lost->slot->closed_ms == 0) {
        coordinator_port_send(&coordinator->port, lost->slot->peer, &stop);
    }
}

/* Whether somebody may start the member again: the launcher, which says so when it has ended; or,
 * if there is none, who has started it. */
static bool may_be_started_again(const struct coordinator *coordinator, const struct sender *lost)
{
    return lost->slot != NULL && (!coordinator->is_launched || lost->slot->closed_ms != 0);
}

/* A member is late or lost, as the sentence says. */
static void lose(struct coordinator *coordinator, enum status status, const char *sentence,
                 const struct sender *lost, uint64_t now_ms)
{
    char reason[2 * COORDINATOR_REASON_BYTES + 16];
    const struct message stop = {.kind = MESSAGE_STOP, .reason = status, .text = sentence};
    if (may_be_started_again(coordinator, lost)) {
        const struct slot before = *lost->slot;
        if (handshake_vacate(coordinator, lost, sentence, now_ms)) {
            if (before.closed_ms == 0) {
                coordinator_port_send(&coordinator->port, before.peer, &stop);
            }
            return;
        }
    }
    bool lacks = lost->slot == NULL && coordinator->vacated[0] != '\0' &&
                 membership_lacks(&coordinator->membership);
    snprintf(reason, sizeof(reason), "%s%s%s", sentence, lacks ? "; before that, " : "",
             lacks ? coordinator->vacated : "");
    generation_lose(coordinator, status, reason, lost, now_ms);
    tell_lost(coordinator, lost, status);
}

/* Lets members connect anew where a connection between two that live was closed. True: it was so.
 */
static bool watch_connections(struct coordinator *coordinator, uint64_t now_ms)
{
    struct broken broken;
    enum status status = stalls_check_connections(coordinator, now_ms, &broken);
    if (status == STATUS_TIMED_OUT) {
        lose(coordinator, status, broken.reason, &broken.culprit, now_ms);
    } else if (status == STATUS_AGAIN) {
        generation_renew(coordinator, broken.reason, broken.since_ms, now_ms);
    } else if (status != STATUS_OK) {
        coordinator_close(coordinator, status, broken.reason, &broken.culprit, now_ms);
    }
    return status != STATUS_OK;
}

/* The job goes on without a member: others may be lost together with it. */
static void lose_others(struct coordinator *coordinator, uint64_t now_ms)
{
    char sentence[COORDINATOR_REASON_BYTES];
    struct sender lost;
    enum status status = STATUS_UNREACHABLE;
    while (coordinator->state == COORDINATOR_RENEWING && status != STATUS_OK) {
        status = deadlines_find_lost(coordinator, now_ms, &lost, sentence, sizeof(sentence));
        if (status != STATUS_OK) {
            lose(coordinator, status, sentence, &lost, now_ms);
        }
    }
}

/* Ends the job if a member is late or lost. Otherwise warns of members that may soon be. */
static void watch(struct coordinator *coordinator, uint64_t now_ms, uint64_t away_ms)
{
    char sentence[COORDINATOR_REASON_BYTES];
    deadlines_excuse(coordinator, away_ms, now_ms);
    struct sender culprit = {.slot = NULL};
    enum status status = deadlines_check(coordinator, now_ms, &culprit, sentence, sizeof(sentence));
    if (status != STATUS_OK) {
        lose(coordinator, status, sentence, &culprit, now_ms);
        lose_others(coordinator, now_ms);
        return;
    }
    if (watch_connections(coordinator, now_ms)) {
        return;
    }
    if (stalls_find_deadlock(coordinator, &culprit, sentence, sizeof(sentence))) {
        coordinator_close(coordinator, STATUS_MISMATCH, sentence, &culprit, now_ms);
        return;
    }
    if (stalls_should_warn(coordinator, now_ms, sentence, sizeof(sentence))) {
        coordinator_port_say(&coordinator->port, true, "%s", sentence);
    }
}

/* Gives members that answer the time in which nobody listened. */
static void excuse_answers(struct coordinator *coordinator, uint64_t now_ms, uint64_t away_ms)
{
    coordinator->stopped_ms = attention_excuse(coordinator->stopped_ms, away_ms, now_ms);
    coordinator->told_ms = attention_excuse(coordinator->told_ms, away_ms, now_ms);
}

void coordinator_tick(struct coordinator *coordinator, uint64_t now_ms, uint64_t away_ms)
{
    switch (coordinator->state) {
    case COORDINATOR_GATHERING:
    case COORDINATOR_CONNECTING:
    case COORDINATOR_TRAINING:
        send_heartbeat(coordinator, now_ms);
        watch(coordinator, now_ms, away_ms);
        checkpointing_tick(coordinator, now_ms);
        coordinator_conclude(coordinator, now_ms);
        break;
    case COORDINATOR_RENEWING: // until the turn is over: see server.c
        break;
    case COORDINATOR_CLOSING:
        excuse_answers(coordinator, now_ms, away_ms);
        if (coordinator_is_closed(coordinator, now_ms)) {
            coordinator_enter(coordinator, COORDINATOR_OVER, now_ms);
        }
        break;
    case COORDINATOR_OVER:
        break;
    }
}
