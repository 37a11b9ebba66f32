/* Lets a job that has lost a worker go on with the others. */
#include "ps-server/coordinator/generation.h"

#include "common/job/job_checks.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/coordinator_handshake.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool generation_slot_is_left(const struct job *job, const struct slot *slot)
{
    return slot->state != SLOT_GONE && (slot->state != SLOT_DONE || !job_may_commit(job));
}

bool generation_server_is_left(const struct membership *membership, uint32_t processes,
                               uint32_t process, const struct slot *lost)
{
    bool is_left = process < membership->server_count;
    for (uint32_t i = process; i < membership->server_count; i += processes) {
        const struct slot *slot = &membership->servers[i];
        is_left = is_left && slot->state != SLOT_GONE && slot != lost;
    }
    return is_left;
}

/* Of a later generation, some may not have come back yet. */
static uint32_t count_left(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t count = 0;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        count += generation_slot_is_left(coordinator->job, &membership->workers[i]);
    }
    return count;
}

/* Whether all that had what the program has committed are lost. `lost` is, too; or NULL. */
static bool has_lost_commit(const struct coordinator *coordinator, const struct slot *lost)
{
    const struct membership *membership = &coordinator->membership;
    bool had = false, has = false;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        const struct slot *slot = &membership->workers[i];
        had = had || slot->has_commit;
        has = has ||
              (slot->has_commit && slot != lost && generation_slot_is_left(coordinator->job, slot));
    }
    return had && !has;
}

static uint32_t count_servers_left(const struct coordinator *coordinator, const struct slot *lost)
{
    uint32_t processes = coordinator->job->servers, count = 0;
    for (uint32_t i = 0; i < processes; i++) {
        count += generation_server_is_left(&coordinator->membership, processes, i, lost);
    }
    return count;
}

static bool are_enough(const struct coordinator *coordinator, uint32_t left,
                       const struct slot *lost, char *ret_why, size_t why_size)
{
    const struct job *job = coordinator->job;
    if (job->servers > 0 && count_servers_left(coordinator, lost) == 0) {
        snprintf(ret_why, why_size, "no server is left");
        return false;
    }
    if (left > 0 && has_lost_commit(coordinator, lost)) {
        snprintf(ret_why, why_size,
                 "nobody is left who has what the program has committed, and has given it to "
                 "those who came");
        return false;
    }
    if (left > 0 && left >= job->min_workers) {
        return true;
    }
    snprintf(ret_why, why_size, "%u worker process%s left, and --min-workers is %u", left,
             left == 1 ? " is" : "es are", job->min_workers);
    return false;
}

bool generation_may_follow(const struct coordinator *coordinator, const struct sender *lost,
                           char *ret_why, size_t why_size)
{
    const struct job *job = coordinator->job;
    bool is_first = coordinator->generation == NULL;
    char bound[JOB_BOUND_BYTES];
    ret_why[0] = '\0';
    if (lost->slot == NULL || (coordinator->state == COORDINATOR_GATHERING && is_first)) {
        (void)handshake_may_vacate(coordinator, lost, ret_why, why_size);
        return false; // nobody has begun
    }
    if (!job_may_go_on(job)) {
        if (job_is_bound(job, bound)) { // nobody has asked for it to end
            snprintf(ret_why, why_size, "%s", bound);
        }
        return false;
    }
    bool is_worker = lost->role == ROLE_WORKER;
    if (!is_worker && lost->index % job->servers == 0 && job_first_server(job) == 0) {
        snprintf(ret_why, why_size, "the coordinator's own server cannot be done without");
        return false;
    }
    if (!is_worker && job_needs_servers(job)) {
        snprintf(ret_why, why_size,
                 "gradients are encoded for the part that one server has, and "
                 "others would have other bits");
        return false;
    }
    uint32_t left =
        count_left(coordinator) - (is_worker && generation_slot_is_left(job, lost->slot) ? 1 : 0);
    return are_enough(coordinator, left, lost->slot, ret_why, why_size);
}

