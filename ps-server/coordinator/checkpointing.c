/* Collects snapshots of members into checkpoints. */
#include "ps-server/coordinator/checkpointing.h"

#include "common/channel/snapshot.h"
#include "common/job/job_modes.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/generation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status checkpointing_init(struct checkpointing *checkpointing, struct carriers carriers,
                               uint32_t server_count)
{
    *checkpointing = (struct checkpointing){.worker_count = carriers.processes,
                                            .share_count = carriers.processes + server_count};
    checkpointing->shares = calloc(checkpointing->share_count, sizeof(*checkpointing->shares));
    checkpointing->ranks = calloc(carriers.ranks, sizeof(*checkpointing->ranks));
    checkpointing->collected = calloc(carriers.ranks, sizeof(*checkpointing->collected));
    checkpointing->counts = calloc((size_t)server_count + 1, sizeof(*checkpointing->counts));
    bool is_whole = checkpointing->shares != NULL && checkpointing->ranks != NULL &&
                    checkpointing->collected != NULL && checkpointing->counts != NULL;
    return is_whole ? STATUS_OK : STATUS_NO_MEMORY;
}

void checkpointing_finish(struct checkpointing *checkpointing)
{
    free(checkpointing->shares);
    free(checkpointing->ranks);
    free(checkpointing->collected);
    free(checkpointing->counts);
    free(checkpointing->vectors.list);
    *checkpointing = (struct checkpointing){0};
}

/* ==========================================================================================
 * Members
 * ========================================================================================== */

static const struct slot *slot_of(const struct coordinator *coordinator, uint32_t share)
{
    const struct membership *membership = &coordinator->membership;
    return share < membership->worker_count
               ? &membership->workers[share]
               : &membership->servers[share - membership->worker_count];
}

uint32_t checkpointing_share_of(const struct coordinator *coordinator, const struct sender *from)
{
    return from->role == ROLE_WORKER ? from->index
                                     : coordinator->membership.worker_count + from->index;
}

static void send_collect(const struct coordinator *coordinator, uint64_t peer, uint64_t step,
                         uint32_t credits, enum status reason)
{
    const struct wire_collect collect = {credits};
    const struct message message = {
        .kind = MESSAGE_COLLECT, .step = step, .reason = reason, .collect = &collect};
    coordinator_port_send(&coordinator->port, peer, &message);
}

static void drop(struct coordinator *coordinator, uint32_t share)
{
    struct checkpoint_share *of = &coordinator->checkpointing.shares[share];
    if (of->offered != 0) {
        send_collect(coordinator, slot_of(coordinator, share)->peer, of->offered, 0,
                     STATUS_INTERRUPTED);
        of->offered = 0;
    }
}

/* Nobody needs to keep a snapshot of this step any more. */
static void drop_all(struct coordinator *coordinator, uint64_t step)
{
    struct checkpointing *of = &coordinator->checkpointing;
    for (uint32_t i = 0; i < of->share_count; i++) {
        if (of->shares[i].offered == step) {
            drop(coordinator, i);
        }
    }
    of->announced = of->announced == step ? 0 : of->announced;
}

static void ask(const struct coordinator *coordinator, const struct checkpoint_share *share,
                uint32_t index, uint64_t step)
{
    const struct message message = {.kind = MESSAGE_SNAPSHOT, .step = step};
    if (share->last < step) {
        coordinator_port_send(&coordinator->port, slot_of(coordinator, index)->peer, &message);
    }
}

/* ==========================================================================================
 * Collecting
 * ========================================================================================== */

static void give_task(struct coordinator *coordinator, enum checkpoint_task task, uint64_t peer,
                      const struct message *message)
{
    coordinator->port.checkpoint(coordinator->port.context, task, peer, message);
}

static void begin_collecting(struct coordinator *coordinator, uint64_t step, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    of->state = CHECKPOINTING_COLLECTING;
    of->step = step;
    of->began_ms = now_ms;
    of->is_written = checkpoint_schedule_is_for_disk(of, step) && !of->has_rest;
    // A member that has sent its pieces may offer the next one before this one is whole.
    memcpy(of->collected, of->ranks, coordinator->carriers.ranks * sizeof(*of->ranks));
    checkpoint_counts_add(coordinator,
                          checkpoint_schedule_shares(coordinator, step) - of->worker_count);
    of->is_given_up = false;
    of->vectors.count = 0;
    give_task(coordinator, CHECKPOINT_BEGIN, 0, NULL);
    for (uint32_t i = 0; i < checkpoint_schedule_shares(coordinator, step); i++) {
        of->shares[i].is_over = false;
        of->shares[i].pieces = of->shares[i].stored = 0;
        send_collect(coordinator, slot_of(coordinator, i)->peer, step, SNAPSHOT_CREDITS, STATUS_OK);
    }
}

