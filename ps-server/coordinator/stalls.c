/* Finds the member that holds up a job while all members are connected, and warns of members. */
#include "common/job/carriers.h"
#include "common/plan/blame.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_BYTES         128 // of a sentence about who waits for whom
#define CIRCLE_MEMBERS_MAX 4   // that are named
#define TRIES_MAX          3   // to go on from the same step when connections are closed
#define BROKEN_MS          500 // that a connection is closed before members connect anew

/* The member that holds the others up. */
struct stall {
    struct sender culprit; // a worker
    struct sender other;   // that it does not reach; its slot is NULL: none
    struct sender waiter;  // for the culprit, or for the other; its slot is NULL: not known
    bool goes_round; // members wait for each other in a circle that a server is in, and nothing
                     // shows where it is broken: nobody is to blame
};

/* Returns the worker that is furthest behind or, of several, the one that has been at its step for
 * longest. Returns 0 if all are done. */
static uint32_t find_slowest(const struct membership *membership)
{
    const struct slot *workers = membership->workers;
    const struct slot *slowest = NULL;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
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

/* How long the slowest worker has been at its step. */
static double stalled_seconds(const struct membership *membership, uint64_t now_ms)
{
    const struct slot *slot = &membership->workers[find_slowest(membership)];
    return slot->state != SLOT_DONE ? deadlines_seconds(slot->step_since_ms, now_ms) : 0;
}

/* Workers come first, then servers. */
static struct sender member_at(const struct membership *membership, uint32_t index)
{
    uint32_t workers = membership->worker_count;
    return index < workers ? membership_member(membership, ROLE_WORKER, index)
                           : membership_member(membership, ROLE_SERVER, index - workers);
}

static struct blame_member blame_member_of(const struct membership *membership,
                                           const struct slot *slot)
{
    const struct wire_wait *wait = &slot->wait;
    uint32_t offset = wait->role == ROLE_SERVER ? membership->worker_count : 0; // also of `given`
    return (struct blame_member){
        .awaits = slot->is_waiting ? offset + wait->index : BLAME_NOBODY,
        .taken = wait->taken,
        .given = wait->given,
        .given_first = offset,
        .given_count = slot->is_waiting ? wait->given_count : 0,
    };
}

/* Follows who waits for whom from a worker. False: there is no memory for it. */
static bool follow(const struct membership *membership, uint32_t first, struct blame *ret_blame)
{
    uint32_t count = membership->worker_count + membership->server_count;
    struct blame_member *members = calloc((size_t)count + 1, sizeof(*members));
    for (uint32_t i = 0; members != NULL && i < count; i++) {
        members[i] = blame_member_of(membership, member_at(membership, i).slot);
    }
    if (members == NULL) {
        return false;
    }
    *ret_blame = blame_find(members, count, first);
    free(members);
    return true;
}

/* Of two that do not reach each other, the one that has to go: servers hold what others cannot
 * replace at once. */
static bool goes_first(const struct sender *member, const struct sender *other)
{
    return other->role == ROLE_SERVER ||
           (member->role == ROLE_WORKER && member->slot->number > other->slot->number);
}

static struct stall find_stall(const struct membership *membership)
{
    uint32_t first = find_slowest(membership);
    struct stall stall = {.culprit = membership_member(membership, ROLE_WORKER, first)};
    assert(stall.culprit.slot != NULL);
    struct blame blame;
    if (!follow(membership, first, &blame) || blame.waiter == BLAME_NOBODY) {
        return stall;
    }
    struct sender waiter = member_at(membership, blame.waiter);
    struct sender awaited = member_at(membership, blame.awaited);
    stall.waiter = waiter;
    stall.goes_round =
        !blame.is_known && (waiter.role == ROLE_SERVER || awaited.role == ROLE_SERVER);
    // A server that waits for nobody, and is heard, has not got what the worker has sent.
    if (blame.is_pair || awaited.role == ROLE_SERVER) {
        bool is_waiter = goes_first(&waiter, &awaited);
        stall.culprit = is_waiter ? waiter : awaited;
        stall.other = is_waiter ? awaited : waiter;
    } else if (blame.is_known) {
        stall.culprit = awaited;
    } else if (!stall.goes_round) {
        stall.waiter.slot = NULL; // all wait, and nothing shows for what
    }
    return stall;
}

/* "worker 1 has waited 10 s for a chunk of worker 3"; "" if it is not known who waits. */
static void describe_wait(const struct membership *membership, const struct sender *waiter,
                          char ret_text[WAIT_BYTES])
{
    static const char *const names[] = {
        [WIRE_WAIT_CHUNK] = "a chunk",
        [WIRE_WAIT_PARAMS] = "parameters",
        [WIRE_WAIT_GRADIENTS] = "gradients",
    };
    ret_text[0] = '\0';
    if (waiter->slot == NULL) {
        return;
    }
    const struct wire_wait *wait = &waiter->slot->wait;
    const struct sender awaited = membership_member(membership, wait->role, wait->index);
    assert(awaited.slot != NULL); // slot_note_wait has looked
    snprintf(ret_text, WAIT_BYTES, "%s %u has waited %.0f s for %s of %s %u",
             role_name(waiter->role), waiter->slot->number, (double)wait->waited_ms / 1000,
             names[wait->what], role_name(awaited.role), awaited.slot->number);
}

/* "worker 3 (host a) and worker 1 (host b) do not reach each other: …" */
static void describe_pair(const struct stall *stall, const char *wait, char *ret_text, size_t size)
{
    const struct slot *slot = stall->culprit.slot, *other = stall->other.slot;
    snprintf(ret_text, size, "%s %u (host %s) and %s %u (host %s) do not reach each other: %s",
             role_name(stall->culprit.role), slot->number, slot->host, role_name(stall->other.role),
             other->number, other->host, wait);
}

/* "worker 3 waits for server 1, which waits for worker 0, which …" */
static void describe_circle(const struct membership *membership, const struct sender *first,
                            char *ret_text, size_t size)
{
    struct sender at = *first;
    assert(at.slot != NULL); // it is of the circle
    int used = snprintf(ret_text, size,
                        "members wait for each other, and nothing shows where a "
                        "message was lost: %s %u",
                        role_name(at.role), at.slot->number);
    for (uint32_t i = 0; i < CIRCLE_MEMBERS_MAX && at.slot->is_waiting; i++) {
        at = membership_member(membership, at.slot->wait.role, at.slot->wait.index);
        assert(at.slot != NULL); // slot_note_wait has looked
        if (used < 0 || (size_t)used >= size) {
            return;
        }
        used += snprintf(ret_text + used, size - (size_t)used, "%s waits for %s %u",
                         i == 0 ? "" : ", which", role_name(at.role), at.slot->number);
    }
}

enum status stalls_check(const struct membership *membership, double stall_fail, uint64_t now_ms,
                         struct sender *ret_culprit, char *ret_reason, size_t reason_size)
{
    char wait[WAIT_BYTES], pair[MEMBERSHIP_ERROR_BYTES];
    if (stalled_seconds(membership, now_ms) < stall_fail) {
        return STATUS_OK;
    }
    const struct stall stall = find_stall(membership);
    const struct slot *slot = stall.culprit.slot;
    describe_wait(membership, &stall.waiter, wait);
    if (stall.goes_round) {
        describe_circle(membership, &stall.waiter, pair, sizeof(pair));
        snprintf(ret_reason, reason_size, "%s (--stall-fail)", pair);
    } else if (stall.other.slot != NULL) {
        describe_pair(&stall, wait, pair, sizeof(pair));
        snprintf(ret_reason, reason_size, "%s (--stall-fail)", pair);
    } else {
        snprintf(ret_reason, reason_size,
                 "worker %u (host %s) has been at step %llu for %.0f s%s%s (--stall-fail)",
                 slot->number, slot->host, (unsigned long long)slot->step,
                 deadlines_seconds(slot->step_since_ms, now_ms), wait[0] != '\0' ? ": " : "", wait);
    }
    *ret_culprit = stall.culprit;
    return STATUS_TIMED_OUT;
}

static bool should_warn_of_stall(struct coordinator *coordinator, uint64_t now_ms,
                                 char *ret_sentence, size_t sentence_size)
{
    const struct membership *membership = &coordinator->membership;
    double stall_warn = coordinator->job->stall_warn;
    char wait[WAIT_BYTES];
    if (coordinator->state != COORDINATOR_TRAINING ||
        stalled_seconds(membership, now_ms) < stall_warn ||
        deadlines_seconds(coordinator->stall_warned_ms, now_ms) < stall_warn) {
        return false;
    }
    coordinator->stall_warned_ms = now_ms;
    if (checkpoint_schedule_holds_up(coordinator,
                                     membership->workers[find_slowest(membership)].step)) {
        return false; // the disk was named
    }
    const struct stall stall = find_stall(membership);
    const struct slot *slot = stall.culprit.slot;
    describe_wait(membership, &stall.waiter, wait);
    if (stall.goes_round) {
        describe_circle(membership, &stall.waiter, ret_sentence, sentence_size);
        return true;
    }
    if (stall.other.slot != NULL) {
        describe_pair(&stall, wait, ret_sentence, sentence_size);
        return true;
    }
    snprintf(ret_sentence, sentence_size,
             "the job is waiting for worker %u (host %s, pid %llu), which has been at step %llu "
             "for %.0f s%s%s",
             slot->number, slot->host, (unsigned long long)slot->process_id,
             (unsigned long long)slot->step, deadlines_seconds(slot->step_since_ms, now_ms),
             wait[0] != '\0' ? ": " : "", wait);
    return true;
}

/* Whether the member takes part in the job, as far as is known. */
static bool is_there(const struct slot *slot)
{
    return slot->state != SLOT_FREE && slot->state != SLOT_DONE && slot->state != SLOT_GONE &&
           slot->closed_ms == 0;
}

/* Finds two live members whose connection was closed. A process that ends closes its connections,
 * too: it is missed within BROKEN_MS. */
static bool find_broken(const struct membership *membership, uint64_t now_ms,
                        struct sender *ret_member, struct sender *ret_other)
{
    uint32_t count = membership->worker_count + membership->server_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct sender member = member_at(membership, i);
        const struct slot *slot = member.slot;
        if (!slot->has_broken || now_ms - slot->broken_ms < BROKEN_MS) {
            continue;
        }
        const struct sender other =
            membership_member(membership, slot->broken_role, slot->broken_index);
        if (is_there(slot) && is_there(other.slot)) {
            *ret_member = member;
            *ret_other = other;
            return true;
        }
    }
    return false;
}

