/* What the commands that are a worker's work have in common: the job that tells it what to do. */
#ifndef DEPLOY_COMMAND_WORKER_JOB_H
#define DEPLOY_COMMAND_WORKER_JOB_H

#include "common/base/signals.h"
#include "common/job/job.h"

/* Puts a worker in the place of this process, with the job on its standard input. argv is what it
 * gets, argv[0] included, NULL-terminated. Returns only if that fails, which it logs. */
enum exit_code worker_job_become(const struct job *job, const char *const *argv);

#endif
