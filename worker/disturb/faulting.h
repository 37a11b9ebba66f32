/* Faults that strike this worker before its steps: those of common/job/faults.h at its ranks. */
#ifndef WORKER_DISTURB_FAULTING_H
#define WORKER_DISTURB_FAULTING_H

#include "common/base/status.h"
#include "common/job/carriers.h"
#include "common/job/faults.h"
#include "common/job/job.h"

#include <stdint.h>

struct faulting {
    struct faults faults;
    struct rank_block ranks; // that this process carries
};

void faulting_init(struct faulting *faulting, const struct job *job, struct rank_block ranks);

/* Before a step: `step` counts those that were made. Logs what strikes. Does not return from a
 * kill, and returns from a stop when it is over. STATUS_NO_MEMORY: see fault_strike. */
enum status faulting_strike(const struct faulting *faulting, uint64_t step);

#endif