/* How many generations in a row, with this one, have begun at its step. */
static uint32_t count_tries(const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    uint32_t count = 0;
    while (generation != NULL && count < generation->recovery_count &&
           generation->recoveries[generation->recovery_count - 1 - count].begin_step ==
               generation_begin_step(coordinator)) {
        count++;
    }
    return count;
}

bool stalls_may_renew(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    bool has_moved = coordinator->generation == NULL;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        has_moved = has_moved || membership->workers[i].step > generation_begin_step(coordinator);
    }
    return has_moved && count_tries(coordinator) < TRIES_MAX;
}

enum status stalls_check_connections(const struct coordinator *coordinator, uint64_t now_ms,
                                     struct broken *ret_broken)
{
    struct sender member, other;
    bool has_begun =
        coordinator->state == COORDINATOR_CONNECTING || coordinator->state == COORDINATOR_TRAINING;
    if (!has_begun || !find_broken(&coordinator->membership, now_ms, &member, &other)) {
        return STATUS_OK;
    }
    bool is_first = goes_first(&member, &other);
    const struct stall stall = {.culprit = is_first ? member : other,
                                .other = is_first ? other : member};
    *ret_broken = (struct broken){.culprit = stall.culprit, .since_ms = member.slot->broken_ms};
    describe_pair(&stall, "their connection was closed", ret_broken->reason,
                  sizeof(ret_broken->reason));
    if (!job_may_go_on(coordinator->job)) {
        return STATUS_UNREACHABLE;
    }
    return stalls_may_renew(coordinator) ? STATUS_AGAIN : STATUS_TIMED_OUT;
}