/* Gives up the checkpoint that is being collected. */
static void abandon(struct coordinator *coordinator, const char *why)
{
    struct checkpointing *of = &coordinator->checkpointing;
    give_task(coordinator, CHECKPOINT_ABANDON, 0, NULL);
    drop_all(coordinator, of->step);
    of->state = CHECKPOINTING_COMMITTING; // until what is queued is over
    of->is_given_up = true;
    coordinator_port_say(&coordinator->port, true, "no checkpoint at step %llu: %s",
                         (unsigned long long)of->step, why);
}

/* Whether everybody has offered a snapshot of the step; of races, whether all servers have. */
static bool have_all_offered(const struct coordinator *coordinator, uint64_t step, uint32_t first)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    for (uint32_t i = first; i < checkpoint_schedule_shares(coordinator, step); i++) {
        if (of->shares[i].offered != step) {
            return false;
        }
    }
    return true;
}

/* Somebody has no snapshot of the step, and will have none. */
static bool is_lacking(const struct coordinator *coordinator, uint64_t step)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    for (uint32_t i = 0; i < checkpoint_schedule_shares(coordinator, step); i++) {
        if (of->shares[i].last >= step && of->shares[i].offered != step) {
            return true;
        }
    }
    return false;
}

/* Looks at what is offered: begins to collect the oldest that all have, and drops what not all will
 * have, and what has no place. */
static void look(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    bool has_no_place = of->hangs && !job_may_redeal(coordinator->job);
    for (uint32_t i = 0; i < of->share_count; i++) {
        uint64_t step = of->shares[i].offered;
        bool is_collected = of->state != CHECKPOINTING_IDLE && step == of->step;
        if (step == 0 || is_collected) {
            continue;
        }
        bool waits = of->state != CHECKPOINTING_IDLE || checkpoint_schedule_postpones(of, step);
        if (is_lacking(coordinator, step) || (!waits && has_no_place)) {
            drop_all(coordinator, step);
        } else if (!waits && have_all_offered(coordinator, step, 0)) {
            begin_collecting(coordinator, step, now_ms);
        }
    }
}

/* What the worker says of the ranks that it carries. False, and said: not what it should. */
static bool take_ranks(struct coordinator *coordinator, uint32_t process,
                       const struct message *message)
{
    struct rank_block block = carriers_block(coordinator->carriers, process);
    if (checkpoint_ranks_take(coordinator, block, message)) {
        return true;
    }
    coordinator->checkpointing.left_out = message->step;
    coordinator_port_say(&coordinator->port, true,
                         "no checkpoint at step %llu: worker %u (host %s) does not tell what it "
                         "has of ranks %u to %u",
                         (unsigned long long)message->step, process,
                         slot_of(coordinator, process)->host, block.first,
                         block.first + block.count - 1);
    return false;
}

static void take_offer(struct coordinator *coordinator, uint32_t share,
                       const struct message *message, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    struct checkpoint_share *offer = &of->shares[share];
    uint64_t step = message->step;
    bool is_collected = of->state == CHECKPOINTING_COLLECTING && step == of->step;
    if (message->reason == STATUS_UNREACHABLE && is_collected && !offer->is_over) {
        offer->offered = 0; // it went to a coordinator that was lost
        abandon(coordinator, "a member has its part no more");
        return;
    }
    if (step == 0 || step <= offer->last) {
        return; // what a member of ours does not send
    }
    offer->last = step;
    bool is_there = message->reason == STATUS_OK &&
                    (share >= of->worker_count || take_ranks(coordinator, share, message));
    offer->offered = is_there ? step : offer->offered;
    if (is_there && share >= of->worker_count && message->report != NULL) {
        checkpoint_counts_note(of, share - of->worker_count, message->report);
    }
    if (step == of->announced && !is_there) {
        of->announced = 0; // it was too near for this one
        of->margin *= 2;
    } else if (!is_there && step > of->left_out) {
        of->left_out = step;
        coordinator_port_say(&coordinator->port, false,
                             "no checkpoint at step %llu: the one before is still being written",
                             (unsigned long long)step);
    }
    bool asks = checkpoint_schedule_is_race(coordinator, step) && share >= of->worker_count &&
                is_there && have_all_offered(coordinator, step, of->worker_count);
    for (uint32_t i = 0; asks && i < of->worker_count; i++) {
        ask(coordinator, &of->shares[i], i, step);
    }
    look(coordinator, now_ms);
}

