/* Which worker process carries which ranks.
 *
 * A rank is a slice of every mini-batch, with a gradient, a place in the order of sums and
 * statistics of its own. A process carries a block of consecutive ranks, and computes one slice
 * after the other. Blocks are in the order of the processes and differ by at most one rank; the
 * first are the longer ones. So what a job computes follows from its ranks, and not from how many
 * processes carry them. Usually each carries one.
 *
 * A job may leave ranks out (--on-loss shrink, --without-ranks). Nobody computes their slices, and
 * the mean is over the ranks that take part. Exchanges do not know of it: a rank that is left out
 * lies in the block of the next rank that takes part, and its gradients are zeros. The ranks that
 * take part are dealt evenly. Pure. */
#ifndef COMMON_JOB_CARRIERS_H
#define COMMON_JOB_CARRIERS_H

#include "common/job/job.h"
#include "common/plan/rank_list.h"

#include <stdbool.h>
#include <stdint.h>

struct carriers {
    uint32_t ranks;     // of the job
    uint32_t processes; // 1 .. ranks that take part
    struct rank_list left_out;
};

/* Consecutive ranks. */
struct rank_block {
    uint32_t first, count;
};

struct carriers job_carriers(const struct job *job);

/* Whether the job may go on with fewer or more processes than it has: others carry the ranks of one
 * that is lost, and one that comes takes some. */
bool job_may_redeal(const struct job *job);

/* Whether its program keeps what those of its processes that are left go on from, with ranks and a
 * mean of their own: then the job has as many workers as there are processes. */
bool job_may_commit(const struct job *job);

/* Whether the job may go on when it loses a process, in either way. */
bool job_may_go_on(const struct job *job);

/* Whether a job that may go on needs each of its servers all the same: gradients are encoded for
 * the part that one server has, and others would have other bits. */
bool job_needs_servers(const struct job *job);

/* The ranks of a process, below carriers.processes. */
struct rank_block carriers_block(struct carriers carriers, uint32_t process);

/* Ranks that take part. */
uint32_t carriers_present(const struct carriers *carriers);

/* The most ranks that a process carries, and the fewest. */
uint32_t carriers_most(struct carriers carriers);
uint32_t carriers_least(struct carriers carriers);

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
