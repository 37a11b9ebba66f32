/* Finds members that are late, silent, disconnected or stalled. */
#include "ps-server/coordinator/deadlines.h"

#include "common/base/attention.h"
#include "common/job/job_modes.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"

#include <stdio.h>
#include <string.h>

// A message that was sent before its connection closed may still be waiting to be received.
#define DEADLINES_CLOSED_MS 1000

/* Room for a sentence. */
struct text {
    char *bytes; // borrowed
    size_t size;
};

static void excuse(struct slot *slots, uint32_t count, uint64_t away_ms, uint64_t now_ms)
{
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = &slots[i];
        slot->heard_ms = attention_excuse(slot->heard_ms, away_ms, now_ms);
        if (slot->closed_ms != 0) {
            slot->closed_ms = attention_excuse(slot->closed_ms, away_ms, now_ms);
        }
        if (slot->step_since_ms != 0) {
            slot->step_since_ms = attention_excuse(slot->step_since_ms, away_ms, now_ms);
        }
    }
}

void deadlines_excuse(struct coordinator *coordinator, uint64_t away_ms, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    if (away_ms == 0) {
        return;
    }
    excuse(membership->workers, membership->worker_count, away_ms, now_ms);
    excuse(membership->servers, membership->server_count, away_ms, now_ms);
    if ((double)away_ms >= 1000 * coordinator->job->lost_after) {
        coordinator->absence_ms = away_ms;
        coordinator->absence_ended_ms = now_ms;
    }
    membership->arrived_ms = attention_excuse(membership->arrived_ms, away_ms, now_ms);
    uint64_t *done_ms = &coordinator->checkpointing.done_ms;
    *done_ms = *done_ms != 0 ? attention_excuse(*done_ms, away_ms, now_ms) : 0;
}

void deadlines_note_closed(struct coordinator *coordinator, uint64_t peer, uint64_t now_ms)
{
    membership_note_closed(&coordinator->membership, peer, now_ms);
    newcomers_note_closed(coordinator, peer);
}

uint64_t deadlines_patience_ms(const struct coordinator *coordinator)
{
    return (uint64_t)(2000 * coordinator->job->lost_after *
                      membership_crowding_max(&coordinator->membership));
}

/* Names the workers, or the servers, that have not joined. Returns false if all have. `slot` is the
 * user's word for a slot: rank or shard. */
static bool describe_missing(const struct slot *slots, uint32_t count, const char *role,
                             const char *slot, double waited_s, struct text ret_reason)
{
    char who[128];
    uint32_t missing = membership_count(slots, count, SLOT_FREE);
    if (missing == 0) {
        return false;
    }
    membership_list(slots, count, SLOT_FREE, who, sizeof(who));
    snprintf(ret_reason.bytes, ret_reason.size,
             "only %u of %u %s have joined, none in the last %.0f s; missing: %s %s "
             "(--start-timeout)",
             count - missing, count, role, waited_s, slot, who);
    return true;
}

/* Names the workers that are still preparing or connecting. */
static void describe_unready(const struct membership *membership, bool is_connecting,
                             double waited_s, struct text ret_reason)
{
    char who[128];
    membership_list(membership->workers, membership->worker_count,
                    is_connecting ? SLOT_READY : SLOT_JOINED, who, sizeof(who));
    snprintf(ret_reason.bytes, ret_reason.size,
             "some workers are not ready, and none has become ready in the last %.0f s; still %s: "
             "rank %s (--start-timeout)",
             waited_s, is_connecting ? "connecting" : "preparing", who);
}

/* Checks --start-timeout. Names the members that have not joined, or else those still preparing or
 * connecting. They may be waiting for processors, so each arrival restarts the timeout for the
 * others. */
static enum status check_start(const struct membership *membership, double start_timeout,
                               bool is_connecting, uint64_t now_ms, struct text ret_reason)
{
    double waited_s = deadlines_seconds(membership->arrived_ms, now_ms);
    if (waited_s < start_timeout * membership_crowding_max(membership)) {
        return STATUS_OK;
    }
    if (!describe_missing(membership->workers, membership->worker_count, "workers", "rank",
                          waited_s, ret_reason) &&
        !describe_missing(membership->servers, membership->server_count, "servers", "shard",
                          waited_s, ret_reason)) {
        describe_unready(membership, is_connecting, waited_s, ret_reason);
    }
    return STATUS_TIMED_OUT;
}

