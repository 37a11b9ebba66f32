/* Places the processes of a job on hosts: worker processes are dealt host by host, in the order of
 * the hosts, as many to each as it has slots; servers go round the hosts, from the coordinator's
 * on, wherever the coordinator is (--coordinator-role). Hosts that are away get none. Pure. */
#ifndef DEPLOY_HOSTS_PLACEMENT_H
#define DEPLOY_HOSTS_PLACEMENT_H

#include "common/job/job.h"
#include "common/options/options.h"
#include "deploy/hosts/hosts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct placement {
    uint32_t worker_count, server_count; // processes of ps: the coordinator is the first
    size_t host_of_worker[JOB_WORKERS_MAX];
    uint32_t local_rank[JOB_WORKERS_MAX];
    size_t host_of_server[JOB_SERVERS_MAX];
    uint32_t local_size[HOSTS_MAX]; // workers of a host
};

/* Returns STATUS_INVALID with a sentence if the hosts have too few slots. */
enum status placement_make(const struct hosts *hosts, const struct job *job, size_t coordinator,
                           struct placement *ret_placement, char ret_error[OPTION_ERROR_BYTES]);

/* Whether a host has a process of the job. */
bool placement_uses(const struct placement *placement, size_t host);

/* Whether processes on one host connect to processes on another. Every process connects to the
 * coordinator, and workers to servers if there are any. In ring, workers connect to the next
 * worker, or to all where buckets go directly. */
bool placement_connects(const struct placement *placement, const struct job *job, size_t from,
                        size_t to);

#endif
