/* Takes members in that train already. */
#include "ps-server/returning/returning.h"

#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/job/job_text.h"
#include "common/job/phases.h"
#include "ps-server/coordinator/coordinator_handshake.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/returning/returning_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(WIRE_OPTIMIZER_BYTES == JOB_OPTIMIZER_TEXT_BYTES, "READY's text and BACK's are one");

bool returning_may_begin(const struct coordinator *coordinator)
{
    return coordinator->state == COORDINATOR_GATHERING && coordinator->generation == NULL;
}

bool returning_has_begun(const struct message *back)
{
    return back->generation > 0 || back->back->trained_ms > 0;
}

void returning_release(struct coordinator *coordinator, const struct message *back)
{
    struct sender at = membership_same(&coordinator->membership, back->member);
    if (at.slot != NULL) {
        slot_release(at.slot);
    }
}

bool returning_is_replaced(const struct coordinator *coordinator, const struct message *back)
{
    return !coordinator_takes_back(coordinator) && back->back->term > coordinator->term;
}

/* When the coordinator of one that is back gave its last sign. */
static uint64_t lost_ms_of(const struct message *back, uint64_t now_ms)
{
    return back->back->alone_ms < now_ms ? now_ms - back->back->alone_ms : 0;
}

bool returning_is_old(const struct coordinator *coordinator, uint64_t peer,
                      const struct message *back)
{
    struct sender at;
    return coordinator->is_returned && coordinator->state != COORDINATOR_GATHERING &&
           back->back->term < coordinator->term &&
           membership_find(&coordinator->membership, peer, &at);
}

enum status returning_generation(const struct message *back, const struct job *job,
                                 const struct returning_past *past, uint64_t now_ms,
                                 struct generation *ret_generation)
{
    uint32_t number = back->generation < UINT32_MAX ? back->generation + 1 : back->generation;
    struct generation next = {
        .number = number,
        .process_count = job_carriers(job).processes,
        .server_count = job->servers,
        .lost_ms = lost_ms_of(back, now_ms),
        .started_ms = now_ms,
        .seconds_before = past->seconds + (double)back->back->trained_ms / 1000,
        .restarts_before = past->restarts > number ? past->restarts - number : 0,
    };
    next.workers = calloc(next.process_count, sizeof(*next.workers));
    next.servers = calloc((size_t)next.server_count + 1, sizeof(*next.servers));
    enum status status = generation_list_recoveries(past->before, &next);
    if (next.workers == NULL || next.servers == NULL || status != STATUS_OK) {
        generation_finish(&next);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < next.process_count; i++) {
        next.workers[i].number = i; // until it says another one
    }
    for (uint32_t i = 0; i < next.server_count; i++) {
        next.servers[i].number = job_first_server(job) + i; // likewise
    }
    struct recovery *last = &next.recoveries[next.recovery_count - 1];
    snprintf(last->reason, sizeof(last->reason), "the coordinator was %s",
             past->was_away ? "away" : "lost");
    last->processes = next.process_count;
    if (next.recovery_count > 1) {
        last[-1].bytes += past->fetched_bytes;
    }
    *ret_generation = next;
    return STATUS_OK;
}

/* Model, data and optimizer, as the first one that is back has them, and how gradients are added
 * up. False: they make no sense. */
static bool take_model(struct coordinator *coordinator, const struct message *back)
{
    char why[COORDINATOR_REASON_BYTES];
    struct message ready = *back;
    ready.text = back->member->optimizer;
    if (!handshake_take_optimizer(coordinator, &ready, why, sizeof(why))) {
        return false;
    }
    handshake_take_model(coordinator, back);
    layout_merge(&coordinator->layout, back->start->bucket_bytes, &coordinator->phase_layout);
    coordinator->topology.all_reduce = back->start->all_reduce;
    coordinator->topology.limits = back->start->limits;
    tuning_init(coordinator->job, coordinator->train_samples,
                back->start->all_reduce == ALL_REDUCE_SHARED, &coordinator->tuning);
    tuning_resume(&coordinator->tuning, back->start->bucket_bytes);
    return true;
}

/* Whether a member that comes back has a commit if any of them has: see share_commit. */
static bool may_have_commit(const struct coordinator *coordinator, enum member_role role)
{
    return role == ROLE_WORKER && job_may_commit(coordinator->job);
}

