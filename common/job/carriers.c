/* Deals ranks to processes. */
#include "common/job/carriers.h"

#include "common/job/job_modes.h"

#include <assert.h>

struct carriers job_carriers(const struct job *job)
{
    return (struct carriers){
        .ranks = job->workers,
        .processes = job->processes > 0 ? job->processes : job->workers,
    };
}

bool job_may_redeal(const struct job *job)
{
    return job->on_loss == ON_LOSS_REDEAL && job->mode.kind != MODE_LOCAL && job->workers > 1;
}

struct rank_block carriers_block(struct carriers carriers, uint32_t process)
{
    assert(process < carriers.processes);
    uint32_t base = carriers.ranks / carriers.processes;
    uint32_t rest = carriers.ranks % carriers.processes;
    return (struct rank_block){
        .first = process * base + (process < rest ? process : rest),
        .count = base + (process < rest ? 1 : 0),
    };
}

uint32_t carriers_gradient_count(const struct job *job, uint32_t ranks)
{
    bool take_turns = !job_has_mode(job, MODE_LOCAL) && !job_has_mode(job, MODE_RING) &&
                      !job_has_mode(job, MODE_PS_SYNC);
    return take_turns ? 1 : ranks;
}

uint32_t carriers_process(struct carriers carriers, uint32_t rank)
{
    assert(rank < carriers.ranks && carriers.processes > 0);
    uint32_t base = carriers.ranks / carriers.processes;
    uint32_t rest = carriers.ranks % carriers.processes;
    uint32_t in_longer = rest * (base + 1); // ranks of the longer blocks
    return rank < in_longer ? rank / (base + 1) : rest + (rank - in_longer) / base;
}
