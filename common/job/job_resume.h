/* Whether a job may go on where another one has stopped: it has to be the same job. Pure. */
#ifndef COMMON_JOB_JOB_RESUME_H
#define COMMON_JOB_JOB_RESUME_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stdbool.h>
#include <stddef.h>

/* `saved` is the text of the job that wrote the checkpoint (job_encode). STATUS_INVALID with a
 * sentence that names the first option that has another value, unless that cannot change results.
 * --epochs may have become more. */
enum status job_check_resume(const char *saved, const struct job *job, char *ret_error,
                             size_t error_size);

/* Whether an option may have another value then. */
bool job_option_may_change(const char *name, const struct job *job);

#endif
