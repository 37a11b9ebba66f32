/* Modes, switches, orders, remedies, backup workers: checks of one against the other. */
#include "common/job/job_checks.h"

#include "common/job/all_reduce.h"
#include "common/job/consistency.h"
#include "common/job/order.h"
#include "common/job/phases.h"
#include "common/job/straggler.h"

#include <stdio.h>
#include <string.h>

#define WHY_BYTES 256

/* ==========================================================================================
 * What a job has
 * ========================================================================================== */

bool mode_updates_on_push(const char *mode)
{
    struct consistency consistency;
    return consistency_find(mode, &consistency) == STATUS_OK &&
           consistency.update == UPDATE_ON_PUSH;
}

bool job_is_free_in(const struct job *job, const char *mode)
{
    return mode_updates_on_push(mode) || (job->backup > 0 && strcmp(mode, "ps-sync") == 0);
}

static bool has_server(const char *mode)
{
    return strcmp(mode, "ring") != 0 && strcmp(mode, "local") != 0;
}

/* The modes of a job, in their order: that of mode 0 is --mode. NULL behind the last. */
static const char *mode_at(const struct job *job, const struct switch_rules *rules, uint32_t index)
{
    if (index == 0) {
        return job->mode;
    }
    return index <= rules->count ? rules->rules[index - 1].mode : NULL;
}

/* The switches were checked when they were set. */
static struct switch_rules rules_of(const struct job *job)
{
    char why[WHY_BYTES];
    struct switch_rules rules = {.count = 0};
    return switch_parse(job->switches, &rules, why, sizeof(why)) == STATUS_OK
               ? rules
               : (struct switch_rules){.count = 0};
}

bool job_is_free(const struct job *job)
{
    struct switch_rules rules = rules_of(job);
    bool is_free = false;
    for (uint32_t i = 0; mode_at(job, &rules, i) != NULL; i++) {
        is_free = is_free || job_is_free_in(job, mode_at(job, &rules, i));
    }
    return is_free;
}

bool job_has_mode(const struct job *job, const char *mode)
{
    struct switch_rules rules = rules_of(job);
    bool has_mode = false;
    for (uint32_t i = 0; mode_at(job, &rules, i) != NULL; i++) {
        const char *at = mode_at(job, &rules, i);
        size_t size = strcspn(at, ":");
        has_mode = has_mode || (strlen(mode) == size && strncmp(at, mode, size) == 0);
    }
    return has_mode;
}

bool job_has_servers(const struct job *job)
{
    struct switch_rules rules = rules_of(job);
    bool has_servers = false;
    for (uint32_t i = 0; mode_at(job, &rules, i) != NULL; i++) {
        has_servers = has_servers || has_server(mode_at(job, &rules, i));
    }
    return has_servers;
}

/* Gradients can be stale in one of its phases. */
static bool has_staleness(const struct job *job)
{
    return job_has_mode(job, "ps-async") || job_has_mode(job, "ps-ssp");
}

/* ==========================================================================================
 * Checks
 * ========================================================================================== */