/* Whether a worker of a program of one's own makes no step until others do something: it has left
 * an open job, which ends when all have, or has given to a sum that others have not. */
static bool is_out_of_steps(const struct coordinator *coordinator, uint32_t index)
{
    const struct slot *slot = &coordinator->membership.workers[index];
    return (slot->state == SLOT_DONE && job_is_open(coordinator->job)) ||
           (coordinator->sums.arrived > 0 && coordinator->sums.has[index]);
}

/* The worker furthest behind that cannot go on by itself, and the one furthest ahead. False: the
 * difference is allowed. */
static bool find_uneven(const struct coordinator *coordinator, uint32_t *ret_behind,
                        uint32_t *ret_ahead)
{
    const struct membership *membership = &coordinator->membership;
    const struct slot *workers = membership->workers;
    uint32_t behind = membership->worker_count, ahead = 0;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        ahead = workers[i].step > workers[ahead].step ? i : ahead;
        bool is_first = behind == membership->worker_count;
        if (is_out_of_steps(coordinator, i) &&
            (is_first || workers[i].step < workers[behind].step)) {
            behind = i;
        }
    }
    *ret_behind = behind;
    *ret_ahead = ahead;
    return behind < membership->worker_count &&
           workers[ahead].step > workers[behind].step + coordinator->job->mode.slack_steps;
}

