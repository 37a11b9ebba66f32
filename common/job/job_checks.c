/* Rejects options of a job that contradict each other: modes, switches, orders, remedies ... */
#include "common/job/job_checks.h"

#include "common/job/all_reduce.h"
#include "common/job/job_modes.h"
#include "common/job/order.h"
#include "common/job/straggler.h"

#include <stdio.h>

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
    bool has_momentum =
        job->optimizer == OPTIMIZER_MOMENTUM || job->optimizer == OPTIMIZER_NESTEROV;
    const char *remedy = remedy_choices[job->remedy].name;
    if ((has_remedy || job->gradients_per_update > 1) && !has_staleness(job)) {
        snprintf(ret_error, error_size,
                 "%s%s is for stale gradients, and mode %s has none: use ps-async or ps-ssp:S",
                 has_remedy ? "--remedy " : "--gradients-per-update", has_remedy ? remedy : "",
                 mode_text(job->mode).text);
        return STATUS_INVALID;
    }
    if (job->remedy == REMEDY_MOMENTUM && !has_momentum) {
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

enum status job_check(const struct job *job, char *ret_error, size_t error_size)
{
    enum status (*const checks[])(const struct job *, char *, size_t) = {
        check_switches, check_order,   check_delay_model, check_remedy,
        check_backup,   check_sync_bn, check_straggler,   check_evaluation,
        check_shards,   check_buckets, check_connections,
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < sizeof(checks) / sizeof(checks[0]); i++) {
        status = checks[i](job, ret_error, error_size);
    }
    return status;
}