/* How many members have not joined. */
static uint32_t count_missing(const struct membership *membership)
{
    return membership_count(membership->workers, membership->worker_count, SLOT_FREE) +
           membership_count(membership->servers, membership->server_count, SLOT_FREE);
}

static enum presence look(const struct coordinator *coordinator, struct slot *slot)
{
    return coordinator_port_look(&coordinator->port, slot);
}

/* Returns how long a silent member is given, and what else is known about it. */
static double patience_s(const struct coordinator *coordinator, struct slot *slot,
                         const char **ret_known)
{
    const struct job *job = coordinator->job;
    *ret_known = "";
    switch (look(coordinator, slot)) {
    case PRESENCE_ENDED:
        *ret_known = ", and its process has ended";
        return job->lost_after;
    case PRESENCE_STOPPED:
        *ret_known = ", and its process is stopped";
        return job->lost_after;
    case PRESENCE_RUNS:
        *ret_known = ", though its process is running (--stall-fail)";
        return job->stall_fail > job->lost_after ? job->stall_fail : job->lost_after;
    case PRESENCE_UNKNOWN:
    default:
        return job->lost_after * membership_crowding(&coordinator->membership, slot,
                                                     count_missing(&coordinator->membership));
    }
}

/* Whether it left because the coordinator was away for too long, which then is to blame. */
static bool left_while_away(const struct coordinator *coordinator, const struct slot *slot)
{
    return slot->closed_ms != 0 && coordinator->absence_ms > 0 &&
           slot->closed_ms <= coordinator->absence_ended_ms + DEADLINES_CLOSED_MS;
}

bool deadlines_may_reconnect(const struct coordinator *coordinator, const struct slot *slot)
{
    return left_while_away(coordinator, slot) && job_outlasts_coordinator(coordinator->job);
}

/* How long a member may be without a connection. */
static uint64_t closed_patience_ms(const struct coordinator *coordinator, const struct slot *slot)
{
    return deadlines_may_reconnect(coordinator, slot)
               ? DEADLINES_CLOSED_MS + (uint64_t)(1000 * coordinator->job->lost_after)
               : DEADLINES_CLOSED_MS;
}

static void describe_closed(const struct coordinator *coordinator, const struct slot *slot,
                            char *ret_why, size_t why_size)
{
    if (left_while_away(coordinator, slot)) {
        snprintf(ret_why, why_size,
                 "its connection was closed while this coordinator was away for %.1f s; it was "
                 "stopped, or had no processor",
                 (double)coordinator->absence_ms / 1000);
    } else {
        snprintf(ret_why, why_size, "its connection was closed");
    }
}

/* Returns whether a member is lost, and how that is known. */
static bool is_lost(const struct coordinator *coordinator, struct slot *slot, uint64_t now_ms,
                    char *ret_why, size_t why_size)
{
    const char *known;
    double silent_s = deadlines_seconds(slot->heard_ms, now_ms);
    if (slot->state == SLOT_FREE || slot->state == SLOT_GONE) {
        return false;
    }
    if (!slot->sighting.is_met) {
        (void)look(coordinator, slot); // while its process is known to exist
    }
    if (slot->closed_ms != 0 && now_ms - slot->closed_ms >= closed_patience_ms(coordinator, slot)) {
        describe_closed(coordinator, slot, ret_why, why_size);
        return true;
    }
    if (silent_s < coordinator->job->lost_after ||
        silent_s < patience_s(coordinator, slot, &known)) {
        return false;
    }
    snprintf(ret_why, why_size, "nothing heard for %.1f s%s", silent_s, known);
    return true;
}

/* The last step of a member that anything told. Steps may be much shorter than the time between two
 * heartbeats, and reports of them have come since. */
