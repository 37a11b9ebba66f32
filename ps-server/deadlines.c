/* Start, silence and standstill. */
#include "ps-server/deadlines.h"

#include <stdio.h>

static double seconds_between(uint64_t from_ms, uint64_t to_ms)
{
    return to_ms > from_ms ? (double)(to_ms - from_ms) / 1000 : 0;
}

/* Members that have not come, then those that have not finished to prepare or to connect. */
static enum status check_start(const struct coordinator *coordinator, uint64_t now_ms,
                               char *ret_reason, size_t reason_size)
{
    const struct membership *membership = &coordinator->membership;
    bool is_later = coordinator->phase_index > 0;
    double waited_s =
        seconds_between(is_later ? coordinator->connecting_ms : coordinator->created_ms, now_ms);
    if (waited_s < coordinator->job->start_timeout) {
        return STATUS_OK;
    }
    const struct {
        const char *role, *slot;
        const struct slot *slots;
        uint32_t count;
    } sides[] = {
        {"workers", "rank", membership->workers, membership->worker_count},
        {"servers", "shard", membership->servers, membership->server_count},
    };
    char who[128];
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        uint32_t missing = membership_count(sides[i].slots, sides[i].count, SLOT_FREE);
        if (missing > 0) {
            membership_list(sides[i].slots, sides[i].count, SLOT_FREE, who, sizeof(who));
            snprintf(ret_reason, reason_size,
                     "only %u of %u %s came within %.0f s; missing: %s %s (--start-timeout)",
                     sides[i].count - missing, sides[i].count, sides[i].role, waited_s,
                     sides[i].slot, who);
            return STATUS_TIMED_OUT;
        }
    }
    bool is_connecting = coordinator->phase == COORDINATOR_CONNECTING;
    membership_list(membership->workers, membership->worker_count,
                    is_connecting ? SLOT_READY : SLOT_JOINED, who, sizeof(who));
    snprintf(ret_reason, reason_size,
             "not everybody was ready within %.0f s; still %s: rank %s (--start-timeout)", waited_s,
             is_connecting ? "connecting" : "preparing", who);
    return STATUS_TIMED_OUT;
}

/* The first member that has been silent for too long. */
static enum status check_lost(struct coordinator *coordinator, struct slot *slots, uint32_t count,
                              uint64_t now_ms, char *ret_reason, size_t reason_size)
{
    bool is_worker = slots == coordinator->membership.workers;
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = &slots[i];
        double silent_s = seconds_between(slot->heard_ms, now_ms);
        if (slot->state == SLOT_FREE || slot->state == SLOT_GONE ||
            silent_s < coordinator->job->lost_after) {
            continue;
        }
        slot->state = SLOT_GONE;
        coordinator->workers_lost += is_worker;
        snprintf(ret_reason, reason_size,
                 "%s %u (host %s, pid %llu) was lost at step %llu: nothing heard for %.1f s",
                 is_worker ? "worker" : "server", i, slot->host,
                 (unsigned long long)slot->process_id, (unsigned long long)slot->step, silent_s);
        return STATUS_UNREACHABLE;
    }
    return STATUS_OK;
}

/* Of the workers that are not done the one that is furthest behind, and of those the one that has
 * been there for longest: it holds all of them up. 0 if all are done. */
static uint32_t find_slowest(const struct coordinator *coordinator)
{
    const struct slot *workers = coordinator->membership.workers;
    const struct slot *slowest = NULL;
    for (uint32_t i = 0; i < coordinator->membership.worker_count; i++) {
        const struct slot *slot = &workers[i];
        if (slot->state == SLOT_DONE || slot->state == SLOT_GONE) {
            continue;
        }
        if (slowest == NULL || slot->step < slowest->step ||
            (slot->step == slowest->step && slot->step_since_ms < slowest->step_since_ms)) {
            slowest = slot;
        }
    }
    return slowest != NULL ? (uint32_t)(slowest - workers) : 0;
}

static double stalled_seconds(const struct coordinator *coordinator, uint64_t now_ms)
{
    const struct slot *slot = &coordinator->membership.workers[find_slowest(coordinator)];
    if (coordinator->phase != COORDINATOR_TRAINING || slot->state == SLOT_DONE) {
        return 0;
    }
    return seconds_between(slot->step_since_ms, now_ms);
}

enum status deadlines_check(struct coordinator *coordinator, uint64_t now_ms, char *ret_reason,
                            size_t reason_size)
{
    struct membership *membership = &coordinator->membership;
    enum status status = check_lost(coordinator, membership->workers, membership->worker_count,
                                    now_ms, ret_reason, reason_size);
    if (status == STATUS_OK) {
        status = check_lost(coordinator, membership->servers, membership->server_count, now_ms,
                            ret_reason, reason_size);
    }
    if (status == STATUS_OK && coordinator->phase < COORDINATOR_TRAINING) {
        status = check_start(coordinator, now_ms, ret_reason, reason_size);
    }
    double stalled_s = stalled_seconds(coordinator, now_ms);
    if (status == STATUS_OK && stalled_s >= coordinator->job->stall_fail) {
        uint32_t rank = find_slowest(coordinator);
        const struct slot *slot = &membership->workers[rank];
        snprintf(ret_reason, reason_size,
                 "worker %u (host %s) has been at step %llu for %.0f s (--stall-fail)", rank,
                 slot->host, (unsigned long long)slot->step, stalled_s);
        status = STATUS_TIMED_OUT;
    }
    return status;
}

bool deadlines_should_warn(struct coordinator *coordinator, uint64_t now_ms, char *ret_sentence,
                           size_t sentence_size)
{
    double stall_warn = coordinator->job->stall_warn;
    double stalled_s = stalled_seconds(coordinator, now_ms);
    if (stalled_s < stall_warn ||
        seconds_between(coordinator->stall_warned_ms, now_ms) < stall_warn) {
        return false;
    }
    coordinator->stall_warned_ms = now_ms;
    uint32_t rank = find_slowest(coordinator);
    const struct slot *slot = &coordinator->membership.workers[rank];
    snprintf(ret_sentence, sentence_size,
             "the job waits for worker %u (host %s, pid %llu): at step %llu for %.0f s", rank,
             slot->host, (unsigned long long)slot->process_id, (unsigned long long)slot->step,
             stalled_s);
    return true;
}
