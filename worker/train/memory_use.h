/* How much memory of the host a worker process will take, before its job begins.
 *
 * Large buffers are taken and touched at create (common/base/memory.h), so a worker whose trainer
 * is there has nearly all that it will have: the vectors of its ranks, what its device computes in,
 * data. What is to come follows from the job. */
#ifndef WORKER_TRAIN_MEMORY_USE_H
#define WORKER_TRAIN_MEMORY_USE_H

#include "common/job/job.h"

#include <stdint.h>

/* Bytes of this process at its peak. Call it when the trainer has been made. What the process maps
 * of its neighbours does not count: it is theirs. value_bytes: of all parameters. 0: not known. */
uint64_t memory_use_of_worker(const struct job *job, uint64_t value_bytes);

#endif