/* Nobody has a step left to make. */
static void conclude_without(struct coordinator *coordinator, const char *sentence, bool is_lacked,
                             uint64_t now_ms)
{
    coordinator_port_say(&coordinator->port, true, "%s; the others have made all their steps",
                         sentence);
    if (is_lacked) {
        checkpoint_schedule_give_up_last(coordinator, "a part of it is lost");
    }
    coordinator_conclude(coordinator, now_ms);
}

void generation_note_lost(struct coordinator *coordinator, const struct sender *lost,
                          uint64_t now_ms)
{
    if (lost->slot != NULL) {
        coordinator->workers_lost +=
            membership_note_gone(&coordinator->membership, lost, coordinator->job->servers, now_ms);
    }
}

/* Whether they are of the same process. */
static bool is_same(const struct coordinator *coordinator, const struct sender *a,
                    const struct sender *b)
{
    uint32_t stride = a->role == ROLE_SERVER ? coordinator->job->servers : UINT32_MAX;
    return a->slot != NULL && b->slot != NULL && a->role == b->role &&
           a->index % stride == b->index % stride;
}

/* The index of the member's loss among the others; their count: it is none of them. */
static uint32_t find_loss(const struct coordinator *coordinator, const struct sender *lost)
{
    uint32_t index = 0;
    while (index < coordinator->loss_count &&
           !is_same(coordinator, &coordinator->losses[index].lost, lost)) {
        index++;
    }
    return index;
}

static void add_loss(struct coordinator *coordinator, const struct sender *lost,
                     const char *sentence)
{
    if (coordinator->loss_count < COORDINATOR_LOSSES_MAX) { // it was logged
        struct loss *loss = &coordinator->losses[coordinator->loss_count++];
        loss->lost = *lost;
        snprintf(loss->sentence, sizeof(loss->sentence), "%s", sentence);
    }
}

void generation_lose_too(struct coordinator *coordinator, const char *sentence,
                         const struct sender *lost)
{
    if (!is_same(coordinator, &coordinator->culprit, lost) &&
        find_loss(coordinator, lost) == coordinator->loss_count) {
        coordinator_port_say(&coordinator->port, true, "the job goes on: %s, too", sentence);
        add_loss(coordinator, lost, sentence);
    }
}

bool generation_join(char reason[COORDINATOR_REASON_BYTES], const char *sentence)
{
    static const char between[] = ", and ";
    size_t said = strlen(reason), room = COORDINATOR_REASON_BYTES - said;
    bool has_room = strlen(between) + strlen(sentence) < room;
    if (has_room) {
        snprintf(reason + said, room, "%s%s", between, sentence);
    }
    return has_room;
}

void generation_explain(const struct coordinator *coordinator,
                        char ret_reason[COORDINATOR_REASON_BYTES])
{
    snprintf(ret_reason, COORDINATOR_REASON_BYTES, "%s", coordinator->reason);
    for (uint32_t i = 0; i < coordinator->loss_count; i++) {
        const struct loss *loss = &coordinator->losses[i];
        char name[32];
        if (!generation_join(ret_reason, loss->sentence) && loss->lost.slot != NULL) {
            snprintf(name, sizeof(name), "%s %u", role_name(loss->lost.role),
                     loss->lost.slot->number);
            (void)generation_join(ret_reason, name); // the log has more
        }
    }
}

/* Why a job ends that was about to go on, or not: with the losses before this one. */
static void explain_end(const struct coordinator *coordinator, const struct sender *lost,
                        const char *sentence, const char *why, char *ret_reason, size_t size)
{
    char before[COORDINATOR_REASON_BYTES];
    bool has_more =
        coordinator->state == COORDINATOR_RENEWING && coordinator->culprit.slot != NULL &&
        (coordinator->loss_count > 0 || !is_same(coordinator, &coordinator->culprit, lost));
    generation_explain(coordinator, before);
    snprintf(ret_reason, size, "%s%s%s%s%s", sentence, why[0] != '\0' ? "; " : "", why,
             has_more ? "; before that, " : "", has_more ? before : "");
}

