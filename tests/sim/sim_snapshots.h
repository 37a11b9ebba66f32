/* A simulated worker's part in checkpoints, as worker/train/trainer_checkpoint.h has the trainer's:
 * when it takes a snapshot, and how a job that goes on begins. It has
 * parameters, and the states of its optimizer. */
#ifndef TESTS_SIM_SIM_SNAPSHOTS_H
#define TESTS_SIM_SIM_SNAPSHOTS_H

#include "common/channel/snapshot.h"
#include "common/job/carriers.h"
#include "common/job/checkpoints.h"
#include "common/job/job.h"
#include "common/job/phases.h"
#include "common/optimizer/optimizer.h"
#include "tests/sim/sim_worker.h"
#include "worker/link/link.h"

struct sim_snapshots {
    // For it.
    struct link *link;
    const struct job *job;
    const struct phase *phase;
    const struct phases *phases;
    float *params; // (value_count)
    struct optimizer *optimizer;
    uint64_t value_count, samples;
    struct rank_block ranks;
    bool makes_updates, is_race;
    enum status (*settle)(void *context); // brings what was exchanged into params
    void *context;

    // Its own.
    struct checkpoints plan;
    struct snapshot snapshot;
    uint64_t answered, offered; // steps
    uint64_t images[SIM_RANKS_MAX];
    double loss_sums[SIM_RANKS_MAX];
};

/* Training begins, or goes on. */
enum status sim_snapshots_begin(struct sim_snapshots *of);

/* After so many steps of the job; after the last one. */
enum status sim_snapshots_after_step(struct sim_snapshots *of, uint64_t step);
enum status sim_snapshots_end(struct sim_snapshots *of);

void sim_snapshots_finish(struct sim_snapshots *of);

#endif
