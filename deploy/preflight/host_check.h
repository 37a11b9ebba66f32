/* Finds out from the agents of a job's hosts what would go wrong: clocks that differ, data or
 * devices that cannot be opened, programs that are not there, hosts that cannot connect to each
 * other. */
#ifndef DEPLOY_PREFLIGHT_HOST_CHECK_H
#define DEPLOY_PREFLIGHT_HOST_CHECK_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/hosts/findings.h"
#include "deploy/hosts/launcher.h"
#include "deploy/hosts/placement.h"
#include "deploy/preflight/memory_said.h"

#include <stdbool.h>

struct host_check_wish {
    const struct job *job;
    const struct placement *placement;
    // The hosts of workers also open the job's data, model and device; or look for the program.
    bool probes;
    const char *const *program; // of the user's own; NULL: none
};

/* Adds what it finds. ret_memory (HOSTS_MAX) gets what probes say of memory. */
enum status host_check_run(struct launcher *launcher, const struct host_check_wish *wish,
                           struct findings *findings, struct memory_found *ret_memory);

#endif