void generation_lose(struct coordinator *coordinator, enum status status, const char *sentence,
                     const struct sender *lost, uint64_t now_ms)
{
    char why[COORDINATOR_REASON_BYTES], reason[3 * COORDINATOR_REASON_BYTES + 32];
    bool may_follow = generation_may_follow(coordinator, lost, why, sizeof(why));
    if (coordinator->state >= COORDINATOR_CLOSING) {
        return;
    }
    generation_note_lost(coordinator, lost, now_ms);
    newcomers_tidy(&coordinator->newcomers, now_ms);
    if (coordinator->state == COORDINATOR_TRAINING && generation_is_done(coordinator)) {
        bool is_lacked = lost->slot != NULL && checkpoint_schedule_lacks(coordinator, lost);
        if (!is_lacked || !may_follow) {
            conclude_without(coordinator, sentence, is_lacked, now_ms);
            return;
        }
    }
    if (may_follow && coordinator->state == COORDINATOR_RENEWING) { // the first loss is the reason
        generation_lose_too(coordinator, sentence, lost);
        return;
    }
    explain_end(coordinator, lost, sentence, why, reason, sizeof(reason));
    coordinator_close(coordinator, may_follow ? STATUS_AGAIN : status, reason, lost, now_ms);
}

void generation_give_up(struct coordinator *coordinator, enum status status, const char *sentence,
                        const struct sender *member, uint64_t now_ms)
{
    if (member->slot->is_new) {
        generation_lose(coordinator, status, sentence, member, now_ms);
    } else {
        coordinator_close(coordinator, status, sentence, member, now_ms);
    }
}

/* Makes this loss the reason, and the one that was it one of the others. */
static void make_reason(struct coordinator *coordinator, const char *sentence,
                        const struct sender *lost)
{
    const struct sender before = coordinator->culprit;
    uint32_t known = find_loss(coordinator, lost);
    if (known < coordinator->loss_count) {
        coordinator->losses[known] = coordinator->losses[--coordinator->loss_count];
    }
    if (before.slot != NULL && !is_same(coordinator, &before, lost)) {
        add_loss(coordinator, &before, coordinator->reason);
    }
    coordinator_amend(coordinator, STATUS_AGAIN, sentence, lost);
}

void generation_lose_killed(struct coordinator *coordinator, const char *sentence,
                            const struct sender *lost, uint64_t now_ms)
{
    char why[COORDINATOR_REASON_BYTES];
    if (coordinator->state == COORDINATOR_RENEWING &&
        generation_may_follow(coordinator, lost, why, sizeof(why))) {
        generation_note_lost(coordinator, lost, now_ms);
        make_reason(coordinator, sentence, lost);
    } else {
        generation_lose(coordinator, STATUS_UNREACHABLE, sentence, lost, now_ms);
    }
}

void generation_renew(struct coordinator *coordinator, const char *sentence, uint64_t since_ms,
                      uint64_t now_ms)
{
    if (coordinator->state < COORDINATOR_RENEWING) {
        newcomers_tidy(&coordinator->newcomers, now_ms);
        coordinator_close(coordinator, STATUS_AGAIN, sentence, NULL, now_ms);
        coordinator->ended_ms = since_ms;
    }
}

bool generation_has_enough(const struct coordinator *last, char *ret_why, size_t why_size)
{
    return are_enough(last, count_left(last), NULL, ret_why, why_size);
}

uint64_t generation_most_steps(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    uint64_t most = results_most_steps(&coordinator->results, generation_begin_step(coordinator));
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        most = membership->workers[i].step > most ? membership->workers[i].step : most;
    }
    return most;
}

void generation_raise_lost_step(const struct coordinator *coordinator, uint64_t step,
                                struct recovery *recovery)
{
    if (recovery->is_in_place) {
        return; // servers have said it
    }
    uint64_t total = job_known_steps(coordinator->job, coordinator->train_samples);
    step = total > 0 && step > total ? total : step;
    recovery->lost_step = step > recovery->lost_step ? step : recovery->lost_step;
}

void generation_finish(struct generation *generation)
{
    free(generation->workers);
    free(generation->servers);
    free(generation->recoveries);
    *generation = (struct generation){0};
}