void returning_begin(struct returning *returning, const struct message *back, const struct job *own,
                     struct generation *generation, struct coordinator *coordinator)
{
    returning_finish(returning);
    returning->begin_step = back->back->begin_step;
    returning->has_workers = job_carriers(own).processes == generation->process_count;
    returning->has_servers = own->servers == generation->server_count;
    returning->is_anew = back->start == NULL || back->start->phase >= PHASES_MAX;
    generation->places = job_carriers(own).processes;
    if (!returning->is_anew) {
        coordinator->phase_index = returning->phase = back->start->phase;
    }
    coordinator->is_returned = true;
    generation_begin(generation, coordinator);
    for (uint32_t i = 0; i < coordinator->membership.worker_count; i++) {
        coordinator->membership.workers[i].has_commit = may_have_commit(coordinator, ROLE_WORKER);
    }
    for (uint32_t i = 0; back->generation == 0 && i < coordinator->membership.server_count; i++) {
        // Of threads: see generation.h.
        coordinator->membership.servers[i].number = job_first_server(coordinator->job) + i;
    }
    coordinator_port_say(&coordinator->port, false,
                         "the job is under way without a coordinator: its members come back");
}

void returning_forget(struct returning *returning)
{
    returning->is_anew = true;
}

/* Whether it trains, and is where the others are. */
static bool goes_on(const struct returning *returning, struct coordinator *coordinator,
                    const struct message *back)
{
    if (back->start == NULL || back->start->phase != returning->phase ||
        back->back->begin_step != returning->begin_step) {
        return false;
    }
    if (back->member->role == ROLE_SERVER) {
        return true;
    }
    if (back->layout == NULL) {
        return false;
    }
    if (!coordinator->has_layout && !take_model(coordinator, back)) {
        return false;
    }
    return strcmp(back->member->optimizer != NULL ? back->member->optimizer : "",
                  coordinator->optimizer) == 0 &&
           back->layout->digest == coordinator->layout.digest &&
           back->layout->value_count == coordinator->layout.value_count &&
           back->member->data_digest == coordinator->data_digest &&
           back->member->train_samples == coordinator->train_samples;
}

/* Keeps the newest sum: some may not have got it. False: there is no memory for it. */
static bool note_sum(struct returning *returning, const struct message *back)
{
    uint64_t round = back->back->sum_round;
    if (round <= returning->sum_round) {
        return true;
    }
    returning->sum_round = round;
    free(returning->sum);
    returning->sum = NULL;
    if (back->sum == NULL) {
        return true;
    }
    returning->sum_count = back->sum->count;
    returning->sum = calloc(back->sum->count, sizeof(double));
    if (returning->sum != NULL) {
        memcpy(returning->sum, back->sum->values, back->sum->count * sizeof(double));
    }
    return returning->sum != NULL;
}

static void fill_slot(struct slot *slot, const struct message *back, uint64_t now_ms)
{
    const struct wire_member *member = back->member;
    snprintf(slot->place, sizeof(slot->place), "%s", member->endpoints);
    snprintf(slot->device, sizeof(slot->device), "%s", member->device);
    snprintf(slot->digest, sizeof(slot->digest), "%s", member->params_digest);
    slot->choices_digest = member->choices_digest;
    slot->alone_step = back->back->alone_step;
    slot_hear(slot, back->step, now_ms);
}

/* Some may wait for the newest sum. It comes before what lets them go on. */
static void tell_sum(const struct returning *returning, const struct coordinator *coordinator)
{
    if (returning->sum != NULL) {
        const struct wire_sum sum = {returning->sum_round - 1, returning->sum_count,
                                     returning->sum};
        const struct message message = {.kind = MESSAGE_SUM, .sum = &sum};
        coordinator_port_send_workers(&coordinator->port, &coordinator->membership, &message);
    }
}

/* All workers that are back have the same commit: with the sum, it is over for each of them. */
static void share_commit(const struct returning *returning, struct coordinator *coordinator)
{
    struct membership *membership = &coordinator->membership;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        struct slot *slot = &membership->workers[i];
        slot->has_commit = slot->has_commit && slot->state != SLOT_FREE && returning->has_commit;
    }
    if (job_may_commit(coordinator->job)) {
        coordinator->begin_step = returning->begin_step;
        coordinator->commit_step =
            returning->has_commit ? returning->commit_step : returning->begin_step;
    }
}

/* All are there, and join the next generation. The loss that it is about is that of the coordinator
 * alone: see generation_next. */
