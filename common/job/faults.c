/* Strikes faults of a job off its list, and checks the list against the job. */
#include "common/job/faults.h"

#include "common/job/job_modes.h"
#include "common/transport/endpoints.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WHY_BYTES 256

struct faults faults_of(const struct job *job)
{
    char why[WHY_BYTES];
    struct faults faults;
    enum status status = faults_parse(job->faults, &faults, why, sizeof(why));
    assert(status == STATUS_OK); // the option was checked
    (void)status;
    return faults;
}

/* ==========================================================================================
 * Those that have struck
 * ========================================================================================== */

void faults_forget_kill(struct job *job)
{
    const struct faults faults = faults_of(job);
    const struct fault *kill = faults_next_kill(&faults);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; kill != NULL && i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        if (fault->kind == FAULT_JOIN || fault_comes_before(kill, fault)) {
            kept.list[kept.count++] = *fault;
        }
    }
    if (kill != NULL) {
        faults_format(&kept, job->faults, sizeof(job->faults));
    }
}

void faults_forget_joins(struct job *job, uint32_t count)
{
    struct faults faults = faults_of(job);
    if (count == 0) {
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        const struct fault *join = faults_next_join(&faults);
        assert(join != NULL);
        uint32_t at = (uint32_t)(join - faults.list);
        faults.count--;
        memmove(&faults.list[at], &faults.list[at + 1],
                (faults.count - at) * sizeof(faults.list[0]));
    }
    faults_format(&faults, job->faults, sizeof(job->faults));
}

void faults_forget_ranks(struct job *job, struct rank_block ranks, uint64_t step)
{
    const struct faults faults = faults_of(job);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        bool has_struck = fault->place == FAULT_AT_RANK && fault->kind != FAULT_KILL &&
                          rank_block_has(ranks, fault->number) && fault->step <= step;
        if (!has_struck) {
            kept.list[kept.count++] = *fault;
        }
    }
    if (kept.count < faults.count) {
        faults_format(&kept, job->faults, sizeof(job->faults));
    }
}

void faults_forget_steps(struct job *job, uint64_t steps)
{
    const struct faults faults = faults_of(job);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; i < faults.count; i++) {
        if (faults.list[i].step > steps) {
            kept.list[kept.count++] = faults.list[i];
        }
    }
    if (kept.count < faults.count) {
        faults_format(&kept, job->faults, sizeof(job->faults));
    }
}

void faults_forget_absent_ranks(struct job *job)
{
    const struct faults faults = faults_of(job);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        if (fault->place != FAULT_AT_RANK || fault->number < job->workers) {
            kept.list[kept.count++] = *fault;
        }
    }
    if (kept.count < faults.count) {
        faults_format(&kept, job->faults, sizeof(job->faults));
    }
}

void faults_forget_shards(struct job *job)
{
    const struct faults faults = faults_of(job);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        if (fault->place != FAULT_AT_SHARD || fault->number < job_shard_count(job)) {
            kept.list[kept.count++] = *fault;
        }
    }
    if (kept.count < faults.count) {
        faults_format(&kept, job->faults, sizeof(job->faults));
    }
}

/* ==========================================================================================
 * Checks
 * ========================================================================================== */

static enum status check_number(const struct fault *fault, uint32_t count, char *ret_error,
                                size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    if (fault->number < count) {
        return STATUS_OK;
    }
    const char *what = fault->place == FAULT_AT_RANK ? "rank" : "shard";
    fault_format(fault, text);
    if (count == 1) {
        snprintf(ret_error, error_size, "--fault %s: the job has one %s, which is number 0", text,
                 what);
    } else {
        snprintf(ret_error, error_size,
                 "--fault %s: the job has %" PRIu32 " %ss, which are 0 to %" PRIu32, text, count,
                 what, count - 1);
    }
    return STATUS_INVALID;
}

static enum status check_step(const struct fault *fault, uint64_t steps, char *ret_error,
                              size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    if (fault->step <= steps) {
        return STATUS_OK;
    }
    fault_format(fault, text);
    snprintf(ret_error, error_size, "--fault %s never comes: the job has %" PRIu64 " step%s", text,
             steps, steps == 1 ? "" : "s");
    return STATUS_INVALID;
}

