/* Checks whether this host's limits suffice for the launcher and the processes that run here.
 * Processes on other hosts check their own limits. */
#ifndef DEPLOY_HOSTS_HOST_LIMITS_H
#define DEPLOY_HOSTS_HOST_LIMITS_H

#include "common/service/resources.h"
#include "deploy/hosts/crew.h"
#include "deploy/hosts/placement.h"

/* Returns STATUS_INVALID with a sentence if they do not. */
enum status host_limits_check(const struct crew *crew, const struct placement *placement,
                              const struct job *job, char ret_error[RESOURCES_ERROR_BYTES]);

#endif
