/* Rejects contradictory options of a job; job_resolve calls it. Pure. */
#ifndef COMMON_JOB_JOB_CHECKS_H
#define COMMON_JOB_JOB_CHECKS_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stdbool.h>
#include <stddef.h>

/* STATUS_INVALID: ret_error says what to change. */
enum status job_check(const struct job *job, char *ret_error, size_t error_size);

/* Whether some of the steps come that --timeline-steps asks for. Likewise. */
enum status job_check_timeline(const struct job *job, uint64_t step_count, char *ret_error,
                               size_t error_size);

/* Whether a lost process leaves a job that can go on (--on-loss redeal): with the same bits, if it
 * has any that do not depend on speed. */
bool job_can_redeal(const struct job *job);

#define JOB_BOUND_BYTES 192

/* Whether a job of several processes ends when it loses one because of what else it has asked for.
 * Then ret_why says so: what going on would need, or what no copy of the job holds. */
bool job_is_bound(const struct job *job, char ret_why[JOB_BOUND_BYTES]);

#endif
