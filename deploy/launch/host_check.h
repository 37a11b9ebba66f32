/* Finds out from the agents of a job's hosts what would go wrong: clocks that differ, data or
 * devices that cannot be opened, programs that are not there, hosts that cannot connect to each
 * other. */
#ifndef DEPLOY_LAUNCH_HOST_CHECK_H
#define DEPLOY_LAUNCH_HOST_CHECK_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/hosts/findings.h"
#include "deploy/hosts/launcher.h"
#include "deploy/hosts/placement.h"

#include <stdbool.h>

/* Adds what it finds. With `probes`, the hosts of workers also open the job's data, model and
 * device; or, if `program` is not NULL, look for that program of the user's own. */
enum status host_check_run(struct launcher *launcher, const struct job *job,
                           const struct placement *placement, bool probes,
                           const char *const *program, struct findings *findings);

#endif