static uint64_t heard_step(const struct coordinator *coordinator, const struct sender *member)
{
    const struct results *results = &coordinator->results;
    uint64_t step = member->slot->step;
    if (member->role != ROLE_WORKER || member->index >= coordinator->carriers.processes) {
        return step;
    }
    struct rank_block block = carriers_block(coordinator->carriers, member->index);
    for (uint32_t k = 0; k < block.count && block.first + k < results->worker_count; k++) {
        uint64_t told = results->ranks[block.first + k].step;
        step = told > step ? told : step;
    }
    return step;
}

/* Finds the first worker, or server, that is lost. */
static enum status check_lost(struct coordinator *coordinator, enum member_role role,
                              uint64_t now_ms, struct sender *ret_culprit, struct text ret_reason)
{
    char why[256];
    struct membership *membership = &coordinator->membership;
    struct sender member = membership_member(membership, role, 0);
    while (member.slot != NULL && !is_lost(coordinator, member.slot, now_ms, why, sizeof(why))) {
        member = membership_member(membership, role, member.index + 1);
    }
    if (member.slot == NULL) {
        return STATUS_OK;
    }
    slot_enter(membership, member.slot, SLOT_GONE, now_ms);
    coordinator->workers_lost +=
        role == ROLE_WORKER && !member.slot->is_new && !member.slot->is_awaited; // which is counted
    snprintf(ret_reason.bytes, ret_reason.size,
             "%s %u (host %s, pid %llu) was lost (last heard of at step %llu): %s", role_name(role),
             member.slot->number, member.slot->host, (unsigned long long)member.slot->process_id,
             (unsigned long long)heard_step(coordinator, &member), why);
    *ret_culprit = member;
    return STATUS_UNREACHABLE;
}

/* Whether the process that is to come has ended on this host, or its connection was closed. A
 * launcher, which knows how it ended, says so within that time. */
static bool has_ended(const struct coordinator *coordinator, struct slot *slot, uint64_t now_ms)
{
    bool was_closed = slot->closed_ms != 0 && now_ms >= slot->closed_ms + DEADLINES_CLOSED_MS;
    return was_closed || (now_ms >= slot->heard_ms + DEADLINES_CLOSED_MS &&
                          look(coordinator, slot) == PRESENCE_ENDED);
}

/* Those that have not come back to a later generation in time. */
struct late {
    struct sender first; // its slot is NULL: there are none
    double waited_s;     // for that one
    char others[128];    // "; nor did worker 2, worker 3"
};

/* Whether nothing was heard of one that is to come back, or it has ended, or is in a step that does
 * not end. */
static bool is_late(const struct coordinator *coordinator, struct slot *slot, double crowding,
                    uint64_t now_ms)
{
    const struct job *job = coordinator->job;
    double most_s = job->stall_fail > job->lost_after ? job->stall_fail : job->lost_after;
    return slot->state == SLOT_FREE &&
           (deadlines_seconds(slot->heard_ms, now_ms) >= job->lost_after * crowding ||
            deadlines_seconds(slot->step_since_ms, now_ms) >= most_s * crowding ||
            has_ended(coordinator, slot, now_ms));
}

static void note_late(struct late *late, const struct sender *member, uint64_t now_ms)
{
    size_t said = strlen(late->others);
    if (late->first.slot == NULL) {
        late->first = *member;
        late->waited_s = deadlines_seconds(member->slot->step_since_ms, now_ms);
    } else if (member->slot->number < JOB_SERVERS_MAX || member->role == ROLE_WORKER) {
        snprintf(late->others + said, sizeof(late->others) - said, "%s %s %u",
                 said == 0 ? "; nor did" : ",", role_name(member->role), member->slot->number);
    }
}