/* A worker that comes needs a place: one of `free`, or one that a kill before it has left. */
static enum status check_place(const struct faults *faults, const struct fault *join, uint32_t free,
                               char *ret_error, size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    uint32_t places = free;
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        places += fault->place == FAULT_AT_RANK && fault->kind == FAULT_KILL &&
                  fault_comes_before(fault, join);
    }
    fault_format(join, text);
    if (places < faults_count_joins(faults, join->step)) {
        snprintf(ret_error, error_size,
                 "--fault %s: there is no place for a worker: each join needs the kill of a rank "
                 "before it, such as rank=1,step=%" PRIu64 ",kill",
                 text, join->step > 1 ? join->step / 2 : 1);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_join(const struct job *job, const struct faults *faults,
                              const struct fault *join, char *ret_error, size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    fault_format(join, text);
    if (job->on_loss == ON_LOSS_FAIL) {
        snprintf(ret_error, error_size,
                 "--fault %s never comes: with --on-loss fail the kill before it ends the job",
                 text);
        return STATUS_INVALID;
    }
    struct carriers carriers = job_carriers(job);
    return check_place(faults, join, carriers.ranks - carriers.processes, ret_error, error_size);
}

enum status faults_check_replacements(const struct job *job, char *ret_error, size_t error_size)
{
    const struct faults faults = faults_of(job);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < faults.count && status == STATUS_OK; i++) {
        if (faults.list[i].kind == FAULT_JOIN) {
            status = check_place(&faults, &faults.list[i], 0, ret_error, error_size);
        }
    }
    return status;
}

/* Shared memory is no network: it cannot be cut. */
static enum status check_network(const struct job *job, const struct fault *fault, char *ret_error,
                                 size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    if (fault->kind != FAULT_PARTITION || job->mode.kind == MODE_LOCAL ||
        !endpoints_may_share(job->transport)) {
        return STATUS_OK;
    }
    fault_format(fault, text);
    snprintf(ret_error, error_size,
             "--fault %s: processes of one host share memory, which is no network; add "
             "--transport tcp or --transport ipc",
             text);
    return STATUS_INVALID;
}

enum status faults_check(const struct job *job, char *ret_error, size_t error_size)
{
    const struct faults faults = faults_of(job);
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        bool is_rank = fault->place == FAULT_AT_RANK;
        bool is_join = fault->place == FAULT_AT_JOB;
        bool is_for_others =
            is_rank || is_join ? job->mode.kind == MODE_LOCAL : !job_has_servers(job);
        enum status status = STATUS_OK;
        if (is_join && !is_for_others) {
            status = check_join(job, &faults, fault, ret_error, error_size);
        } else if (!is_for_others) {
            status = check_number(fault, is_rank ? job->workers : job_shard_count(job), ret_error,
                                  error_size);
        }
        if (status == STATUS_OK && job->steps > 0) {
            status = check_step(fault, job->steps, ret_error, error_size);
        }
        if (status == STATUS_OK) {
            status = check_network(job, fault, ret_error, error_size);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* The mode in which a step that counts from 1 is made. */
static enum mode_kind mode_of_step(const struct phases *phases, uint64_t step)
{
    uint32_t index = 0;
    while (index + 1 < phases->count && step > phases->list[index].marks.end) {
        index++;
    }
    return phases->list[index].mode.kind;
}

static bool has_servers_in(const struct phases *phases)
{
    bool has = false;
    for (uint32_t i = 0; i < phases->count; i++) {
        has = has || mode_has_servers(phases->list[i].mode.kind);
    }
    return has;
}

enum status faults_check_phases(const struct faults *faults, const struct phases *phases,
                                char *ret_error, size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    uint64_t steps = phases->list[phases->count - 1].marks.end;
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        enum status status = check_step(fault, steps, ret_error, error_size);
        if (status != STATUS_OK) {
            return status;
        }
        bool is_idle = fault->place == FAULT_AT_SHARD && has_servers_in(phases) &&
                       !mode_has_servers(mode_of_step(phases, fault->step));
        if (is_idle) {
            fault_format(fault, text);
            snprintf(ret_error, error_size,
                     "--fault %s never comes: that step is made in mode ring, in which shards have "
                     "no updates",
                     text);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}
