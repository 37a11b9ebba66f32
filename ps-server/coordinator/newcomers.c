/* Notes workers that ask to join a running job, and admits them. */
#include "ps-server/coordinator/newcomers.h"

#include "common/job/carriers.h"
#include "common/job/faults.h"
#include "common/job/job_modes.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/generation.h"

#include <stdio.h>
#include <string.h>

// One that has not asked for so long is gone: they ask several times a second.
#define SILENT_MS 3000

static uint32_t index_of(const struct newcomers *newcomers, uint64_t peer)
{
    uint32_t index = 0;
    while (index < newcomers->count && newcomers->list[index].peer != peer) {
        index++;
    }
    return index;
}

static struct newcomer *find(struct newcomers *newcomers, uint64_t peer)
{
    uint32_t index = index_of(newcomers, peer);
    return index < newcomers->count ? &newcomers->list[index] : NULL;
}

bool newcomers_have(const struct newcomers *newcomers, uint64_t peer)
{
    return index_of(newcomers, peer) < newcomers->count;
}

bool newcomers_have_number(const struct newcomers *newcomers, uint32_t number)
{
    bool has_any = false;
    for (uint32_t i = 0; i < newcomers->count; i++) {
        has_any |= newcomers->list[i].launch != 0 && newcomers->list[i].number == number;
    }
    return has_any;
}

bool newcomers_have_launch(const struct newcomers *newcomers, uint32_t launch)
{
    bool has_any = false;
    for (uint32_t i = 0; launch != 0 && i < newcomers->count; i++) {
        has_any |= newcomers->list[i].launch == launch;
    }
    return has_any;
}

bool newcomers_share_start(const struct newcomers *newcomers, const struct wire_member *member)
{
    bool is_shared = false;
    for (uint32_t i = 0; i < newcomers->count; i++) {
        const struct newcomer *newcomer = &newcomers->list[i];
        bool is_same = membership_is_of(&newcomer->sighting, member);
        is_shared |= member->launch != 0 && newcomer->launch == member->launch && !is_same;
    }
    return is_shared;
}

/* Whether a newcomer has the number. */
static bool is_given(const struct newcomers *newcomers, uint32_t number)
{
    bool has_any = false;
    for (uint32_t i = 0; i < newcomers->count; i++) {
        has_any |= newcomers->list[i].number == number;
    }
    return has_any;
}

static bool is_taken(const struct coordinator *coordinator, uint32_t number)
{
    const struct sender called = membership_called(&coordinator->membership, ROLE_WORKER, number);
    return is_given(&coordinator->newcomers, number) ||
           (called.slot != NULL && called.slot->state != SLOT_GONE);
}

/* The lowest number that nobody has; JOB_WORKERS_MAX: there is none. */
static uint32_t lowest_number(const struct coordinator *coordinator)
{
    uint32_t number = 0;
    while (number < JOB_WORKERS_MAX && is_taken(coordinator, number)) {
        number++;
    }
    return number;
}

/* Whether a launcher's process keeps the number that it asks for, though a free place has the same
 * number. While members come back, the numbers of free places are guesses. The process that had
 * this number before has ended, so the place is another member's. */
static bool keeps_number(const struct coordinator *coordinator, const struct wire_member *member)
{
    const struct slot *slot =
        membership_called(&coordinator->membership, ROLE_WORKER, member->rank).slot;
    return member->launch != 0 && coordinator_takes_back(coordinator) &&
           !is_given(&coordinator->newcomers, member->rank) && slot != NULL &&
           slot->state == SLOT_FREE;
}

/* The number that it asks for, or the lowest one that nobody has: a worker that was lost may come
 * back when another one has its number. */
static bool pick_number(const struct coordinator *coordinator, const struct wire_member *member,
                        uint32_t *ret_number)
{
    uint32_t asked = member->has_rank ? member->rank : 0;
    bool is_free =
        !is_taken(coordinator, asked) || (member->has_rank && keeps_number(coordinator, member));
    uint32_t number = asked < JOB_WORKERS_MAX && is_free ? asked : lowest_number(coordinator);
    if (number == JOB_WORKERS_MAX) {
        return false;
    }
    *ret_number = number;
    return true;
}