static enum status check_switches(const struct job *job, char *ret_error, size_t error_size)
{
    struct switch_rules rules = rules_of(job);
    for (uint32_t i = 0; i < rules.count; i++) {
        const struct switch_rule *rule = &rules.rules[i];
        struct consistency consistency;
        bool is_mode = strcmp(rule->mode, "ring") == 0 ||
                       consistency_find(rule->mode, &consistency) == STATUS_OK;
        uint64_t limit = rule->is_epoch ? job->epochs : job->steps;
        const char *unit = rule->is_epoch ? "epoch" : "step";
        if (!is_mode) {
            snprintf(ret_error, error_size,
                     "--switch %s:%llu=%s: what it switches to is ring, ps-sync, ps-ssp:S or "
                     "ps-async",
                     unit, (unsigned long long)rule->at, rule->mode);
            return STATUS_INVALID;
        }
        if (limit > 0 && rule->at >= limit) {
            snprintf(ret_error, error_size, "--switch %s:%llu=%s never comes: the job has %llu %ss",
                     unit, (unsigned long long)rule->at, rule->mode, (unsigned long long)limit,
                     unit);
            return STATUS_INVALID;
        }
    }
    if (rules.count > 0 && strcmp(job->mode, "local") == 0) {
        snprintf(ret_error, error_size,
                 "mode local has one worker, and nothing to switch to: begin with ring, ps-sync, "
                 "ps-ssp:S or ps-async");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_order(const struct job *job, char *ret_error, size_t error_size)
{
    bool is_free_order = strcmp(job->order, "free") == 0;
    if (!is_free_order && !has_staleness(job)) {
        snprintf(ret_error, error_size,
                 "--order %s needs a mode in which gradients can be stale: ps-async or ps-ssp:S, "
                 "not %s",
                 job->order, job->mode);
        return STATUS_INVALID;
    }
    if (job->gradients_per_update > job->workers) {
        snprintf(ret_error, error_size,
                 "--gradients-per-update %u is more than the %u workers: no update would have as "
                 "many",
                 job->gradients_per_update, job->workers);
        return STATUS_INVALID;
    }
    if (job->gradients_per_update > 1 && !is_free_order) {
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
    if (strcmp(job->delay_model, "per-worker") != 0) {
        return STATUS_OK;
    }
    if (strcmp(job->mode, "ps-async") != 0 || strcmp(job->switches, "none") != 0) {
        snprintf(ret_error, error_size, "%s mode ps-async from the first step to the last", needs);
        return STATUS_INVALID;
    }
    if (strcmp(job->order, "free") == 0 || strcmp(job->order, "seeded:round-robin") == 0) {
        snprintf(ret_error, error_size,
                 "%s an --order that draws delays: seeded:uniform:0..4, seeded:constant:S or "
                 "seeded:geometric:P, not %s",
                 needs, job->order);
        return STATUS_INVALID;
    }
    if (strcmp(job->remedy, "none") != 0 || job->sync_every > 1) {
        snprintf(ret_error, error_size,
                 "%s gradients as they come: no --remedy, and no --sync-every", needs);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_remedy(const struct job *job, char *ret_error, size_t error_size)
{
    bool has_remedy = strcmp(job->remedy, "none") != 0;
    bool is_staleness_lr = strcmp(job->remedy, "staleness-lr") == 0;
    bool has_momentum =
        strcmp(job->optimizer, "momentum") == 0 || strcmp(job->optimizer, "nesterov") == 0;
    if ((has_remedy || job->gradients_per_update > 1) && !has_staleness(job)) {
        snprintf(ret_error, error_size,
                 "%s%s is for stale gradients, and mode %s has none: use ps-async or ps-ssp:S",
                 has_remedy ? "--remedy " : "--gradients-per-update", has_remedy ? job->remedy : "",
                 job->mode);
        return STATUS_INVALID;
    }
    if (strcmp(job->remedy, "momentum") == 0 && !has_momentum) {
        snprintf(ret_error, error_size,
                 "--remedy momentum lowers a momentum, and optimizer %s has none: use momentum or "
                 "nesterov",
                 job->optimizer);
        return STATUS_INVALID;
    }
    if (has_remedy && !is_staleness_lr && job->sync_every > 1) {
        snprintf(ret_error, error_size,
                 "--remedy %s is for gradients, and --sync-every %u exchanges changes of "
                 "parameters: of the remedies staleness-lr goes with it",
                 job->remedy, job->sync_every);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_backup(const struct job *job, char *ret_error, size_t error_size)
{
    if (job->backup > 0 && !job_has_mode(job, "ps-sync")) {
        snprintf(ret_error, error_size,
                 "--backup %u is for mode ps-sync, whose updates wait for workers, not for %s",
                 job->backup, job->mode);
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
    if (job->sync_bn && job_is_free(job)) {
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
        straggler_rank_max(&straggler) >= (int64_t)job->workers &&
        strcmp(job->mode, "local") != 0) {
        snprintf(ret_error, error_size,
                 "--straggler %.60s names rank %lld, and there are %u workers", job->straggler,
                 (long long)straggler_rank_max(&straggler), job->workers);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_evaluation(const struct job *job, char *ret_error, size_t error_size)
{
    bool is_every_epoch = strcmp(job->eval, "epoch") == 0;
    if ((job->eval_every > 0 || job->target_accuracy > 0) && !is_every_epoch) {
        snprintf(ret_error, error_size, "%s needs evaluations: --eval epoch, not --eval %s",
                 job->eval_every > 0 ? "--eval-every" : "--target-accuracy", job->eval);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_buckets(const struct job *job, char *ret_error, size_t error_size)
{
    if (job_tunes_buckets(job) && strcmp(job->order, "free") != 0) {
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
    if (job_has_mode(job, "ring")) {
        bool may_choose = strcmp(job->all_reduce, "auto") == 0 ||
                          strcmp(job->all_reduce, all_reduce_name(ALL_REDUCE_RING)) == 0;
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