/* Every piece has come, of every member: it is written once what is before it was reported. */
static bool is_collected(const struct coordinator *coordinator)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    uint64_t period = phases_period(coordinator->job, coordinator->train_samples);
    uint64_t periods = period > 0 ? of->step / period : 0;
    for (uint32_t i = 0; i < checkpoint_schedule_shares(coordinator, of->step); i++) {
        if (!of->shares[i].is_over) {
            return false;
        }
    }
    return periods == 0 || results_period_is_complete(&coordinator->results, (uint32_t)periods - 1);
}

static void commit_if_whole(struct coordinator *coordinator)
{
    struct checkpointing *of = &coordinator->checkpointing;
    if (of->state != CHECKPOINTING_COLLECTING || !is_collected(coordinator)) {
        return;
    }
    for (uint32_t i = 0; i < of->vectors.count; i++) {
        if (of->vectors.list[i].received != of->vectors.list[i].total) {
            abandon(coordinator, "members have not sent all of it");
            return;
        }
    }
    of->state = CHECKPOINTING_COMMITTING;
    give_task(coordinator, CHECKPOINT_COMMIT, 0, NULL);
}

static void take_piece(struct coordinator *coordinator, const struct sender *from,
                       const struct message *message, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    struct checkpoint_share *share = &of->shares[checkpointing_share_of(coordinator, from)];
    bool is_due = of->state == CHECKPOINTING_COLLECTING && message->step == of->step &&
                  share->offered == of->step && !share->is_over;
    if (!is_due) {
        return; // of one that was given up
    }
    if (message->piece->vector[0] == '\0') {
        share->is_over = true;
        share->offered = 0;
        of->took_ms = of->is_written ? of->took_ms : now_ms - of->began_ms;
        if (message->piece->total != share->pieces) {
            abandon(coordinator, "pieces of a member were lost");
            return;
        }
        commit_if_whole(coordinator);
        look(coordinator, now_ms);
        return;
    }
    bool has_credit = share->pieces - share->stored < SNAPSHOT_CREDITS;
    struct checkpoint_total *vector =
        has_credit && checkpoint_piece_is_sound(coordinator, from, message)
            ? checkpoint_vectors_find(&of->vectors, message->piece->vector)
            : NULL;
    if (vector == NULL || (vector->total != 0 && vector->total != message->piece->total)) {
        abandon(coordinator, "a member has sent what does not belong to it");
        return;
    }
    vector->total = message->piece->total;
    vector->received += message->span.count;
    share->pieces++;
    give_task(coordinator, CHECKPOINT_STORE, from->slot->peer, message);
}

void checkpointing_note_stored(struct coordinator *coordinator, uint64_t peer, uint64_t step)
{
    struct sender from;
    if (coordinator->checkpointing.state == CHECKPOINTING_COLLECTING &&
        coordinator->checkpointing.step == step &&
        membership_find(&coordinator->membership, peer, &from)) {
        coordinator->checkpointing.shares[checkpointing_share_of(coordinator, &from)].stored++;
        send_collect(coordinator, peer, step, 1, STATUS_OK);
    }
}

void checkpointing_note_moved(struct coordinator *coordinator, enum status status)
{
    coordinator->checkpointing.written = 0;
    if (status == STATUS_OK) {
        coordinator_port_say(&coordinator->port, true,
                             "somebody has moved or removed the folder of checkpoints: it is made "
                             "again, without those that were in it");
    }
}

void checkpointing_describe_last(const struct checkpointing *of,
                                 char ret_text[CHECKPOINTING_LAST_BYTES])
{
    if (of->written > 0) {
        snprintf(ret_text, CHECKPOINTING_LAST_BYTES, "the last good one is of step %llu",
                 (unsigned long long)of->written);
    } else {
        snprintf(ret_text, CHECKPOINTING_LAST_BYTES, "there is none so far");
    }
}

void checkpointing_set_aside(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    of->hangs = of->has_failed = true;
    if (of->state == CHECKPOINTING_COLLECTING && of->is_written) { // one that it has all of may be
        give_task(coordinator, CHECKPOINT_ABANDON, 0, NULL);       // written still
    }
    if (of->state != CHECKPOINTING_IDLE && of->is_written) {
        of->state = CHECKPOINTING_IDLE;
        of->has_rest = true;
        drop_all(coordinator, of->step);
        checkpoint_schedule_note(coordinator, of->step, now_ms);
    }
    look(coordinator, now_ms);
}