static void begin_anew(const struct returning *returning, const struct generation *generation,
                       struct coordinator *coordinator, uint64_t now_ms)
{
    char reason[sizeof(generation->recoveries->reason) + 32];
    tell_sum(returning, coordinator);
    if (!job_may_begin_anew(coordinator->job)) {
        coordinator_close(coordinator, STATUS_UNREACHABLE,
                          "the coordinator was lost, and not all of the others can go on as they "
                          "are: a program goes back to its commits with --on-loss commit alone",
                          NULL, now_ms);
        return;
    }
    share_commit(returning, coordinator);
    snprintf(reason, sizeof(reason), "%s: its members join anew",
             generation->recoveries[generation->recovery_count - 1].reason);
    generation_renew(coordinator, reason, now_ms, now_ms);
}

/* All are there: they go on. */
static void go_on(const struct returning *returning, struct generation *generation,
                  struct coordinator *coordinator, uint64_t now_ms)
{
    const struct membership *membership = &coordinator->membership;
    struct recovery *recovery = &generation->recoveries[generation->recovery_count - 1];
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        const struct slot *slot = &membership->workers[i];
        uint64_t alone = slot->step > slot->alone_step ? slot->step - slot->alone_step : 0;
        recovery->lost_step = slot->step > recovery->lost_step ? slot->step : recovery->lost_step;
        recovery->steps_meanwhile =
            alone > recovery->steps_meanwhile ? alone : recovery->steps_meanwhile;
    }
    size_t said = strlen(recovery->reason);
    snprintf(recovery->reason + said, sizeof(recovery->reason) - said,
             ", and the workers trained on");
    recovery->has_gone_on = true;
    recovery->begin_step = recovery->lost_step; // none is made again
    recovery->ranks = carriers_present(&coordinator->carriers);
    recovery->trained_on = true;
    recovery->seconds = (double)(now_ms - generation->lost_ms) / 1000;
    coordinator->sums.round = returning->sum_round;
    coordinator->term = returning->term < UINT32_MAX ? returning->term + 1 : UINT32_MAX;
    share_commit(returning, coordinator);
    tell_sum(returning, coordinator);
    coordinator_enter(coordinator, COORDINATOR_TRAINING, now_ms);
}

/* Whether all are there, and what they have said of the time without a coordinator is fresh. */
static bool are_all_back(const struct membership *membership)
{
    uint32_t count = membership->worker_count + membership->server_count;
    for (uint32_t i = 0; i < count; i++) {
        if (membership_slot(membership, i)->is_asked_back) {
            return false;
        }
    }
    return membership_everybody_is(membership, SLOT_CONNECTED);
}

void returning_look_for_all(const struct returning *returning, struct generation *generation,
                            struct coordinator *coordinator, uint64_t now_ms)
{
    if (!are_all_back(&coordinator->membership)) {
        return;
    }
    if (returning->is_anew) {
        begin_anew(returning, generation, coordinator, now_ms);
    } else {
        go_on(returning, generation, coordinator, now_ms);
    }
}

void returning_settle(const struct returning *returning, struct coordinator *coordinator)
{
    bool has_begun = !coordinator->is_returned || coordinator->started_ms > 0;
    if (!has_begun && !are_all_back(&coordinator->membership)) { // otherwise see begin_anew
        tell_sum(returning, coordinator);
        share_commit(returning, coordinator);
    }
}

static void set_number(struct generation *generation, const struct sender *at, uint32_t number)
{
    at->slot->number = number;
    if (at->role == ROLE_WORKER) {
        generation->workers[at->index].number = number;
    } else if (at->index < generation->server_count) {
        generation->servers[at->index].number = number;
    }
}

void returning_note_number(struct generation *generation, const struct membership *membership,
                           const struct sender *at, uint32_t number)
{
    struct sender other = membership_called(membership, at->role, number);
    if (other.slot != NULL && other.slot != at->slot && other.slot->state == SLOT_FREE) {
        set_number(generation, &other, at->slot->number); // it was a guess
    }
    set_number(generation, at, number);
}

/* Notes what all members say of the time without a coordinator. */
static void note_absence(struct returning *returning, struct generation *generation,
                         const struct message *back, uint64_t now_ms)
{
    const struct wire_back *of = back->back;
    uint64_t lost_ms = lost_ms_of(back, now_ms);
    generation->lost_ms = lost_ms < generation->lost_ms ? lost_ms : generation->lost_ms;
    returning->term = of->term > returning->term ? of->term : returning->term;
    if (back->member->role != ROLE_WORKER) {
        return;
    }
    if (of->has_commit && of->commit_step >= returning->commit_step) {
        returning->has_commit = true;
        returning->commit_step = of->commit_step;
    }
}

