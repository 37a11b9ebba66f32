/* Rejects options of a job that contradict each other: modes, switches, orders, remedies ... */
#include "common/job/job_checks.h"

#include "common/job/all_reduce.h"
#include "common/job/carriers.h"
#include "common/job/faults.h"
#include "common/job/job_limits.h"
#include "common/job/job_modes.h"
#include "common/job/straggler.h"
#include "common/plan/order.h"

#include <stdio.h>
#include <string.h>

#define WHY_BYTES 256

/* The order, which was checked when it was set. */
static struct order order_of(const struct job *job)
{
    char why[WHY_BYTES];
    struct order order = {.kind = ORDER_FREE};
    (void)order_parse(job->order, &order, why, sizeof(why));
    return order;
}

/* Gradients can be stale in one of its phases. */
static bool has_staleness(const struct job *job)
{
    return job_has_mode(job, MODE_PS_ASYNC) || job_has_mode(job, MODE_PS_SSP);
}

static enum status check_switches(const struct job *job, char *ret_error, size_t error_size)
{
    struct switch_rules rules = job_switches(job);
    for (uint32_t i = 0; i < rules.count; i++) {
        const struct switch_rule *rule = &rules.rules[i];
        uint64_t limit = rule->is_epoch ? job->epochs : job->steps;
        const char *unit = rule->is_epoch ? "epoch" : "step";
        if (limit > 0 && rule->at >= limit) {
            snprintf(ret_error, error_size, "--switch %s:%llu=%s never comes: the job has %llu %ss",
                     unit, (unsigned long long)rule->at, mode_text(rule->mode).text,
                     (unsigned long long)limit, unit);
            return STATUS_INVALID;
        }
    }
    if (rules.count > 0 && job->mode.kind == MODE_LOCAL) {
        snprintf(ret_error, error_size,
                 "mode local has one worker, and nothing to switch to: begin with ring, ps-sync, "
                 "ps-ssp:S or ps-async");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status job_check_timeline(const struct job *job, uint64_t step_count, char *ret_error,
                               size_t error_size)
{
    const struct trace_window window = job_timeline(job);
    if (window.first < step_count || window.end == 0) {
        return STATUS_OK;
    }
    snprintf(ret_error, error_size,
             "--timeline-steps %llu..%llu never come: the job has %llu steps",
             (unsigned long long)window.first + 1, (unsigned long long)window.end,
             (unsigned long long)step_count);
    return STATUS_INVALID;
}

static enum status check_timeline(const struct job *job, char *ret_error, size_t error_size)
{
    return job->steps > 0 ? job_check_timeline(job, job->steps, ret_error, error_size) : STATUS_OK;
}

static enum status check_order(const struct job *job, char *ret_error, size_t error_size)
{
    bool is_drawn = order_of(job).kind != ORDER_FREE;
    if (is_drawn && !has_staleness(job)) {
        snprintf(ret_error, error_size,
                 "--order %s needs a mode in which gradients can be stale: ps-async or ps-ssp:S, "
                 "not %s",
                 job->order, mode_text(job->mode).text);
        return STATUS_INVALID;
    }
    if (job->gradients_per_update > job->workers) {
        snprintf(ret_error, error_size,
                 "--gradients-per-update %u is more than the %u workers: no update would have as "
                 "many",
                 job->gradients_per_update, job->workers);
        return STATUS_INVALID;
    }
    if (job->gradients_per_update > 1 && is_drawn) {
        snprintf(ret_error, error_size,
                 "--gradients-per-update %u and --order %s contradict each other: an order draws "
                 "the staleness of single gradients",
                 job->gradients_per_update, job->order);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_delay_model(const struct job *job, char *ret_error, size_t error_size)
{
    static const char needs[] = "--delay-model per-worker needs";
    const struct order order = order_of(job);
    if (job->delay_model != DELAY_MODEL_PER_WORKER) {
        return STATUS_OK;
    }
    if (job->mode.kind != MODE_PS_ASYNC || job_switches(job).count > 0) {
        snprintf(ret_error, error_size, "%s mode ps-async from the first step to the last", needs);
        return STATUS_INVALID;
    }
    if (order.kind == ORDER_FREE || order.kind == ORDER_ROUND_ROBIN) {
        snprintf(ret_error, error_size,
                 "%s an --order that draws delays: seeded:uniform:0..4, seeded:constant:S or "
                 "seeded:geometric:P, not %s",
                 needs, job->order);
        return STATUS_INVALID;
    }
    if (job->remedy != REMEDY_NONE || job->sync_every > 1) {
        snprintf(ret_error, error_size,
                 "%s gradients as they come: no --remedy, and no --sync-every", needs);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_remedy(const struct job *job, char *ret_error, size_t error_size)
{
    bool has_remedy = job->remedy != REMEDY_NONE;
    bool is_staleness_lr = job->remedy == REMEDY_STALENESS_LR;
    bool has_momentum = (optimizer_uses_of(job->optimizer) & OPTIMIZER_USES_MOMENTUM) != 0;
    const char *remedy = remedy_choices[job->remedy].name;
    if ((has_remedy || job->gradients_per_update > 1) && !has_staleness(job)) {
        snprintf(ret_error, error_size,
                 "%s%s is for stale gradients, and mode %s has none: use ps-async or ps-ssp:S",
                 has_remedy ? "--remedy " : "--gradients-per-update", has_remedy ? remedy : "",
                 mode_text(job->mode).text);
        return STATUS_INVALID;
    }
    // An optimizer that a program has yet to say is checked then: see job_take_optimizer.
    if (job->remedy == REMEDY_MOMENTUM && !has_momentum && job->optimizer != OPTIMIZER_AUTO) {
        snprintf(ret_error, error_size,
                 "--remedy momentum lowers a momentum, and optimizer %s has none: use momentum or "
                 "nesterov",
                 names_optimizers[job->optimizer].name);
        return STATUS_INVALID;
    }
    if (has_remedy && !is_staleness_lr && job->sync_every > 1) {
        snprintf(ret_error, error_size,
                 "--remedy %s is for gradients, and --sync-every %u exchanges changes of "
                 "parameters: of the remedies staleness-lr goes with it",
                 remedy, job->sync_every);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_backup(const struct job *job, char *ret_error, size_t error_size)
{
    if (job->backup > 0 && !job_has_mode(job, MODE_PS_SYNC)) {
        snprintf(ret_error, error_size,
                 "--backup %u is for mode ps-sync, whose updates wait for workers, not for %s",
                 job->backup, mode_text(job->mode).text);
        return STATUS_INVALID;
    }
    if (job->backup >= job->workers) {
        snprintf(ret_error, error_size,
                 "--backup %u of %u workers leaves no gradient for an update: at most %u",
                 job->backup, job->workers, job->workers - 1);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_sync_bn(const struct job *job, char *ret_error, size_t error_size)
{
    if (job->sync_bn && job_is_unsynchronised(job)) {
        snprintf(ret_error, error_size,
                 "--sync-bn needs workers that make their steps together: ring, or ps-sync without "
                 "--backup");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_straggler(const struct job *job, char *ret_error, size_t error_size)
{
    struct straggler straggler;
    char why[WHY_BYTES];
    if (straggler_parse(job->straggler, &straggler, why, sizeof(why)) == STATUS_OK &&
        straggler_rank_max(&straggler) >= (int64_t)job->workers && job->mode.kind != MODE_LOCAL) {
        snprintf(ret_error, error_size,
                 "--straggler %.60s names rank %lld, and there are %u workers", job->straggler,
                 (long long)straggler_rank_max(&straggler), job->workers);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_evaluation(const struct job *job, char *ret_error, size_t error_size)
{
    bool is_every_epoch = job->eval == EVALUATION_EPOCH;
    if ((job->eval_every > 0 || job->target_accuracy > 0) && !is_every_epoch) {
        snprintf(ret_error, error_size, "%s needs evaluations: --eval epoch, not --eval %s",
                 job->eval_every > 0 ? "--eval-every" : "--target-accuracy",
                 evaluation_choices[job->eval].name);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_buckets(const struct job *job, char *ret_error, size_t error_size)
{
    if (job_tunes_buckets(job) && order_of(job).kind != ORDER_FREE) {
        snprintf(ret_error, error_size,
                 "--bucket-mb auto chooses by the time that steps take, and --order %s is to give "
                 "the same bits at any speed: give --bucket-mb a number",
                 job->order);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_shards(const struct job *job, char *ret_error, size_t error_size)
{
    if (job->servers > 0 && job->server_threads > JOB_SERVERS_MAX / job->servers) {
        snprintf(ret_error, error_size,
                 "--servers %u with --server-threads %u makes more than %d shards", job->servers,
                 job->server_threads, JOB_SERVERS_MAX);
        return STATUS_INVALID;
    }
    if (job_ps_count(job) > JOB_SERVERS_MAX) {
        snprintf(ret_error, error_size,
                 "--servers %u with --coordinator-role alone makes more than %d processes of ps",
                 job->servers, JOB_SERVERS_MAX);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Others that a process connects to, at most. */
static uint64_t peers_max(const struct job *job)
{
    uint64_t shards = job_shard_count(job), workers = 0;
    if (job_has_mode(job, MODE_RING)) {
        bool may_choose =
            job->all_reduce == ALL_REDUCE_CHOICE_AUTO || job->all_reduce == ALL_REDUCE_CHOICE_RING;
        workers = may_choose && job->workers > ALL_REDUCE_DIRECT_MAX ? ALL_REDUCE_DIRECT_MAX
                                                                     : job->workers;
    }
    return shards + workers;
}

static enum status check_connections(const struct job *job, char *ret_error, size_t error_size)
{
    uint64_t peers = peers_max(job);
    if (job->connections > 1 && peers * job->connections > JOB_CONNECTIONS_MAX) {
        snprintf(
            ret_error, error_size,
            "--connections %u to each of %llu shards and workers is more than the %d that a "
            "process can have: at most %llu",
            job->connections, (unsigned long long)peers, JOB_CONNECTIONS_MAX,
            (unsigned long long)(peers > JOB_CONNECTIONS_MAX ? 1 : JOB_CONNECTIONS_MAX / peers));
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* What servers on GPUs do not do; NULL: the job asks for none of it. */
static const char *beyond_gpu_servers(const struct job *job)
{
    const struct limit limits[] = {
        {strncmp(job->device, "cuda", 4) != 0, "needs workers on GPUs: --device cuda"},
        {job->workers > JOB_GPU_SERVER_WORKERS_MAX, "is for 16 workers at most"},
        {job->transport == TRANSPORT_TCP || job->transport == TRANSPORT_IPC,
         "needs workers that share memory with it: --transport auto or shm"},
        {job->connections > 1, "needs one connection to each server: --connections 1"},
        {job->compress.kind != CODEC_NONE,
         "sends nothing that could be compressed: --compress none"},
        {job_switches(job).count > 0 || job_tunes_buckets(job),
         "is for jobs of one phase: no --switch, and a number for --bucket-mb"},
        {job->sync_every > 1, "takes gradients of every step: --sync-every 1"},
        {job->delay_model == DELAY_MODEL_PER_WORKER,
         "keeps one view of the parameters: --delay-model server"},
        {job->remedy != REMEDY_NONE && job->remedy != REMEDY_MOMENTUM,
         "knows of the remedies none and momentum"},
    };
    return first_asked(limits, sizeof(limits) / sizeof(limits[0]));
}

static enum status check_server_device(const struct job *job, char *ret_error, size_t error_size)
{
    const char *sentence = job_has_gpu_servers(job) ? beyond_gpu_servers(job) : NULL;
    if (sentence != NULL) {
        snprintf(ret_error, error_size, "--server-device %s %s", job->server_device, sentence);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* What NCCL does not do; NULL: the job asks for none of it. */
static const char *beyond_nccl(const struct job *job)
{
    const struct limit limits[] = {
        {strcmp(job->device, "auto") != 0 && strncmp(job->device, "cuda", 4) != 0,
         "needs workers on GPUs: --device cuda"},
        {job->compress.kind != CODEC_NONE,
         "takes gradients where GPUs have them, and sends nothing that could be compressed: "
         "--compress none"},
        {job->sync_every > 1, "takes gradients of every step: --sync-every 1"},
        {job->transport == TRANSPORT_IPC || job->transport == TRANSPORT_SHM,
         "finds its own way between GPUs: --transport auto or tcp, which the rest of the job "
         "takes"},
        {job->connections > 1 && !job_has_servers(job),
         "has connections of its own: --connections 1"},
    };
    return first_asked(limits, sizeof(limits) / sizeof(limits[0]));
}

static enum status check_nccl(const struct job *job, char *ret_error, size_t error_size)
{
    const char *sentence = job_has_nccl(job) ? beyond_nccl(job) : NULL;
    if (sentence != NULL) {
        snprintf(ret_error, error_size, "--all-reduce nccl %s", sentence);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* What a checkpoint does not hold; the first that the job has, NULL: nothing. */
static const char *beyond_checkpoints(const struct job *job)
{
    const struct limit limits[] = {
        {job->delay_model == DELAY_MODEL_PER_WORKER,
         "a view of the parameters for each worker: --delay-model server"},
        {job->remedy == REMEDY_MOMENTUM && strcmp(job->order, "free") != 0,
         "the staleness that --remedy momentum has measured: --order free, or another remedy"},
        {job->sync_every > 1 && strcmp(job->order, "free") != 0,
         "rounds of local steps in a seeded order: --order free, or --sync-every 1"},
    };
    return first_asked(limits, sizeof(limits) / sizeof(limits[0]));
}

static enum status check_checkpoints(const struct job *job, char *ret_error, size_t error_size)
{
    bool are_on = job->checkpoint_every.kind != CHECKPOINT_NEVER;
    const char *sentence = are_on ? beyond_checkpoints(job) : NULL;
    if (sentence != NULL) {
        snprintf(ret_error, error_size, "--checkpoint-every: a checkpoint does not hold %s",
                 sentence);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* What needs a process for each rank; the first that the job asks for, NULL: nothing. */
static const char *beyond_carriers(const struct job *job)
{
    const struct limit limits[] = {
        {job->delay_model == DELAY_MODEL_PER_WORKER,
         "one view of the parameters: --delay-model server"},
        {job->backup > 0, "workers that are all waited for: --backup 0"},
        {job->sync_every > 1, "workers whose parameters are the same at every step: --sync-every "
                              "1"},
        {job->sync_bn, "batch normalisation over each worker's own batch: --no-sync-bn"},
        {job->compress.kind != CODEC_NONE && job_has_mode(job, MODE_RING),
         "sums that travel as they are in mode ring: --compress none"},
        {job_has_nccl(job), "sums in the order of ranks: --all-reduce auto, not nccl"},
    };
    return first_asked(limits, sizeof(limits) / sizeof(limits[0]));
}

/* What a job needs that goes on without a process: others carry what it had, and there is a copy.
 */
static const char *beyond_redeal(const struct job *job)
{
    const char *sentence = beyond_carriers(job);
    return sentence != NULL ? sentence : beyond_checkpoints(job);
}

/* What a job needs that leaves ranks out. */
static const char *beyond_left_out(const struct job *job)
{
    const struct limit limits[] = {
        {has_staleness(job), "a mean over all ranks: modes ring and ps-sync"},
        {job->compress.kind != CODEC_NONE,
         "gradients that have nothing left over from steps before: --compress none"},
        {job_has_gpu_servers(job), "servers that keep parameters on the host: --server-device "
                                   "host"},
    };
    const char *sentence = first_asked(limits, sizeof(limits) / sizeof(limits[0]));
    return sentence != NULL ? sentence : beyond_carriers(job);
}

static enum status check_left_out(const struct job *job, char *ret_error, size_t error_size)
{
    const struct rank_list *list = &job->left_out;
    if (list->count == 0 || job->mode.kind == MODE_LOCAL) {
        return STATUS_OK;
    }
    if (list->count >= job->workers || list->ranks[list->count - 1] >= job->workers) {
        snprintf(ret_error, error_size,
                 "--without-ranks: the job has %u workers, so its ranks are 0 to %u, and one of "
                 "them has to take part",
                 job->workers, job->workers - 1);
        return STATUS_INVALID;
    }
    const char *sentence = beyond_left_out(job);
    if (sentence != NULL) {
        snprintf(ret_error, error_size, "--without-ranks needs %s", sentence);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

bool job_can_redeal(const struct job *job)
{
    return job->mode.kind != MODE_LOCAL && job->workers > 1 && beyond_redeal(job) == NULL;
}

bool job_is_bound(const struct job *job, char ret_why[JOB_BOUND_BYTES])
{
    const char *sentence = beyond_redeal(job);
    bool has_others = job->mode.kind != MODE_LOCAL && job->workers > 1 && !job_is_external(job);
    snprintf(ret_why, JOB_BOUND_BYTES, "%s %s",
             beyond_carriers(job) != NULL ? "going on needs" : "no copy holds",
             sentence != NULL ? sentence : "");
    return has_others && sentence != NULL;
}

static enum status check_on_loss(const struct job *job, char *ret_error, size_t error_size)
{
    const struct carriers carriers = job_carriers(job);
    bool shrinks = job->on_loss == ON_LOSS_SHRINK;
    if (!job_may_redeal(job)) {
        return STATUS_OK;
    }
    const char *sentence = shrinks ? beyond_left_out(job) : beyond_carriers(job);
    if (sentence != NULL && shrinks) {
        snprintf(ret_error, error_size, "--on-loss shrink needs %s", sentence);
        return STATUS_INVALID;
    }
    if (sentence != NULL) {
        snprintf(ret_error, error_size,
                 "--on-loss redeal keeps the bits of an undisturbed job only with %s", sentence);
        return STATUS_INVALID;
    }
    sentence = beyond_checkpoints(job);
    if (sentence != NULL) {
        snprintf(ret_error, error_size,
                 "--on-loss %s goes on from a copy of the job, and that does not hold %s",
                 shrinks ? "shrink" : "redeal", sentence);
        return STATUS_INVALID;
    }
    if (job->min_workers > carriers.processes) {
        snprintf(ret_error, error_size,
                 "--min-workers %u is more than the %u worker processes that the job begins with",
                 job->min_workers, carriers.processes);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_carriers(const struct job *job, char *ret_error, size_t error_size)
{
    const struct carriers carriers = job_carriers(job);
    if (carriers.processes > carriers_present(&carriers)) {
        snprintf(ret_error, error_size,
                 "--processes %u is more than the %u workers%s: each process carries one at least",
                 carriers.processes, carriers_present(&carriers),
                 carriers.left_out.count > 0 ? " that take part" : "");
        return STATUS_INVALID;
    }
    const char *sentence = carriers.processes < carriers.ranks ? beyond_carriers(job) : NULL;
    if (sentence != NULL) {
        snprintf(ret_error, error_size,
                 "--processes %u for %u workers keeps the bits of a process for each of them only "
                 "with %s",
                 carriers.processes, carriers.ranks, sentence);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status job_check(const struct job *job, char *ret_error, size_t error_size)
{
    enum status (*const checks[])(const struct job *, char *, size_t) = {
        job_check_external, check_switches,      check_timeline, check_order,
        check_delay_model,  check_remedy,        check_backup,   check_sync_bn,
        check_straggler,    check_evaluation,    check_shards,   check_buckets,
        check_connections,  check_server_device, check_nccl,     check_checkpoints,
        check_left_out,     check_carriers,      check_on_loss,  faults_check,
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof(checks) / sizeof(checks[0]); i++) {
        status = checks[i](job, ret_error, error_size);
    }
    return status;
}