void checkpointing_note_free(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    if (of->hangs) {
        coordinator_port_say(&coordinator->port, false, "the disk takes checkpoints again");
    }
    of->hangs = of->has_rest = false;
    look(coordinator, now_ms);
}

void checkpointing_note_good(struct coordinator *coordinator, uint64_t step)
{
    coordinator->checkpointing.written = step;
    coordinator->checkpointing.has_failed = false;
    coordinator_port_say(&coordinator->port, false, "checkpoint at step %llu",
                         (unsigned long long)step);
}

void checkpointing_note_written(struct coordinator *coordinator, uint64_t step, enum status status,
                                const char *why, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    if (of->state == CHECKPOINTING_IDLE || of->step != step) {
        return;
    }
    of->state = CHECKPOINTING_IDLE;
    checkpoint_schedule_note(coordinator, step, now_ms);
    drop_all(coordinator, step);
    bool is_silent = status == STATUS_OK && !of->is_written; // of memory alone
    if (status == STATUS_OK && of->is_written) {
        checkpointing_note_good(coordinator, step);
    } else if (!is_silent && !of->has_failed && !of->is_given_up) {
        of->has_failed = true;
        char last[CHECKPOINTING_LAST_BYTES];
        checkpointing_describe_last(of, last);
        coordinator_port_say(&coordinator->port, true,
                             "no checkpoint at step %llu: %s; training goes on, and %s",
                             (unsigned long long)step, why, last);
    }
    look(coordinator, now_ms);
    if (status == STATUS_OK && step < of->plan.total) { // nobody goes on from the end
        of->copied = step;
        // A newcomer for whom no step is left would only cost steps that are made again.
        if (generation_most_steps(coordinator) < of->plan.total) {
            newcomers_admit(coordinator, now_ms);
        }
    }
}

void checkpointing_handle(struct coordinator *coordinator, const struct sender *from,
                          const struct message *message, uint64_t now_ms)
{
    if (message->kind == MESSAGE_FETCH) {
        struct piece_name name;
        bool is_sound = piece_name_parse(message->piece->vector, &name) &&
                        message->span.count > 0 && message->span.count <= SNAPSHOT_PIECE_FLOATS;
        if (coordinator->resume != NULL && is_sound) {
            coordinator->membership.arrived_ms = now_ms; // it comes nearer to training
            give_task(coordinator, CHECKPOINT_READ, from->slot->peer, message);
        }
        return;
    }
    if (coordinator->state != COORDINATOR_TRAINING &&
        coordinator->state != COORDINATOR_CONNECTING) {
        return;
    }
    if (message->kind == MESSAGE_SNAPSHOT && coordinator->checkpointing.plan.are_on) {
        take_offer(coordinator, checkpointing_share_of(coordinator, from), message, now_ms);
    } else if (message->kind == MESSAGE_PIECE) {
        take_piece(coordinator, from, message, now_ms);
    }
}

/* ==========================================================================================
 * Time
 * ========================================================================================== */

void checkpointing_begin_phase(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    char why[OPTION_ERROR_BYTES];
    if (!checkpoints_are_on(coordinator->job)) {
        return;
    }
    if (!of->plan.are_on) {
        if (phases_of(coordinator->job, coordinator->train_samples, &of->phases, why,
                      sizeof(why)) != STATUS_OK) {
            return; // workers have said so, and are not ready
        }
        uint32_t index;
        if (coordinator->resume != NULL &&
            phases_resume(coordinator->job, &of->phases, coordinator->resume->step, &index) !=
                STATUS_OK) {
            return;
        }
        of->plan = checkpoints_of(coordinator->job, coordinator->train_samples);
        checkpoint_schedule_begin(coordinator, now_ms);
    }
}

void checkpointing_ask(struct coordinator *coordinator, uint64_t step)
{
    struct checkpointing *of = &coordinator->checkpointing;
    for (uint32_t i = 0; i < checkpoint_schedule_shares(coordinator, step); i++) {
        bool is_asked_later =
            checkpoint_schedule_is_race(coordinator, step) && i < of->worker_count;
        if (!is_asked_later) {
            ask(coordinator, &of->shares[i], i, step);
        }
    }
}

void checkpointing_tick(struct coordinator *coordinator, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    if (coordinator->state != COORDINATOR_TRAINING || !of->plan.are_on) {
        return;
    }
    commit_if_whole(coordinator);
    checkpoint_schedule_tick(coordinator, now_ms);
    checkpoint_schedule_judge_last(coordinator, now_ms);
}