/* Marks those that are late as gone: they are lost together. */
static enum status check_return(struct coordinator *coordinator, uint64_t now_ms,
                                struct sender *ret_culprit, struct text ret_reason)
{
    static const enum member_role roles[] = {ROLE_SERVER, ROLE_WORKER};
    struct membership *membership = &coordinator->membership;
    double crowding = membership_crowding_max(membership);
    struct late late = {.first = {.slot = NULL}};
    for (uint32_t i = 0; i < 2; i++) {
        struct sender at = membership_member(membership, roles[i], 0);
        for (; at.slot != NULL; at = membership_member(membership, roles[i], at.index + 1)) {
            if (is_late(coordinator, at.slot, crowding, now_ms)) {
                note_late(&late, &at, now_ms);
                slot_enter(membership, at.slot, SLOT_GONE, now_ms);
                coordinator->workers_lost +=
                    roles[i] == ROLE_WORKER && !at.slot->is_new && !at.slot->was_lost;
            }
        }
    }
    struct slot *slot = late.first.slot;
    if (slot == NULL) {
        return STATUS_OK;
    }
    snprintf(ret_reason.bytes, ret_reason.size,
             "%s %u did not come %swithin %.0f s of being told to%s%s", role_name(late.first.role),
             slot->number, slot->is_new ? "" : "back ", late.waited_s,
             look(coordinator, slot) == PRESENCE_ENDED ? ": its process has ended" : "",
             late.others);
    *ret_culprit = late.first;
    return STATUS_UNREACHABLE;
}

/* Those who have all joined may be timing what their GPUs' libraries offer. */
static double start_patience_s(const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    bool may_time = count_missing(&coordinator->membership) == 0;
    return job->start_timeout + (may_time ? job_timing_seconds(job) : 0);
}

/* Whether a later generation still waits for members that were there before. */
static bool may_return(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    return coordinator->generation != NULL && count_missing(membership) > 0;
}

/* What the state has a deadline for. */
static enum status check_state(struct coordinator *coordinator, uint64_t now_ms,
                               struct sender *ret_culprit, struct text ret_reason)
{
    const struct job *job = coordinator->job;
    struct membership *membership = &coordinator->membership;
    switch (coordinator->state) {
    case COORDINATOR_GATHERING:
        if (may_return(coordinator)) {
            return check_return(coordinator, now_ms, ret_culprit, ret_reason);
        }
        return check_start(membership, start_patience_s(coordinator), false, now_ms, ret_reason);
    case COORDINATOR_CONNECTING:
        return check_start(membership, job->start_timeout, true, now_ms, ret_reason);
    case COORDINATOR_TRAINING:
        return stalls_check(membership, job->stall_fail, now_ms, ret_culprit, ret_reason.bytes,
                            ret_reason.size);
    case COORDINATOR_RENEWING:
    case COORDINATOR_CLOSING:
    case COORDINATOR_OVER:
        break;
    }
    return STATUS_OK;
}

/* Members of whom nothing has been heard for a while, neither by the network nor by their host. */
struct unseen {
    uint32_t count;
    uint64_t heard_ms; // the last sign of any
};

static bool is_out_of_sight(const struct coordinator *coordinator, struct slot *slot,
                            uint64_t now_ms)
{
    double silent_s = deadlines_seconds(slot->heard_ms, now_ms);
    return slot->closed_ms == 0 && 2 * silent_s >= coordinator->job->lost_after &&
           look(coordinator, slot) == PRESENCE_UNKNOWN;
}

/* Whether all members of a role are out of sight, but for the coordinator's own server, of which it
 * always hears. */
static bool are_out_of_sight(const struct coordinator *coordinator, enum member_role role,
                             uint64_t now_ms, struct unseen *unseen)
{
    const struct job *job = coordinator->job;
    struct sender at = membership_member(&coordinator->membership, role, 0);
    for (; at.slot != NULL; at = membership_member(&coordinator->membership, role, at.index + 1)) {
        bool is_own =
            role == ROLE_SERVER && job_first_server(job) == 0 && at.index % job->servers == 0;
        bool is_there = at.slot->state != SLOT_FREE || coordinator_takes_back(coordinator);
        if (is_own || !is_there || at.slot->state == SLOT_GONE) {
            continue;
        }
        if (!is_out_of_sight(coordinator, at.slot, now_ms)) {
            return false;
        }
        unseen->count++;
        if (at.slot->heard_ms > unseen->heard_ms) {
            unseen->heard_ms = at.slot->heard_ms;
        }
    }
    return true;
}

