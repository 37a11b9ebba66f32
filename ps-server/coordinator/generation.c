/* Lets a job that has lost a worker go on with the others. */
#include "ps-server/coordinator/generation.h"

#include "common/job/faults.h"
#include "common/job/job_checks.h"
#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/coordinator_handshake.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the process in the slot takes part from now on: those that were lost are GONE. Of a
 * program that commits, those that are DONE have done their part. */
static bool is_left(const struct job *job, const struct slot *slot)
{
    return slot->state != SLOT_GONE && (slot->state != SLOT_DONE || !job_may_commit(job));
}

/* Of a later generation, some may not have come back yet. */
static uint32_t count_left(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t count = 0;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        count += is_left(coordinator->job, &membership->workers[i]);
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
        has = has || (slot->has_commit && slot != lost && is_left(coordinator->job, slot));
    }
    return had && !has;
}

/* Whether no thread of the server process is gone, or is `lost`. */
static bool server_is_left(const struct membership *membership, uint32_t processes,
                           uint32_t process, const struct slot *lost)
{
    bool is_left = process < membership->server_count;
    for (uint32_t i = process; i < membership->server_count; i += processes) {
        const struct slot *slot = &membership->servers[i];
        is_left = is_left && slot->state != SLOT_GONE && slot != lost;
    }
    return is_left;
}

static uint32_t count_servers_left(const struct coordinator *coordinator, const struct slot *lost)
{
    uint32_t processes = coordinator->job->servers, count = 0;
    for (uint32_t i = 0; i < processes; i++) {
        count += server_is_left(&coordinator->membership, processes, i, lost);
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
    uint32_t left = count_left(coordinator) - (is_worker && is_left(job, lost->slot) ? 1 : 0);
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

void generation_lose(struct coordinator *coordinator, enum status status, const char *sentence,
                     const struct sender *lost, uint64_t now_ms)
{
    char why[COORDINATOR_REASON_BYTES], reason[2 * COORDINATOR_REASON_BYTES + 2];
    bool may_follow = generation_may_follow(coordinator, lost, why, sizeof(why));
    if (coordinator->state >= COORDINATOR_CLOSING) {
        return;
    }
    bool is_news = lost->slot == NULL || lost->slot->state != SLOT_GONE;
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
        if (is_news) {
            coordinator_port_say(&coordinator->port, true, "the job goes on: %s, too", sentence);
        }
        return;
    }
    snprintf(reason, sizeof(reason), "%s%s%s", sentence, why[0] != '\0' ? "; " : "", why);
    coordinator_close(coordinator, may_follow ? STATUS_AGAIN : status, reason, lost, now_ms);
}

void generation_lose_killed(struct coordinator *coordinator, const char *sentence,
                            const struct sender *lost, uint64_t now_ms)
{
    char why[COORDINATOR_REASON_BYTES];
    if (coordinator->state == COORDINATOR_RENEWING &&
        generation_may_follow(coordinator, lost, why, sizeof(why))) {
        generation_note_lost(coordinator, lost, now_ms);
        coordinator_amend(coordinator, STATUS_AGAIN, sentence, lost);
    } else {
        generation_lose(coordinator, STATUS_UNREACHABLE, sentence, lost, now_ms);
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
    const struct generation_worker *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

static void list_slots(const struct coordinator *last, bool has_commit,
                       struct generation *generation)
{
    const struct membership *membership = &last->membership;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        const struct slot *slot = &membership->workers[i];
        if (is_left(last->job, slot) && slot->has_commit == has_commit) {
            generation->workers[generation->process_count++] =
                (struct generation_worker){slot->number, slot->peer, has_commit};
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
        generation->workers[generation->process_count++] =
            (struct generation_worker){newcomer->number, newcomer->peer, false};
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
        if (server_is_left(membership, processes, i, NULL)) {
            generation->servers[generation->server_count++] = membership->servers[i].number;
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
    if (generation->recovery_count > 1) {
        recovery[-1].bytes += last->fetched_bytes; // none of those who come back anew: it is told
    }
    bool has_more = is_one && last->culprit.slot != NULL; // it was lost as well
    snprintf(recovery->reason, sizeof(recovery->reason), "%.60s%s%.440s",
             has_more ? before.recoveries[before.recovery_count].reason : "",
             has_more ? ", and " : "", last->reason);
    recovery->lost_step = generation_most_steps(last);
    recovery->processes = generation->process_count;
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
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        struct slot *slot = &membership->workers[i];
        slot->number = generation->workers[i].number;
        slot->peer = generation->workers[i].peer;
        slot->has_commit = generation->workers[i].has_commit;
        slot->heard_ms = slot->step_since_ms = coordinator->created_ms;
    }
    for (uint32_t i = 0; i < membership->server_count; i++) {
        uint32_t thread = i / generation->server_count, process = i % generation->server_count;
        struct slot *slot = &membership->servers[i];
        slot->number = generation->servers[process] + thread * JOB_SERVERS_MAX;
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
    if (coordinator->made_before > last->lost_step) { // the last sign of life came before that
        last->lost_step = coordinator->made_before;
    }
    last->ranks = carriers_present(&coordinator->carriers);
    last->begin_step = generation_begin_step(coordinator);
    last->seconds = (double)(now_ms - generation->lost_ms) / 1000;
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
