/* Fills what follows from other options of a job. Pure. */
#ifndef COMMON_JOB_JOB_RESOLVE_H
#define COMMON_JOB_JOB_RESOLVE_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stddef.h>

/* Checks what rows cannot: contradictions between options. Fills what follows from others (batch,
 * the largest share of a worker, from global_batch; lr, decay and epsilon from the optimizer;
 * threads stay). The optimizer of a program of its own stays OPTIMIZER_AUTO, and its rate what it
 * is, until job_take_optimizer. Resolving again changes nothing. On STATUS_INVALID ret_error says
 * what to change.
 *
 * `local` becomes one worker with the whole global batch. lr_workers stays the number of workers
 * that it replaces, so that linear scaling gives it their learning rate. */
enum status job_resolve(struct job *job, char *ret_error, size_t error_size);

#endif
