/* Looks through the modes of a job. */
#include "common/job/job_modes.h"

#include "common/job/carriers.h"

#include <string.h>

#define WHY_BYTES 256

struct switch_rules job_switches(const struct job *job)
{
    char why[WHY_BYTES];
    struct switch_rules rules = {.count = 0};
    (void)switch_parse(job->switches, &rules, why, sizeof(why));
    return rules;
}

/* The modes in their order: that of --mode, then those of the rules. */
static enum mode_kind mode_at(const struct job *job, const struct switch_rules *rules,
                              uint32_t index)
{
    return index == 0 ? job->mode.kind : rules->rules[index - 1].mode.kind;
}

bool job_has_mode(const struct job *job, enum mode_kind kind)
{
    struct switch_rules rules = job_switches(job);
    for (uint32_t i = 0; i <= rules.count; i++) {
        if (mode_at(job, &rules, i) == kind) {
            return true;
        }
    }
    return false;
}

bool job_has_gpu_servers(const struct job *job)
{
    return job_has_servers(job) && strcmp(job->server_device, "host") != 0;
}

bool job_has_nccl(const struct job *job)
{
    return job->all_reduce == ALL_REDUCE_CHOICE_NCCL && job_has_mode(job, MODE_RING) &&
           job->workers > 1;
}

bool job_has_servers(const struct job *job)
{
    struct switch_rules rules = job_switches(job);
    for (uint32_t i = 0; i <= rules.count; i++) {
        if (mode_has_servers(mode_at(job, &rules, i))) {
            return true;
        }
    }
    return false;
}

bool job_servers_update(const struct job *job)
{
    return job_has_servers(job) && job->server_optimizer != SERVER_OPTIMIZER_NONE;
}

/* Nothing that members exchange goes through the coordinator's process. */
static bool needs_no_coordinator(const struct job *job)
{
    return !job_has_servers(job) || job->coordinator_role == COORDINATOR_APART;
}

bool job_may_begin_anew(const struct job *job)
{
    return !job_is_external(job) || job_may_commit(job);
}

bool job_outlasts_coordinator(const struct job *job)
{
    return job->outlast > 0 && (job_has_mode(job, MODE_RING) || job_has_servers(job)) &&
           (job_may_begin_anew(job) || needs_no_coordinator(job));
}

uint32_t job_outlast_ms(const struct job *job)
{
    return job_outlasts_coordinator(job) ? (uint32_t)(1000 * job->outlast) : 0;
}

bool job_trains_alone(const struct job *job)
{
    return job_outlasts_coordinator(job) && needs_no_coordinator(job);
}

bool job_is_unsynchronised_in(const struct job *job, enum mode_kind kind)
{
    return mode_updates_on_push(kind) || (job->backup > 0 && kind == MODE_PS_SYNC);
}

bool job_is_unsynchronised(const struct job *job)
{
    struct switch_rules rules = job_switches(job);
    for (uint32_t i = 0; i <= rules.count; i++) {
        if (job_is_unsynchronised_in(job, mode_at(job, &rules, i))) {
            return true;
        }
    }
    return false;
}