void newcomers_leave_number(struct coordinator *coordinator, uint32_t number)
{
    struct newcomers *newcomers = &coordinator->newcomers;
    for (uint32_t i = 0; i < newcomers->count; i++) {
        if (newcomers->list[i].number == number) {
            newcomers->list[i].number = lowest_number(coordinator);
        }
    }
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

/* Worker processes that the job has room for. */
static uint32_t count_places(const struct coordinator *coordinator)
{
    bool has_fewer = job_may_commit(coordinator->job) && coordinator->generation != NULL;
    return has_fewer ? coordinator->generation->places : coordinator->job->workers;
}

/* NULL, or why the job takes no more workers. */
static const char *why_full(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    uint64_t gone = membership_count(membership->workers, membership->worker_count, SLOT_GONE);
    uint64_t processes = membership->worker_count - gone + coordinator->newcomers.count;
    if (!job_may_go_on(coordinator->job)) {
        return "the job has already begun, and takes no other workers: that needs --on-loss "
               "redeal, or commit for a program of its own";
    }
    if (processes >= count_places(coordinator) || coordinator->newcomers.count == NEWCOMERS_MAX) {
        return "the job has already begun, and each of its ranks has a worker: a place is free "
               "once one is lost";
    }
    return coordinator->state < COORDINATOR_CLOSING ? NULL : "the job ends";
}

/* NULL, or why it gets no place. */
static const char *why_refused(struct coordinator *coordinator, const struct wire_member *member)
{
    if (member->role != ROLE_WORKER) {
        return "the job has already begun, and takes no other servers";
    }
    const char *why = why_full(coordinator);
    if (why != NULL) {
        return why;
    }
    char *told = coordinator->newcomers.why;
    const struct membership *membership = &coordinator->membership;
    const struct sender hidden = topology_hidden(coordinator->job, membership, member);
    if (topology_hides(coordinator->job, membership, member)) {
        topology_explain_hidden(member->loopback, told, sizeof(coordinator->newcomers.why));
        return told;
    }
    if (hidden.slot != NULL) { // the job would lose it for the sake of this one
        topology_explain_unreached(&hidden, told, sizeof(coordinator->newcomers.why));
        return told;
    }
    return NULL;
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
        const char *why = why_refused(coordinator, member);
        if (why != NULL || !pick_number(coordinator, member, &number)) {
            return why != NULL ? why : "the job has no more numbers for workers";
        }
        newcomer = &newcomers->list[newcomers->count++];
        *newcomer = (struct newcomer){
            .peer = peer,
            .number = number,
            .launch = member->launch,
            .sighting = {.host_id = member->host_id, .process_id = member->process_id}};
        coordinator->checkpointing.spare_due_ms = now_ms;
        coordinator_port_say(&coordinator->port, false,
                             "worker %u asks to join the job: host=%s pid=%llu", number,
                             member->host, (unsigned long long)member->process_id);
    }
    newcomer->heard_ms = now_ms;
    if (coordinator->state >= COORDINATOR_CLOSING) {
        return NULL; // newcomers_dismiss has told it
    }
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

static void drop(struct newcomers *newcomers, struct newcomer *gone)
{
    size_t behind = (size_t)(newcomers->list + newcomers->count - (gone + 1));
    memmove(gone, gone + 1, behind * sizeof(*gone));
    newcomers->count--;
}

void newcomers_note_closed(struct coordinator *coordinator, uint64_t peer)
{
    struct newcomer *gone = find(&coordinator->newcomers, peer);
    if (gone != NULL) {
        coordinator_port_say(&coordinator->port, false,
                             "worker %u, which had asked to join the job, has gone", gone->number);
        drop(&coordinator->newcomers, gone);
    }
}

void newcomers_note_ended(struct newcomers *newcomers, uint32_t launch)
{
    for (uint32_t i = newcomers->count; launch != 0 && i-- > 0;) {
        if (newcomers->list[i].launch == launch) {
            drop(newcomers, &newcomers->list[i]);
        }
    }
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
    coordinator->admitted = due;
    coordinator_close(coordinator, STATUS_AGAIN, reason, NULL, now_ms);
}

/* How many workers have come to the commit that is under way. */
static uint32_t count_committing(const struct membership *membership)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        count += membership->workers[i].is_committing;
    }
    return count;
}

/* All have come to the commit of these steps. */
static void end_commit(struct coordinator *coordinator, uint64_t step, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        membership->workers[i].is_committing = false;
        membership->workers[i].has_commit = true;
    }
    results_note_commit(&coordinator->results);
    if (step < coordinator->job->steps) { // who comes behind the last one would have nothing to do
        newcomers_admit(coordinator, now_ms);
    }
}

void newcomers_take_commit(struct coordinator *coordinator, const struct sender *from,
                           const struct message *commit, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    const struct job *job = coordinator->job;
    struct slot *slot = from->slot;
    uint32_t before = count_committing(membership);
    if (from->role != ROLE_WORKER || !job_may_commit(job) ||
        coordinator->state >= COORDINATOR_RENEWING || slot->state == SLOT_DONE) {
        return; // not one of ours, or too late
    }
    bool fits = before == 0 ? commit->step >= coordinator->commit_step && commit->step <= job->steps
                            : commit->step == coordinator->commit_step;
    if (slot->is_committing || !fits) {
        coordinator_fail(
            coordinator, STATUS_MISMATCH, from, now_ms,
            "worker %u (host %s) commits after %llu step%s%s, and %s %llu: all have to "
            "commit after the same steps",
            slot->number, slot->host, (unsigned long long)commit->step,
            commit->step == 1 ? "" : "s", slot->is_committing ? " once more" : "",
            before > 0 ? "others after" : "the last commit was after",
            (unsigned long long)coordinator->commit_step);
        return;
    }
    slot->is_committing = true;
    coordinator->commit_step = commit->step;
    if (before + 1 == membership->worker_count) {
        end_commit(coordinator, commit->step, now_ms);
    }
}

void newcomers_share_commit(struct coordinator *coordinator)
{
    struct membership *membership = &coordinator->membership;
    for (uint32_t i = 1; i < membership->worker_count; i++) {
        membership->workers[i].has_commit = membership->workers[0].has_commit;
    }
}

void newcomers_dismiss(struct coordinator *coordinator)
{
    bool is_complete = coordinator->verdict == STATUS_OK;
    const struct message answer = {
        .kind = MESSAGE_REFUSE,
        .reason = is_complete ? STATUS_END_OF_DATA : STATUS_UNREACHABLE,
        .text = is_complete ? "the job is complete, and needs no more workers" : "the job ends"};
    for (uint32_t i = 0; i < coordinator->newcomers.count; i++) {
        coordinator_port_send(&coordinator->port, coordinator->newcomers.list[i].peer, &answer);
    }
}
