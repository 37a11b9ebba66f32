/* Fills the next generation from the coordinator of the last one, and measures how fast the job is
 * around a loss. */
#include "common/job/faults.h"
#include "common/job/job_checks.h"
#include "common/job/job_modes.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether one that is gone had the place that the next kill of --fault names. */
static bool has_struck(const struct coordinator *last)
{
    const struct membership *membership = &last->membership;
    const struct faults faults = faults_of(last->job);
    const struct fault *kill = faults_next_kill(&faults);
    if (kill == NULL) {
        return false;
    }
    if (kill->place == FAULT_AT_SHARD) {
        return kill->number < membership->server_count &&
               membership->servers[kill->number].state == SLOT_GONE;
    }
    uint32_t process = carriers_process(last->carriers, kill->number);
    return membership->workers[process].state == SLOT_GONE;
}

static int compare_workers(const void *a, const void *b)
{
    const struct slot *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* A slot of the next generation for a process that is left: what is known of it until it comes. */
static struct slot keep_slot(const struct coordinator *last, const struct slot *slot)
{
    bool may_reconnect = deadlines_may_reconnect(last, slot);
    struct slot kept = {.number = slot->number,
                        .peer = slot->peer,
                        .host_id = slot->host_id,
                        .launch = slot->launch,
                        .closed_ms = may_reconnect ? 0 : slot->closed_ms,
                        .sighting = slot->sighting,
                        .has_commit = slot->has_commit,
                        .is_new = slot->is_new,
                        .is_asking = slot->is_asking};
    memcpy(kept.loopback, slot->loopback, sizeof(kept.loopback));
    return kept;
}

static void list_slots(const struct coordinator *last, bool has_commit,
                       struct generation *generation)
{
    const struct membership *membership = &last->membership;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        const struct slot *slot = &membership->workers[i];
        if (generation_slot_is_left(last->job, slot) && slot->has_commit == has_commit) {
            generation->workers[generation->process_count++] = keep_slot(last, slot);
        }
    }
}

/* Those who are left and those who have come, in the order of their numbers. Of a program that
 * commits: those first that have a commit, each in the order of before. */
static enum status list_workers(const struct coordinator *last, struct generation *generation)
{
    const struct membership *membership = &last->membership;
    uint32_t newcomer_count = newcomers_due(last);
    generation->workers =
        calloc((size_t)membership->worker_count + newcomer_count, sizeof(*generation->workers));
    if (generation->workers == NULL) {
        return STATUS_NO_MEMORY;
    }
    list_slots(last, true, generation);
    list_slots(last, false, generation);
    for (uint32_t i = 0; i < newcomer_count; i++) {
        const struct newcomer *newcomer = &last->newcomers.list[i];
        generation->workers[generation->process_count++] = // it says where it listens once more
            (struct slot){.number = newcomer->number,
                          .peer = newcomer->peer,
                          .host_id = newcomer->sighting.host_id,
                          .launch = newcomer->launch,
                          .sighting = newcomer->sighting,
                          .is_new = true,
                          .is_asking = true};
    }
    if (!job_may_commit(last->job)) {
        qsort(generation->workers, generation->process_count, sizeof(*generation->workers),
              compare_workers);
    }
    return STATUS_OK;
}

/* Likewise those of server processes, each of which has one slot for each of its threads. */
static enum status list_servers(const struct coordinator *last, struct generation *generation)
{
    const struct membership *membership = &last->membership;
    uint32_t processes = last->job->servers;
    generation->servers = calloc((size_t)processes + 1, sizeof(*generation->servers));
    if (generation->servers == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < processes; i++) {
        const struct slot *slot = &membership->servers[i];
        if (generation_server_is_left(membership, processes, i, NULL)) {
            generation->servers[generation->server_count++] = keep_slot(last, slot);
        }
    }
    return STATUS_OK;
}

