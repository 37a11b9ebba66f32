/* A worker without a model: it takes part in a job as the trainer does, with gradients that any
 * wrong parameter changes.
 *
 * Gradients are small whole numbers over 64, and the learning rate is a power of two, so sums of
 * them are exact in whatever order they are taken: what a job must end with can be worked out by
 * plain loops (sim_expected). In synchronous modes, and with a seeded order, a gradient is drawn
 * from the bits of the parameter that it is for, the rank and the step. So a step that is computed
 * on other parameters than those that it is to have, or a gradient that is taken twice or not at
 * all, ends in other parameters. In a race, how many steps each worker makes is left to chance, and
 * only their number is known: all gradients are the same then, and what counts is how many.
 *
 * A worker may carry several ranks, each with a gradient of its own; where workers are
 * unsynchronised its ranks take turns. A job that goes on, without a lost worker (--on-loss redeal)
 * or resumed, goes on from its newest checkpoint (sim_snapshots.h). */
#ifndef TESTS_SIM_SIM_WORKER_H
#define TESTS_SIM_SIM_WORKER_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_VALUES_MAX 256
#define SIM_RANKS_MAX  16

struct sim_worker {
    // For the worker.
    char coordinator[256]; // endpoint
    uint32_t number;       // by which it joins
    uint32_t launch;       // which of the cluster's starts it is
    uint32_t value_count, bucket_count;
    uint64_t compute_ns; // of a step, at most
    uint32_t sum_every;  // steps after which workers add numbers up; 0: never. Of modes in step
    atomic_int is_interrupted;
    const struct sim_worker *all; // (all_count) of the job, this one too
    uint32_t all_count;

    // From it.
    enum status status;
    bool has_begun; // to train
    bool is_over;

    uint32_t outlast_ms;          // of its job
    uint32_t generation;          // of the job's processes, that welcomed it last
    uint64_t step;                // of the job, that it has finished in that generation
    uint64_t ahead_max;           // most steps that it has begun behind the slowest one's finished
    float params[SIM_VALUES_MAX]; // in the end
};

/* A process's first function; data is a struct sim_worker. */
int sim_worker_main(void *data);

/* What the parameters of a job must be after so many steps, by plain loops; (value_count) of them.
 * In a race: after all gradients of all workers, each applied once. */
void sim_expected(const struct job *job, uint32_t value_count, uint64_t steps, float *ret_params);

#endif
