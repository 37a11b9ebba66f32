/* Whether this host lets a launcher have what its part of a job needs. Other hosts have limits of
 * their own, which their processes look at. */
#ifndef DEPLOY_HOST_LIMITS_H
#define DEPLOY_HOST_LIMITS_H

#include "common/resources.h"
#include "deploy/crew.h"
#include "deploy/placement.h"

/* STATUS_INVALID with a sentence if not. */
enum status host_limits_check(const struct crew *crew, const struct placement *placement,
                              const struct job *job, char ret_error[RESOURCES_ERROR_BYTES]);

#endif