enum status generation_list_recoveries(const struct generation *before,
                                       struct generation *generation)
{
    uint32_t known = before != NULL ? before->recovery_count : 0;
    uint32_t kept = known < GENERATION_RECOVERIES_MAX ? known : GENERATION_RECOVERIES_MAX - 1;
    generation->recoveries = calloc((size_t)kept + 1, sizeof(*generation->recoveries));
    if (generation->recoveries == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < kept; i++) {
        generation->recoveries[i] = before->recoveries[known - kept + i];
    }
    generation->recovery_count = kept + 1;
    return STATUS_OK;
}

/* Whether the last one was to take in members that had lost theirs, and has not come to that: its
 * loss and what came behind it are one. */
static bool was_coming_back(const struct coordinator *last)
{
    return last->is_returned && last->started_ms == 0 && last->generation != NULL;
}

static double seconds_since(uint64_t since_ms, uint64_t now_ms)
{
    return now_ms > since_ms ? (double)(now_ms - since_ms) / 1000 : 0;
}

/* A loss has overtaken the recovery before there was training: see generation_note_start. */
static void note_overtaken(const struct coordinator *last, struct recovery *recovery)
{
    generation_raise_lost_step(last, last->made_before, recovery);
    recovery->begin_step = generation_begin_step(last);
    recovery->seconds = seconds_since(last->generation->lost_ms, last->ended_ms);
    recovery->seconds_behind = recovery->seconds;
    recovery->is_measured = true;
}

/* Of all processes. A program of the user's own says how many images it has had. */
static double images_per_step(const struct coordinator *coordinator)
{
    const struct results *results = &coordinator->results;
    const struct job *job = coordinator->job;
    double images = 0, steps = 0;
    if (!job_is_external(job)) {
        return job_batch_present(job);
    }
    for (uint32_t i = 0; i < results->worker_count; i++) {
        images += (double)results->ranks[i].images;
        steps += (double)results->ranks[i].steps;
    }
    return steps > 0 ? images / steps * results->worker_count : 0;
}

/* The mean over ranks, each until the last sign of life that told of a new step of its process. So
 * the time between signs does not count, nor time in which the job stood still before the loss was
 * noticed. 0: no sign of life has told of a step. */
static double steps_per_second(const struct coordinator *coordinator)
{
    double sum = 0, ranks = 0;
    for (uint32_t i = 0; i < coordinator->membership.worker_count; i++) {
        const struct slot *slot = &coordinator->membership.workers[i];
        double seconds = seconds_since(coordinator->started_ms, slot->step_since_ms);
        uint32_t carried = carriers_block(coordinator->carriers, i).count;
        if (slot->step > slot->first_step && seconds > 0) {
            sum += (double)(slot->step - slot->first_step) / seconds * carried;
            ranks += carried;
        }
    }
    return ranks > 0 ? sum / ranks : 0;
}

/* The step at which this generation begins; where workers train already, the most that one of them
 * has made. */
static uint64_t first_step(const struct coordinator *coordinator)
{
    uint64_t begin = generation_begin_step(coordinator);
    return coordinator->is_returned ? generation_most_steps(coordinator) : begin;
}

/* Steps that were made before the loss that this generation goes on after, or before others that it
 * has overtaken. */
static uint64_t find_target(const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    uint64_t target = 0;
    for (uint32_t i = generation != NULL ? generation->recovery_count : 0; i > 0; i--) {
        struct recovery of = generation->recoveries[i - 1];
        if (of.has_gone_on) {
            break;
        }
        generation_raise_lost_step(coordinator, coordinator->made_before, &of);
        target = of.lost_step > target ? of.lost_step : target;
    }
    return target;
}

void generation_begin_measuring(struct coordinator *coordinator, uint64_t now_ms)
{
    uint64_t begin = first_step(coordinator);
    for (uint32_t i = 0; i < coordinator->membership.worker_count; i++) {
        struct slot *slot = &coordinator->membership.workers[i];
        slot->first_step = coordinator->is_returned ? slot->step : begin;
    }
    headway_begin(&coordinator->headway, begin, find_target(coordinator), now_ms);
}

