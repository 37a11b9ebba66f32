/* The job that a run folder has the record of. */
#ifndef PS_SERVER_RECORD_RECORDED_JOB_H
#define PS_SERVER_RECORD_RECORDED_JOB_H

#include "common/job/job.h"

/* The first option of the job that the run in the folder has another value of, --epochs included,
 * unless that cannot change results. NULL: it is the same job, or none is recorded there. */
const char *recorded_job_other_option(const char *folder, const struct job *job);

#endif