void generation_begin(const struct generation *generation, struct coordinator *coordinator)
{
    struct membership *membership = &coordinator->membership;
    coordinator->generation = generation;
    coordinator->calls_back = !coordinator->is_returned; // who comes back then comes by itself
    coordinator->workers_lost = generation->workers_lost;
    coordinator->checkpointing.written = generation->checkpoint_step;
    coordinator->checkpointing.has_failed = generation->has_checkpoint_failed;
    coordinator->checkpointing.is_slow = generation->is_disk_slow;
    coordinator->checkpointing.hangs = generation->does_disk_hang;
    coordinator->checkpointing.took_ms = generation->copy_took_ms;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        struct slot *slot = &membership->workers[i];
        uint64_t *given = slot->given;
        *slot = generation->workers[i];
        slot->given = given;
        slot->heard_ms = slot->step_since_ms = coordinator->created_ms;
    }
    for (uint32_t i = 0; i < membership->server_count; i++) {
        uint32_t thread = i / generation->server_count, process = i % generation->server_count;
        struct slot *slot = &membership->servers[i];
        uint64_t *given = slot->given;
        *slot = generation->servers[process];
        slot->given = given;
        slot->number += thread * JOB_SERVERS_MAX;
        slot->heard_ms = slot->step_since_ms = coordinator->created_ms;
    }
}

void generation_note_alive(struct coordinator *coordinator, uint64_t peer, uint64_t now_ms)
{
    const struct membership *membership = &coordinator->membership;
    for (uint32_t i = 0; coordinator->generation != NULL && i < membership->worker_count; i++) {
        struct slot *slot = &membership->workers[i];
        if (slot->state == SLOT_FREE && slot->peer == peer) {
            slot->heard_ms = now_ms;
        }
    }
}

void generation_note_start(struct generation *generation, const struct coordinator *coordinator,
                           uint64_t now_ms)
{
    struct recovery *last = &generation->recoveries[generation->recovery_count - 1];
    if (generation->started_ms == 0) {
        generation->started_ms = now_ms;
    }
    // The last sign of life came before that.
    generation_raise_lost_step(coordinator, coordinator->made_before, last);
    last->ranks = carriers_present(&coordinator->carriers);
    last->begin_step = generation_begin_step(coordinator);
    for (struct recovery *of = last; of >= generation->recoveries && !of->has_gone_on; of--) {
        of->has_gone_on = true; // with those that it has overtaken
        of->begin_step = of->begin_step > 0 ? of->begin_step : last->begin_step;
    }
    last->seconds = (double)(now_ms - generation->lost_ms) / 1000;
    if (last->before == 0 && last->before_ms > 0 && last->lost_step > last->before_step) {
        last->before = (double)(last->lost_step - last->before_step) * 1000 /
                       (double)last->before_ms * last->images_per_step;
    }
}

uint64_t generation_begin_step(const struct coordinator *coordinator)
{
    const struct coordinator_resume *resume = coordinator->resume;
    return resume != NULL ? resume->step : coordinator->begin_step;
}

bool generation_is_done(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t done = membership_count(membership->workers, membership->worker_count, SLOT_DONE);
    return job_may_commit(coordinator->job) ? done > 0 && count_left(coordinator) == 0
                                            : done == membership->worker_count;
}

bool generation_is_in_place(const struct coordinator *coordinator)
{
    return coordinator->generation != NULL && coordinator->generation->in_place_step > 0;
}

uint64_t generation_started_ms(const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    return generation != NULL && generation->started_ms > 0 ? generation->started_ms
                                                            : coordinator->started_ms;
}

double generation_seconds(const struct coordinator *coordinator, uint64_t now_ms)
{
    const struct generation *generation = coordinator->generation;
    const struct coordinator_resume *resume = coordinator->resume;
    uint64_t started_ms = generation_started_ms(coordinator);
    double before = generation != NULL ? generation->seconds_before
                    : resume != NULL   ? resume->seconds
                                       : 0;
    return before + (started_ms > 0 ? (double)(now_ms - started_ms) / 1000 : 0);
}

uint32_t generation_restarts(const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    const struct coordinator_resume *resume = coordinator->resume;
    if (generation != NULL) {
        return generation->restarts_before + generation->number;
    }
    uint32_t known = resume != NULL ? resume->restarts : 0;
    return known > coordinator->restarts_before ? known : coordinator->restarts_before;
}
