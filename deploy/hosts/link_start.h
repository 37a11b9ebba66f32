/* Starts the program that leads to an agent. For host_link.c. */
#ifndef DEPLOY_HOSTS_LINK_START_H
#define DEPLOY_HOSTS_LINK_START_H

#include "deploy/hosts/host_link.h"

#include <stdbool.h>

/* Whether srun reaches the host, and not ssh. */
bool link_is_by_srun(const struct host_link *link);

/* Starts ssh, srun, or the agent itself where the link is local. STATUS_INVALID: the options make
 * no command. */
enum status link_start(struct host_link *link);

#endif
