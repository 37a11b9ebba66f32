/* A worker without a model: it takes part in a job as the trainer does, with gradients that any
 * wrong parameter changes.
 *
 * Gradients, and what a job must end with, are those of sim_gradients.h. Where workers make the
 * updates, a job with momentum has a state in each of them.
 *
 * A worker may carry several ranks, each with a gradient of its own; where workers are
 * unsynchronised its ranks take turns. A job that goes on, without a lost worker (--on-loss redeal)
 * or resumed, goes on from its newest checkpoint (sim_snapshots.h). */
#ifndef TESTS_SIM_SIM_WORKER_H
#define TESTS_SIM_SIM_WORKER_H

#include "common/base/status.h"

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
    bool has_state;               // its optimizer: of jobs with momentum whose workers update
    float state[SIM_VALUES_MAX];  // in the end
};

/* A process's first function; data is a struct sim_worker. */
int sim_worker_main(void *data);

#endif