/* Whether a worker gives to no sum any more: it has left, or waits for the start of training, which
 * waits for all. */
static bool is_past_sums(const struct coordinator *coordinator, const struct slot *slot)
{
    return slot->state == SLOT_DONE ||
           (coordinator->state != COORDINATOR_TRAINING && slot->state == SLOT_READY);
}

/* The first worker that waits for a sum, and one that is past it. */
static bool find_deserted(const struct coordinator *coordinator, uint32_t *ret_waiting,
                          uint32_t *ret_gone)
{
    const struct membership *membership = &coordinator->membership;
    bool has_gone = false, is_waiting = false;
    for (uint32_t i = membership->worker_count; coordinator->sums.arrived > 0 && i-- > 0;) {
        bool has_given = coordinator->sums.has[i];
        if (has_given) {
            *ret_waiting = i;
            is_waiting = true;
        } else if (is_past_sums(coordinator, &membership->workers[i])) {
            *ret_gone = i;
            has_gone = true;
        }
    }
    return has_gone && is_waiting;
}

/* A collective that somebody has left, or trains, without. */
static bool explain_deserted(const struct coordinator *coordinator, struct sender *ret_culprit,
                             char *ret_reason, size_t reason_size)
{
    uint32_t waiting_index = 0, gone_index = 0;
    if (!find_deserted(coordinator, &waiting_index, &gone_index)) {
        return false;
    }
    const struct membership *membership = &coordinator->membership;
    const struct slot *waiting = &membership->workers[waiting_index];
    const struct slot *gone = &membership->workers[gone_index];
    bool is_without_model = coordinator->tensor_count > 0 && coordinator->parameters == 0;
    snprintf(ret_reason, reason_size,
             "worker %u (host %s) waits in a collective, and worker %u (host %s) has %s without it",
             waiting->number, waiting->host, gone->number, gone->host,
             gone->state == SLOT_DONE || is_without_model ? "left" : "gone on to train");
    *ret_culprit = membership_member(membership, ROLE_WORKER, gone_index);
    return true;
}