/* Whether there are several members, and all are out of sight. */
static bool sees_nobody(const struct coordinator *coordinator, uint64_t now_ms,
                        struct unseen *ret_unseen)
{
    bool has_begun = coordinator->state == COORDINATOR_CONNECTING ||
                     coordinator->state == COORDINATOR_TRAINING ||
                     coordinator_takes_back(coordinator);
    *ret_unseen = (struct unseen){0, 0};
    return has_begun && job_outlasts_coordinator(coordinator->job) &&
           are_out_of_sight(coordinator, ROLE_WORKER, now_ms, ret_unseen) &&
           are_out_of_sight(coordinator, ROLE_SERVER, now_ms, ret_unseen) && ret_unseen->count > 1;
}

/* Whether those that are not seen still wait. */
static bool may_come_back(const struct coordinator *coordinator, uint64_t now_ms,
                          const struct unseen *unseen)
{
    uint64_t most_ms = deadlines_patience_ms(coordinator) +
                       (uint64_t)(1000 * coordinator->job->outlast); // as long as they wait
    return now_ms - unseen->heard_ms < most_ms;
}

bool deadlines_hears_nobody(const struct coordinator *coordinator, uint64_t now_ms)
{
    struct unseen unseen;
    return sees_nobody(coordinator, now_ms, &unseen) && may_come_back(coordinator, now_ms, &unseen);
}

/* Whether it is this process that is cut off, so that nobody is judged. When it hears somebody
 * again, the others could not have been heard before either. */
static bool note_deafness(struct coordinator *coordinator, uint64_t now_ms)
{
    struct unseen unseen;
    if (sees_nobody(coordinator, now_ms, &unseen)) {
        coordinator->deaf_ms = unseen.heard_ms;
        return may_come_back(coordinator, now_ms, &unseen);
    }
    if (coordinator->deaf_ms != 0) {
        uint64_t away_ms = now_ms - coordinator->deaf_ms;
        coordinator->deaf_ms = 0;
        deadlines_excuse(coordinator, away_ms, now_ms);
    }
    return false;
}

enum status deadlines_find_lost(struct coordinator *coordinator, uint64_t now_ms,
                                struct sender *ret_culprit, char *ret_reason, size_t reason_size)
{
    struct text reason = {ret_reason, reason_size};
    enum status status = check_lost(coordinator, ROLE_WORKER, now_ms, ret_culprit, reason);
    return status == STATUS_OK ? check_lost(coordinator, ROLE_SERVER, now_ms, ret_culprit, reason)
                               : status;
}

enum status deadlines_check(struct coordinator *coordinator, uint64_t now_ms,
                            struct sender *ret_culprit, char *ret_reason, size_t reason_size)
{
    if (note_deafness(coordinator, now_ms)) {
        return STATUS_OK;
    }
    enum status status =
        deadlines_find_lost(coordinator, now_ms, ret_culprit, ret_reason, reason_size);
    return status == STATUS_OK ? check_state(coordinator, now_ms, ret_culprit,
                                             (struct text){ret_reason, reason_size})
                               : status;
}

bool deadlines_is_deaf(const struct coordinator *coordinator, uint64_t now_ms)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t count = membership->worker_count + membership->server_count, silent = 0, running = 0;
    bool has_begun =
        coordinator->state == COORDINATOR_CONNECTING || coordinator->state == COORDINATOR_TRAINING;
    uint64_t most_ms = deadlines_patience_ms(coordinator) / 2;
    for (uint32_t i = 0; has_begun && i < count; i++) {
        struct slot *slot = membership_slot(membership, i);
        if (slot->state == SLOT_FREE || slot->state == SLOT_GONE) {
            continue;
        }
        if (slot->closed_ms != 0 || now_ms < slot->heard_ms + most_ms) {
            return false;
        }
        silent++;
        running += look(coordinator, slot) == PRESENCE_RUNS;
    }
    return silent > 1 && running > 0;
}