/* Whether the slot is that of the same process, which has come by another connection before. */
static bool is_same_process(const struct slot *slot, const struct wire_member *member)
{
    return slot->state == SLOT_CONNECTED && slot->number == member->rank &&
           slot->process_id == member->process_id && strcmp(slot->host, member->host) == 0;
}

/* Its BACK may have waited here while this process stood still, or before there was one. It says
 * once more how far it is, and for how long it has had no coordinator. */
static void ask_back(const struct coordinator *coordinator, struct slot *slot)
{
    const struct message ask = {.kind = MESSAGE_HEARTBEAT, .reason = STATUS_AGAIN};
    slot->is_asked_back = true;
    coordinator_port_send(&coordinator->port, slot->peer, &ask);
}

/* Takes what one that has its place says: first, and when it is asked. */
static void take_words(struct returning *returning, struct generation *generation,
                       struct coordinator *coordinator, const struct sender *at,
                       const struct message *back, uint64_t now_ms)
{
    bool has_sum = at->role != ROLE_WORKER || note_sum(returning, back); // also if they join anew
    if (!has_sum || !goes_on(returning, coordinator, back)) {
        returning->is_anew = true;
    }
    fill_slot(at->slot, back, now_ms);
    uint32_t first = at->role == ROLE_WORKER ? 0 : coordinator->membership.worker_count;
    coordinator->checkpointing.shares[first + at->index].last = back->back->snapshot_step;
    note_absence(returning, generation, back, now_ms);
}

static void note_peer(struct generation *generation, const struct sender *at, uint64_t peer)
{
    at->slot->peer = peer;
    at->slot->closed_ms = 0;
    if (at->role == ROLE_WORKER) {
        generation->workers[at->index].peer = peer;
    }
}

/* Gives it its place. False: there is none. */
static bool take_place(struct returning *returning, struct generation *generation,
                       struct coordinator *coordinator, uint64_t peer, const struct message *back,
                       uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    struct membership_refusal refusal;
    struct wire_member member = *back->member;
    struct sender at = membership_member(membership, member.role, back->rank);
    uint32_t index;
    returning_note_number(generation, membership, &at, member.rank);
    member.has_rank = true;
    member.launch = membership_launch(membership, back->member);
    if (membership_join(membership, &member, peer, now_ms, &index, &refusal) != STATUS_OK) {
        return false;
    }
    at = membership_member(membership, member.role, index);
    at.slot->has_commit = may_have_commit(coordinator, member.role);
    note_peer(generation, &at, peer);
    slot_enter(membership, at.slot, SLOT_CONNECTED, now_ms);
    if (member.role == ROLE_WORKER) {
        newcomers_leave_number(coordinator, member.rank);
    }
    take_words(returning, generation, coordinator, &at, back, now_ms);
    ask_back(coordinator, at.slot);
    return true;
}

bool returning_take(struct returning *returning, struct generation *generation,
                    struct coordinator *coordinator, uint64_t peer, const struct message *back,
                    uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    const struct wire_member *member = back->member;
    struct sender at;
    bool is_gathering = coordinator->state == COORDINATOR_GATHERING;
    if (membership_find(membership, peer, &at)) {
        if (is_gathering && at.slot->is_asked_back) {
            at.slot->is_asked_back = false;
            take_words(returning, generation, coordinator, &at, back, now_ms);
            returning_look_for_all(returning, generation, coordinator, now_ms);
        }
        return true; // or said twice
    }
    at = membership_member(membership, member->role, back->rank);
    if (!is_gathering || at.slot == NULL) {
        return false;
    }
    if (is_same_process(at.slot, member)) {
        note_peer(generation, &at, peer);
        take_words(returning, generation, coordinator, &at, back, now_ms);
        ask_back(coordinator, at.slot);
        return true;
    }
    if (at.slot->state != SLOT_FREE ||
        !take_place(returning, generation, coordinator, peer, back, now_ms)) {
        return false;
    }
    coordinator_port_say(&coordinator->port, false, "%s %u is back: host=%s pid=%llu",
                         role_name(member->role), member->rank, member->host,
                         (unsigned long long)member->process_id);
    return true;
}

void returning_finish(struct returning *returning)
{
    free(returning->sum);
    *returning = (struct returning){0};
}