/* A gradient of one that makes no more, or none until others come. */
static bool explain_uneven(const struct coordinator *coordinator, struct sender *ret_culprit,
                           char *ret_reason, size_t reason_size)
{
    const struct job *job = coordinator->job;
    const struct membership *membership = &coordinator->membership;
    bool is_bound = job->mode.kind != MODE_PS_ASYNC && job->backup == 0;
    uint32_t behind_index = 0, ahead_index = 0;
    if (coordinator->state != COORDINATOR_TRAINING || !is_bound ||
        !find_uneven(coordinator, &behind_index, &ahead_index)) {
        return false;
    }
    const struct slot *behind = &membership->workers[behind_index];
    const struct slot *ahead = &membership->workers[ahead_index];
    char rule[64];
    if (job->mode.kind == MODE_PS_SSP) {
        snprintf(rule, sizeof(rule), "may differ by at most %u", job->mode.slack_steps);
    } else {
        snprintf(rule, sizeof(rule), "must be the same");
    }
    snprintf(
        ret_reason, reason_size,
        "worker %u (host %s) %s after %llu step%s, but worker %u (host %s) is in step %llu: in "
        "%s the numbers of steps of all processes %s",
        behind->number, behind->host,
        behind->state == SLOT_DONE ? "left" : "waits, to leave or in a collective,",
        (unsigned long long)behind->step, behind->step == 1 ? "" : "s", ahead->number, ahead->host,
        (unsigned long long)ahead->step, mode_text(job->mode).text, rule);
    *ret_culprit = membership_member(membership, ROLE_WORKER, behind_index);
    return true;
}

bool stalls_find_deadlock(const struct coordinator *coordinator, struct sender *ret_culprit,
                          char *ret_reason, size_t reason_size)
{
    return job_is_external(coordinator->job) &&
           (explain_deserted(coordinator, ret_culprit, ret_reason, reason_size) ||
            explain_uneven(coordinator, ret_culprit, ret_reason, reason_size));
}

/* Finds the first member that has been silent for longer than --lost-after and is not marked as
 * gone. */
static bool find_silent(const struct coordinator *coordinator, uint64_t now_ms, bool *ret_is_worker,
                        uint32_t *ret_index)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t count = membership->worker_count + membership->server_count;
    for (uint32_t i = 0; i < count; i++) {
        bool is_worker = i < membership->worker_count;
        uint32_t index = is_worker ? i : i - membership->worker_count;
        const struct slot *slot = membership_slot(membership, i);
        bool is_in = slot->state != SLOT_FREE && slot->state != SLOT_GONE;
        if (is_in && deadlines_seconds(slot->heard_ms, now_ms) >= coordinator->job->lost_after) {
            *ret_is_worker = is_worker;
            *ret_index = index;
            return true;
        }
    }
    return false;
}

static bool should_warn_of_silence(struct coordinator *coordinator, uint64_t now_ms,
                                   char *ret_sentence, size_t sentence_size)
{
    bool is_worker;
    uint32_t index;
    bool is_due =
        coordinator->silence_warned_ms == 0 ||
        deadlines_seconds(coordinator->silence_warned_ms, now_ms) >= coordinator->job->stall_warn;
    if (!is_due || !find_silent(coordinator, now_ms, &is_worker, &index)) {
        return false;
    }
    coordinator->silence_warned_ms = now_ms;
    struct slot *slot = is_worker ? &coordinator->membership.workers[index]
                                  : &coordinator->membership.servers[index];
    snprintf(ret_sentence, sentence_size,
             "nothing heard from %s %u (host %s, pid %llu) for %.1f s; it is given more time, "
             "because %s",
             is_worker ? "worker" : "server", slot->number, slot->host,
             (unsigned long long)slot->process_id, deadlines_seconds(slot->heard_ms, now_ms),
             deadlines_hears_nobody(coordinator, now_ms)
                 ? "nothing is heard from any other either: is the network cut? They train on, and "
                   "come back (--outlast)"
             : coordinator_port_look(&coordinator->port, slot) == PRESENCE_RUNS
                 ? "its process is running: is the host overloaded?"
                 : "its host has more processes of the job than cores");
    return true;
}

bool stalls_should_warn(struct coordinator *coordinator, uint64_t now_ms, char *ret_sentence,
                        size_t sentence_size)
{
    return should_warn_of_silence(coordinator, now_ms, ret_sentence, sentence_size) ||
           (!deadlines_hears_nobody(coordinator, now_ms) &&
            should_warn_of_stall(coordinator, now_ms, ret_sentence, sentence_size));
}
