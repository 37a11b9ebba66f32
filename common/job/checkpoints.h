/* After which steps a job writes checkpoints, as far as that follows from the job. Pure.
 *
 * A checkpoint is taken between two steps, where what workers hold of their own is least: with
 * --sync-every between two rounds, never at the end of a phase that another one follows, and never
 * while sizes of buckets are tried. So a step that is
 * asked for is moved on to the next one that will do. The end of the job has one in any case.
 *
 * A job that may lose workers (--on-loss redeal) has others besides, which stay in memory; their
 * steps follow from no rule: see ps-server/coordinator/checkpointing.h. */
#ifndef COMMON_JOB_CHECKPOINTS_H
#define COMMON_JOB_CHECKPOINTS_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/job/phases.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINTS_NEVER UINT64_MAX

struct checkpoints {
    bool are_on;
    bool are_written;    // some go to the disk
    uint64_t every;      // steps; 0: only those that are announced
    uint64_t total;      // steps of the job
    uint32_t sync_every; // steps of a round
};

/* Whether there are any, on the disk or in memory. */
bool checkpoints_are_on(const struct job *job);

/* Whether a job has copies in memory that --mirror can write to a folder. STATUS_INVALID with a
 * sentence: why not, and what to do. The job is resolved. */
enum status checkpoints_check_mirror(const struct job *job, char *ret_error, size_t error_size);

struct checkpoints checkpoints_of(const struct job *job, uint64_t sample_count);

/* The first number of steps, not less than `steps`, after which a checkpoint can be taken. Steps up
 * to the first one of the phase that a job went on in are returned as they are: they were made
 * before. */
uint64_t checkpoints_fit(const struct checkpoints *checkpoints, const struct phases *phases,
                         uint64_t steps);

/* The first one after `steps` that follows from the job; CHECKPOINTS_NEVER behind the last. */
uint64_t checkpoints_next(const struct checkpoints *checkpoints, const struct phases *phases,
                          uint64_t steps);

/* Whether there is one after so many steps. */
bool checkpoints_are_due(const struct checkpoints *checkpoints, const struct phases *phases,
                         uint64_t steps);

#endif
