/* Notes workers that ask to join a running job, and admits them. */
#include "ps-server/coordinator/newcomers.h"

#include "common/job/faults.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"

#include <stdio.h>

// One that has not asked for so long is gone: they ask several times a second.
#define SILENT_MS 3000

static struct newcomer *find(struct newcomers *newcomers, uint64_t peer)
{
    for (uint32_t i = 0; i < newcomers->count; i++) {
        if (newcomers->list[i].peer == peer) {
            return &newcomers->list[i];
        }
    }
    return NULL;
}

static bool is_taken(const struct coordinator *coordinator, uint32_t number)
{
    const struct newcomers *newcomers = &coordinator->newcomers;
    for (uint32_t i = 0; i < newcomers->count; i++) {
        if (newcomers->list[i].number == number) {
            return true;
        }
    }
    return membership_called(&coordinator->membership, ROLE_WORKER, number).slot != NULL;
}

/* The number that it asks for, or the lowest one that nobody has: a worker that was lost may come
 * back when another one has its number. */
static bool pick_number(const struct coordinator *coordinator, const struct wire_member *member,
                        uint32_t *ret_number)
{
    uint32_t number = member->has_rank ? member->rank : 0;
    if (number < JOB_WORKERS_MAX && !is_taken(coordinator, number)) {
        *ret_number = number;
        return true;
    }
    number = 0;
    while (number < JOB_WORKERS_MAX && is_taken(coordinator, number)) {
        number++;
    }
    *ret_number = number;
    return number < JOB_WORKERS_MAX;
}

/* Steps of the copy that the next generation would go on from. */
static uint64_t copied_steps(const struct coordinator *coordinator)
{
    uint64_t copied = coordinator->checkpointing.copied;
    uint64_t begin = coordinator->resume != NULL ? coordinator->resume->step : 0;
    return copied > begin ? copied : begin;
}

uint32_t newcomers_due(const struct coordinator *coordinator)
{
    const struct faults faults = faults_of(coordinator->job);
    uint32_t count = coordinator->newcomers.count;
    if (faults_next_join(&faults) == NULL) {
        return count;
    }
    uint32_t joins = faults_count_joins(&faults, copied_steps(coordinator));
    return joins < count ? joins : count;
}

uint64_t newcomers_awaited_step(const struct coordinator *coordinator)
{
    const struct faults faults = faults_of(coordinator->job);
    const struct fault *join = faults_next_join(&faults);
    return coordinator->newcomers.count > 0 && join != NULL ? join->step : 0;
}

/* NULL, or why the job takes no more workers. */
static const char *why_full(const struct coordinator *coordinator)
{
    uint64_t processes =
        (uint64_t)coordinator->membership.worker_count + coordinator->newcomers.count;
    if (!job_may_redeal(coordinator->job)) {
        return "the job has already begun, and takes no other workers: that needs --on-loss redeal";
    }
    if (processes >= coordinator->job->workers || coordinator->newcomers.count == NEWCOMERS_MAX) {
        return "the job has already begun, and each of its ranks has a worker: a place is free "
               "once one is lost";
    }
    return coordinator->state < COORDINATOR_CLOSING ? NULL : "the job ends";
}

const char *newcomers_take(struct coordinator *coordinator, uint64_t peer,
                           const struct message *join, uint64_t now_ms)
{
    struct newcomers *newcomers = &coordinator->newcomers;
    const struct wire_member *member = join->member;
    newcomers_tidy(newcomers, now_ms);
    struct newcomer *newcomer = find(newcomers, peer);
    uint32_t number;
    if (newcomer == NULL) {
        const char *why = member->role == ROLE_WORKER
                              ? why_full(coordinator)
                              : "the job has already begun, and takes no other servers";
        if (why != NULL || !pick_number(coordinator, member, &number)) {
            return why != NULL ? why : "the job has no more numbers for workers";
        }
        newcomer = &newcomers->list[newcomers->count++];
        *newcomer = (struct newcomer){.peer = peer, .number = number};
        coordinator->checkpointing.spare_due_ms = now_ms;
        coordinator_port_say(&coordinator->port, false,
                             "worker %u asks to join the job: host=%s pid=%llu", number,
                             member->host, (unsigned long long)member->process_id);
    }
    newcomer->heard_ms = now_ms;
    const struct message answer = {.kind = MESSAGE_REFUSE,
                                   .reason = STATUS_AGAIN,
                                   .rank = newcomer->number,
                                   .text = "the job is under way; it takes this worker in soon"};
    coordinator_port_send(&coordinator->port, peer, &answer);
    return NULL;
}

void newcomers_tidy(struct newcomers *newcomers, uint64_t now_ms)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < newcomers->count; i++) {
        if (now_ms - newcomers->list[i].heard_ms < SILENT_MS) {
            newcomers->list[kept++] = newcomers->list[i];
        }
    }
    newcomers->count = kept;
}

void newcomers_admit(struct coordinator *coordinator, uint64_t now_ms)
{
    struct newcomers *newcomers = &coordinator->newcomers;
    char reason[64];
    newcomers_tidy(newcomers, now_ms);
    uint32_t due = newcomers_due(coordinator);
    if (due == 0 || coordinator->state != COORDINATOR_TRAINING) {
        return;
    }
    if (due == 1) {
        snprintf(reason, sizeof(reason), "worker %u has come", newcomers->list[0].number);
    } else {
        snprintf(reason, sizeof(reason), "%u workers have come", due);
    }
    coordinator_close(coordinator, STATUS_AGAIN, reason, NULL, now_ms);
}