void generation_note_steps(struct coordinator *coordinator, uint64_t now_ms)
{
    struct headway *headway = &coordinator->headway;
    if (coordinator->state == COORDINATOR_TRAINING && !headway->has_regained) {
        headway_note(headway, generation_most_steps(coordinator), now_ms);
    }
}

/* Steps that were made again since the loss, or without the coordinator: the mean of all workers.
 * In a race the mean is less than the most that one worker has made, which headway counts. */
static double steps_meanwhile(const struct coordinator *coordinator,
                              const struct recovery *recovery)
{
    double steps = (double)headway_repeated(&coordinator->headway);
    double seconds = recovery->seconds_behind - recovery->seconds; // of training
    uint64_t next = generation_begin_step(coordinator) + 1;
    if (recovery->trained_on) {
        return (double)recovery->steps_meanwhile;
    }
    bool is_race = checkpoint_schedule_is_race(coordinator, next);
    double mean = seconds > 0 ? steps_per_second(coordinator) * seconds : 0;
    return is_race && mean < steps ? mean : steps;
}

void generation_measure(const struct coordinator *coordinator, struct recovery *recovery)
{
    const struct headway *headway = &coordinator->headway;
    if (coordinator->started_ms == 0) {
        return;
    }
    double images = images_per_step(coordinator);
    uint64_t end_ms = coordinator->ended_ms > 0 ? coordinator->ended_ms : headway->last_ms;
    uint64_t until_ms = headway->has_regained ? headway->regained_ms : end_ms;
    double behind = recovery->trained_on
                        ? recovery->seconds
                        : seconds_since(coordinator->generation->lost_ms, until_ms);
    recovery->seconds_behind = behind;
    recovery->during = behind > 0 ? steps_meanwhile(coordinator, recovery) * images / behind : 0;
    recovery->after = steps_per_second(coordinator) * images;
    recovery->is_measured = true;
}

void generation_measure_before(const struct coordinator *last, struct recovery *recovery)
{
    if (last->started_ms == 0) {
        return;
    }
    recovery->images_per_step = images_per_step(last);
    recovery->before = steps_per_second(last) * recovery->images_per_step;
    recovery->before_step = last->headway.begin_step;
    recovery->before_ms = last->ended_ms > last->started_ms ? last->ended_ms - last->started_ms : 0;
}

/* The step at which the next generation begins in place; 0: it does not. One that has not come to
 * train leaves what servers have kept as it is. */
static uint64_t find_in_place(const struct coordinator *last, const struct generation *next)
{
    const struct generation *before = last->generation;
    bool has_servers = next->server_count == last->job->servers;
    if (before != NULL && before->in_place_step > 0 && last->started_ms == 0) {
        return has_servers ? before->in_place_step : 0;
    }
    return has_servers ? in_place_step(last) : 0;
}

/* Keeps the newest recoveries of before, and adds the last loss, as far as it is known. */
static enum status list_recoveries(const struct coordinator *last, struct generation *generation)
{
    struct generation before =
        last->generation != NULL ? *last->generation : (struct generation){.number = 0};
    bool is_one = was_coming_back(last);
    before.recovery_count -= is_one;
    enum status status = generation_list_recoveries(&before, generation);
    if (status != STATUS_OK) {
        return status;
    }
    struct recovery *recovery = &generation->recoveries[generation->recovery_count - 1];
    if (last->generation != NULL && generation->recovery_count > 1) {
        recovery[-1].bytes += last->fetched_bytes; // none of those who come back anew: it is told
        if (!is_one && last->started_ms == 0) {
            note_overtaken(last, &recovery[-1]);
        } else if (!is_one) {
            generation_measure(last, &recovery[-1]);
        }
    }
    char reason[COORDINATOR_REASON_BYTES];
    bool has_more = is_one && last->culprit.slot != NULL; // it was lost as well
    generation_explain(last, reason);
    snprintf(recovery->reason, sizeof(recovery->reason), "%.60s%s%.*s",
             has_more ? before.recoveries[before.recovery_count].reason : "",
             has_more ? ", and " : "", has_more ? 440 : COORDINATOR_REASON_BYTES, reason);
    if (is_one) { // it has not trained itself
        recovery->before = before.recoveries[before.recovery_count].before;
    }
    generation_raise_lost_step(last, generation_most_steps(last), recovery);
    if (generation->in_place_step > 0) {
        recovery->lost_step = generation->in_place_step;
        recovery->is_in_place = true;
    }
    recovery->processes = generation->process_count;
    generation_measure_before(last, recovery);
    return STATUS_OK;
}

