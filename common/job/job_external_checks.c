/* Checks a job whose model is a program of its own. */
#include "common/job/carriers.h"
#include "common/job/faults.h"
#include "common/job/job_limits.h"
#include "common/job/job_modes.h"

#include <stdio.h>
#include <string.h>

/* Cutting a process off hooks calls of the whole process, which is the user's. */
static bool has_partition(const struct job *job)
{
    const struct faults faults = faults_of(job);
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        if (fault->place == FAULT_AT_RANK && fault->kind == FAULT_PARTITION) {
            return true;
        }
    }
    return false;
}

/* What the program of an external job does not do; the first that the job asks for. */
static const char *beyond_external(const struct job *job)
{
    const struct limit limits[] = {
        {job->epochs > 0, "its length in steps: --steps COUNT, or as many as it makes: --epochs 0"},
        {job_is_open(job) && (job->lr_schedule != SCHEDULE_CONSTANT || job->warmup_epochs > 0),
         "a length for a rate that changes: --steps COUNT"},
        {job->left_out.count > 0, "all of its ranks: --without-ranks none"},
        {job->sync_every > 1, "an exchange in every step: --sync-every 1"},
        {job_switches(job).count > 0, "one mode: leave out --switch"},
        {job_tunes_buckets(job), "a size of buckets: --bucket-mb MB"},
        {job_carriers(job).processes < job->workers, "a process for each worker: --processes 0"},
        {job->eval_every > 0, "to evaluate by itself: leave out --eval-every"},
        {job->target_accuracy > 0, "to evaluate by itself: leave out --target-accuracy"},
        {job->checkpoint_every.kind != CHECKPOINT_NEVER,
         "to keep checkpoints by itself: --checkpoint-every none"},
        {job->on_loss != ON_LOSS_FAIL && job->on_loss != ON_LOSS_COMMIT,
         "all of its processes, or commits of its own: --on-loss fail or commit"},
        {job->sync_bn, "no layers of ours: --no-sync-bn"},
        {job_has_nccl(job), "sums on the host: --all-reduce auto, not nccl"},
        {job_has_gpu_servers(job), "servers that keep parameters on the host: --server-device "
                                   "host"},
        {strcmp(job->order, "free") != 0, "updates as they come: --order free"},
        {has_partition(job), "a network that is not cut: --fault with kill or stop"},
    };
    return first_asked(limits, sizeof(limits) / sizeof(limits[0]));
}

/* What programs that go on from their commits cannot have; the first that the job asks for. */
static const char *beyond_commits(const struct job *job)
{
    const struct faults faults = faults_of(job);
    const struct limit limits[] = {
        {job->backup > 0, "the gradients of all: --backup 0"},
        {job->gradients_per_update > 1, "each gradient to be applied at once: "
                                        "--gradients-per-update 1"},
        {job->remedy != REMEDY_NONE, "servers without a memory of gradients: --remedy none"},
        {faults_count_joins(&faults, UINT64_MAX) > 0,
         "processes that join when it commits: --restarts in the place of --fault ...,join"},
        {job->straggler[0] != '\0' && strcmp(job->straggler, "none") != 0,
         "ranks that may change: leave out --straggler"},
    };
    return first_asked(limits, sizeof(limits) / sizeof(limits[0]));
}

static enum status check_commits(const struct job *job, char *ret_error, size_t error_size)
{
    if (!job_may_commit(job)) {
        return STATUS_OK;
    }
    if (!job_is_external(job)) {
        snprintf(ret_error, error_size,
                 "--on-loss commit is for a program of its own, which commits what it goes on from "
                 "(ringside run ... -- PROGRAM): use --on-loss redeal or shrink");
        return STATUS_INVALID;
    }
    const char *sentence = beyond_commits(job);
    if (sentence != NULL) {
        snprintf(ret_error, error_size, "--on-loss commit needs %s", sentence);
        return STATUS_INVALID;
    }
    if (job->min_workers > job->workers) {
        snprintf(ret_error, error_size,
                 "--min-workers %u is more than the %u worker processes that the job begins with",
                 job->min_workers, job->workers);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Servers that make no updates hold no parameters, which others than ps-sync read there. */
static enum status check_server_optimizer(const struct job *job, char *ret_error, size_t error_size)
{
    if (job->server_optimizer != SERVER_OPTIMIZER_NONE) {
        return STATUS_OK;
    }
    if (!job_is_external(job)) {
        snprintf(
            ret_error, error_size,
            "--server-optimizer none is for a program of its own, which makes the updates "
            "(ringside run ... -- PROGRAM): with models of ours leave it out, and servers make "
            "them, with the bits of mode ring");
        return STATUS_INVALID;
    }
    if (mode_updates_on_push(job->mode.kind)) {
        snprintf(
            ret_error, error_size,
            "--server-optimizer none is for mode ps-sync: in mode %s servers hold the "
            "parameters, and each gradient is an update of theirs; use --mode ps-sync or ring, "
            "or leave it out",
            mode_text(job->mode).text);
        return STATUS_INVALID;
    }
    if (job->backup > 0) {
        snprintf(ret_error, error_size,
                 "--server-optimizer none needs the gradients of all: --backup 0");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status job_check_external(const struct job *job, char *ret_error, size_t error_size)
{
    bool is_data_external =
        strncmp(job->data, JOB_EXTERNAL_PREFIX, strlen(JOB_EXTERNAL_PREFIX)) == 0;
    if (!job_is_external(job) && is_data_external) {
        snprintf(ret_error, error_size, "--data %s is for --model %sNAME alone", job->data,
                 JOB_EXTERNAL_PREFIX);
        return STATUS_INVALID;
    }
    const char *sentence = job_is_external(job) ? beyond_external(job) : NULL;
    if (sentence != NULL) {
        snprintf(ret_error, error_size, "--model %s is a program of its own, and needs %s",
                 job->model, sentence);
        return STATUS_INVALID;
    }
    enum status status = check_server_optimizer(job, ret_error, error_size);
    return status == STATUS_OK ? check_commits(job, ret_error, error_size) : status;
}
