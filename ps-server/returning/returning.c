/* Takes members in that train already. */
#include "ps-server/returning/returning.h"

#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/job/job_resume.h"
#include "common/job/job_text.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool returning_may_begin(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    return coordinator->state == COORDINATOR_GATHERING && coordinator->generation == NULL &&
           membership_count(membership->workers, membership->worker_count, SLOT_FREE) ==
               membership->worker_count;
}

enum status returning_read_job(const struct message *back, const struct job *own,
                               struct job *ret_job, char *ret_why, size_t why_size)
{
    char error[OPTION_ERROR_BYTES];
    enum status status = job_decode(back->text, ret_job, error, sizeof(error));
    if (status == STATUS_OK) {
        status = job_check_resume(back->text, own, error, sizeof(error));
    }
    if (status == STATUS_OK && !job_outlasts_coordinator(ret_job)) {
        snprintf(error, sizeof(error), "its job does not outlast its coordinator");
        status = STATUS_INVALID;
    }
    if (status != STATUS_OK) {
        snprintf(ret_why, why_size, "%s", error);
    }
    return status;
}

enum status returning_generation(const struct message *back, const struct job *job, double before,
                                 uint32_t restarts, uint64_t now_ms,
                                 struct generation *ret_generation)
{
    uint32_t number = back->generation < UINT32_MAX ? back->generation + 1 : back->generation;
    struct generation next = {
        .number = number,
        .process_count = job_carriers(job).processes,
        .recovery_count = 1,
        .lost_ms = now_ms,
        .started_ms = now_ms,
        .seconds_before = before + (double)back->back->trained_ms / 1000,
        .restarts_before = restarts > number ? restarts - number : 0,
    };
    next.workers = calloc(next.process_count, sizeof(*next.workers));
    next.servers = calloc(1, sizeof(*next.servers));
    next.recoveries = calloc(1, sizeof(*next.recoveries));
    if (next.workers == NULL || next.servers == NULL || next.recoveries == NULL) {
        generation_finish(&next);
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < next.process_count; i++) {
        next.workers[i].number = i; // until it says another one
    }
    snprintf(next.recoveries[0].reason, sizeof(next.recoveries[0].reason),
             "the coordinator was lost, and the workers trained on");
    next.recoveries[0].processes = next.process_count;
    *ret_generation = next;
    return STATUS_OK;
}

/* Model and data, as the first one that is back has them, and how gradients are added up. */
static void take_model(struct coordinator *coordinator, const struct message *back)
{
    const struct wire_member *member = back->member;
    coordinator->layout = *back->layout;
    coordinator->has_layout = true;
    layout_merge(&coordinator->layout, back->start->bucket_bytes, &coordinator->phase_layout);
    coordinator->train_samples = member->train_samples;
    coordinator->test_samples = member->test_samples;
    coordinator->data_digest = member->data_digest;
    coordinator->parameters = member->parameters;
    snprintf(coordinator->figures, sizeof(coordinator->figures), "%s", member->figures);
    coordinator->topology.all_reduce = back->start->all_reduce;
    coordinator->topology.limits = back->start->limits;
    coordinator->phase_index = back->start->phase;
    tuning_init(coordinator->job, coordinator->train_samples,
                back->start->all_reduce == ALL_REDUCE_SHARED, &coordinator->tuning);
    tuning_resume(&coordinator->tuning, back->start->bucket_bytes);
}

void returning_begin(struct returning *returning, const struct message *back,
                     struct generation *generation, struct coordinator *coordinator)
{
    returning_finish(returning);
    returning->begin_step = back->back->begin_step;
    coordinator->is_returned = true;
    take_model(coordinator, back);
    generation_begin(generation, coordinator);
    coordinator_port_say(&coordinator->port, false,
                         "the job is under way without a coordinator: its workers come back");
}

/* Whether it is where the others are. */
static bool agrees(const struct returning *returning, const struct coordinator *coordinator,
                   const struct message *back)
{
    return back->member->role == ROLE_WORKER && back->rank < coordinator->membership.worker_count &&
           coordinator->membership.workers[back->rank].state == SLOT_FREE &&
           back->back->begin_step == returning->begin_step &&
           back->start->phase == coordinator->phase_index &&
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
    slot_hear(slot, back->step, now_ms);
}

/* All are there: they go on, and hear the sum that some of them may wait for. */
static void go_on(const struct returning *returning, struct generation *generation,
                  struct coordinator *coordinator, uint64_t now_ms)
{
    const struct membership *membership = &coordinator->membership;
    struct recovery *recovery = &generation->recoveries[0];
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        uint64_t step = membership->workers[i].step;
        recovery->lost_step = step > recovery->lost_step ? step : recovery->lost_step;
    }
    recovery->begin_step = recovery->lost_step; // none is made again
    recovery->ranks = carriers_present(&coordinator->carriers);
    coordinator->sums.round = returning->sum_round;
    coordinator_enter(coordinator, COORDINATOR_TRAINING, now_ms);
    if (returning->sum != NULL) {
        const struct wire_sum sum = {returning->sum_round - 1, returning->sum_count,
                                     returning->sum};
        const struct message message = {.kind = MESSAGE_SUM, .sum = &sum};
        coordinator_port_send_workers(&coordinator->port, membership, &message);
    }
}

bool returning_take(struct returning *returning, struct generation *generation,
                    struct coordinator *coordinator, uint64_t peer, const struct message *back,
                    uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    struct membership_refusal refusal;
    struct sender known;
    uint32_t index;
    if (membership_find(membership, peer, &known)) {
        return true; // said twice
    }
    if (coordinator->state != COORDINATOR_GATHERING || !agrees(returning, coordinator, back) ||
        !note_sum(returning, back)) {
        return false;
    }
    struct slot *slot = &membership->workers[back->rank];
    struct wire_member member = *back->member;
    slot->number = generation->workers[back->rank].number = member.rank;
    member.has_rank = true;
    if (membership_join(membership, &member, peer, now_ms, &index, &refusal) != STATUS_OK) {
        return false;
    }
    generation->workers[index].peer = peer;
    fill_slot(&membership->workers[index], back, now_ms);
    slot_enter(membership, &membership->workers[index], SLOT_CONNECTED, now_ms);
    coordinator->checkpointing.shares[index].last = back->back->snapshot_step;
    coordinator_port_say(&coordinator->port, false, "worker %u is back: host=%s pid=%llu",
                         member.rank, member.host, (unsigned long long)member.process_id);
    if (membership_everybody_is(membership, SLOT_CONNECTED)) {
        go_on(returning, generation, coordinator, now_ms);
    }
    return true;
}

void returning_finish(struct returning *returning)
{
    free(returning->sum);
    *returning = (struct returning){0};
}
