/* Finds out from the agents of a job's hosts what would go wrong: clocks that differ, data or
 * devices that cannot be opened, hosts that cannot connect to each other. */
#ifndef DEPLOY_LAUNCH_HOST_CHECK_H
#define DEPLOY_LAUNCH_HOST_CHECK_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/hosts/findings.h"
#include "deploy/hosts/launcher.h"
#include "deploy/hosts/placement.h"

#include <stdbool.h>

/* Adds what it finds. tries_data: workers of the job also open its data, model and device. */
enum status host_check_run(struct launcher *launcher, const struct job *job,
                           const struct placement *placement, bool tries_data,
                           struct findings *findings);

#endif
