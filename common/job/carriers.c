/* Deals ranks to processes. */
#include "common/job/carriers.h"

#include "common/job/job_modes.h"

#include <assert.h>

struct carriers job_carriers(const struct job *job)
{
    uint32_t present = job->workers - job->left_out.count;
    return (struct carriers){
        .ranks = job->workers,
        .processes = job->processes > 0 ? job->processes : present,
        .left_out = job->left_out,
    };
}

uint32_t carriers_present(const struct carriers *carriers)
{
    return carriers->ranks - carriers->left_out.count;
}

bool job_may_redeal(const struct job *job)
{
    bool goes_on = job->on_loss == ON_LOSS_REDEAL || job->on_loss == ON_LOSS_SHRINK;
    return goes_on && job->mode.kind != MODE_LOCAL && job->workers > 1;
}

bool job_may_commit(const struct job *job)
{
    return job->on_loss == ON_LOSS_COMMIT && job->mode.kind != MODE_LOCAL;
}

bool job_may_go_on(const struct job *job)
{
    return job_may_redeal(job) || job_may_commit(job);
}

bool job_needs_servers(const struct job *job)
{
    return job_may_go_on(job) && job->servers > 0 && job->compress.kind != CODEC_NONE;
}

/* The rank before which there are so many that take part, itself one of them. */
static uint32_t nth_present(const struct carriers *carriers, uint32_t n)
{
    uint32_t rank = n;
    for (uint32_t i = 0; i < carriers->left_out.count && carriers->left_out.ranks[i] <= rank; i++) {
        rank++;
    }
    return rank;
}

/* How many ranks that take part come before those of a process. */
static uint32_t dealt_before(const struct carriers *carriers, uint32_t process)
{
    uint32_t base = carriers_present(carriers) / carriers->processes;
    uint32_t rest = carriers_present(carriers) % carriers->processes;
    return process * base + (process < rest ? process : rest);
}

/* Where the block of a process ends: ranks that are left out come with the next one that is not. */
static uint32_t block_end(const struct carriers *carriers, uint32_t process)
{
    return process + 1 == carriers->processes
               ? carriers->ranks
               : nth_present(carriers, dealt_before(carriers, process + 1) - 1) + 1;
}

struct rank_block carriers_block(struct carriers carriers, uint32_t process)
{
    assert(process < carriers.processes && carriers.processes <= carriers_present(&carriers));
    uint32_t first = process == 0 ? 0 : block_end(&carriers, process - 1);
    return (struct rank_block){first, block_end(&carriers, process) - first};
}

uint32_t carriers_most(struct carriers carriers)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < carriers.processes; i++) {
        uint32_t count = carriers_block(carriers, i).count;
        most = count > most ? count : most;
    }
    return most;
}

uint32_t carriers_least(struct carriers carriers)
{
    uint32_t least = carriers.ranks;
    for (uint32_t i = 0; i < carriers.processes; i++) {
        uint32_t count = carriers_block(carriers, i).count;
        least = count < least ? count : least;
    }
    return least;
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
    uint32_t present = carriers_present(&carriers);
    uint32_t base = present / carriers.processes, rest = present % carriers.processes;
    uint32_t in_longer = rest * (base + 1); // ranks of the longer blocks
    uint32_t at = rank - rank_list_below(&carriers.left_out, rank);
    at = at < present ? at : present - 1; // behind the last one that takes part
    return at < in_longer ? at / (base + 1) : rest + (at - in_longer) / base;
}
