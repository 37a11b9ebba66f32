/* Which worker process carries which ranks.
 *
 * A rank is a slice of every mini-batch, with a gradient, a place in the order of sums and
 * statistics of its own. A process carries a block of consecutive ranks, and computes one slice
 * after the other. Blocks are in the order of the processes and differ by at most one rank; the
 * first are the longer ones. So what a job computes follows from its ranks, and not from how many
 * processes carry them. Usually each carries one. Pure. */
#ifndef COMMON_JOB_CARRIERS_H
#define COMMON_JOB_CARRIERS_H

#include "common/job/job.h"

#include <stdbool.h>
#include <stdint.h>

struct carriers {
    uint32_t ranks;     // of the job
    uint32_t processes; // 1 .. ranks
};

/* Consecutive ranks. */
struct rank_block {
    uint32_t first, count;
};

struct carriers job_carriers(const struct job *job);

/* Whether the job may go on with fewer or more processes than it has: others carry the ranks of one
 * that is lost, and one that comes takes some. */
bool job_may_redeal(const struct job *job);

/* The ranks of a process, below carriers.processes. */
struct rank_block carriers_block(struct carriers carriers, uint32_t process);

/* The process that carries a rank, below carriers.ranks. */
uint32_t carriers_process(struct carriers carriers, uint32_t rank);

/* Vectors of gradients that a process with so many ranks needs: one for each of them; or a single
 * one, where its ranks take turns from the first step to the last. */
uint32_t carriers_gradient_count(const struct job *job, uint32_t ranks);

static inline bool rank_block_has(struct rank_block block, uint32_t rank)
{
    return rank - block.first < block.count; // below the first it wraps around
}

#endif