enum status generation_next(const struct coordinator *last, struct generation *ret_generation)
{
    const struct generation *before = last->generation;
    struct generation next = {
        .number = before != NULL ? before->number + !was_coming_back(last) : 1,
        .places = before != NULL ? before->places : last->membership.worker_count,
        .workers_lost = last->workers_lost,
        .checkpoint_step = last->checkpointing.written,
        .has_checkpoint_failed = last->checkpointing.has_failed,
        .is_disk_slow = last->checkpointing.is_slow,
        .does_disk_hang = last->checkpointing.hangs,
        .copy_took_ms = last->checkpointing.took_ms,
        .lost_ms = was_coming_back(last) ? before->lost_ms : last->ended_ms,
        .started_ms = generation_started_ms(last),
        // As far as they are known to have been before this process.
        .seconds_before = generation_seconds(last, generation_started_ms(last)),
        .restarts_before = before != NULL ? before->restarts_before : generation_restarts(last),
    };
    enum status status = list_workers(last, &next);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = list_servers(last, &next);
    if (status != STATUS_OK) {
        goto fail;
    }
    next.in_place_step = find_in_place(last, &next);
    status = list_recoveries(last, &next);
    if (status != STATUS_OK) {
        goto fail;
    }
    *ret_generation = next;
    return STATUS_OK;

fail:
    generation_finish(&next);
    return status;
}

/* --on-loss shrink: the ranks of those that are gone are left out, and of those that were, each
 * newcomer brings as many back as others carry. What a list has no room for is dealt anew. */
static void change_left_out(const struct coordinator *last, uint32_t newcomers, struct job *job)
{
    const struct carriers *carriers = &last->carriers;
    uint32_t of_each = carriers_present(carriers) / carriers->processes;
    rank_list_remove_first(&job->left_out, newcomers * of_each);
    for (uint32_t i = 0; i < last->membership.worker_count; i++) {
        const struct rank_block ranks = carriers_block(*carriers, i);
        bool is_gone = last->membership.workers[i].state == SLOT_GONE;
        for (uint32_t k = 0; k < ranks.count && is_gone; k++) {
            (void)rank_list_add(&job->left_out, ranks.first + k);
        }
    }
}

void generation_change_job(const struct coordinator *last, const struct generation *next,
                           struct job *job)
{
    uint32_t newcomers = newcomers_due(last);
    const struct faults faults = faults_of(last->job);
    if (faults_next_join(&faults) != NULL) {
        faults_forget_joins(job, newcomers);
    }
    if (has_struck(last)) {
        faults_forget_kill(job);
    }
    for (uint32_t i = 0; i < last->membership.worker_count; i++) {
        if (last->membership.workers[i].state == SLOT_GONE) {
            faults_forget_ranks(job, carriers_block(last->carriers, i),
                                generation_most_steps(last) + 1);
        }
    }
    if (job->on_loss == ON_LOSS_SHRINK) {
        change_left_out(last, newcomers, job);
    }
    job->processes = next->process_count;
    job->servers = next->server_count;
    faults_forget_shards(job);
    if (job_may_commit(job)) {
        job->workers = next->process_count;
        job->global_batch = job->batch * job->workers;
        faults_forget_absent_ranks(job);
    }
}
