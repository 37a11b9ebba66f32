/* Options of the commands that start jobs on other hosts. */
#ifndef DEPLOY_HOSTS_HOST_OPTIONS_H
#define DEPLOY_HOSTS_HOST_OPTIONS_H

#include "common/options/options.h"
#include "deploy/hosts/allocation.h"
#include "deploy/hosts/hosts.h"

#include <stdbool.h>
#include <stddef.h>

/* How the launcher reaches other hosts. */
enum reach { REACH_AUTO, REACH_SSH, REACH_SRUN };

struct host_options {
    char hosts[4096], hostfile[1024], coordinator[HOST_NAME_BYTES];
    char network_interface[256];
    char port_range[16];
    enum reach reach;
    char ssh[512], remote_ringside[1024];
    bool ship;
    bool preflight;
    double link_timeout; // seconds
};

struct option_set host_option_set(struct host_options *options);

/* Whether the job may run on other hosts: the options name some, or this process is in a Slurm
 * allocation and may use it. */
bool host_options_name_hosts(const struct host_options *options);

/* Finds the hosts, and which of them has the coordinator: the hosts that the options name, or else
 * the nodes of this Slurm allocation, or else this host alone, with any number of slots.
 * *ret_allocation has no job ("") if it is not to be used. Logs what is wrong. */
enum status host_options_read(const struct host_options *options, struct hosts *ret_hosts,
                              size_t *ret_coordinator, struct allocation *ret_allocation);

/* Where there are such hosts and the number of workers is not given, it is the sum of their slots.
 * `processes` that carry the workers' ranks take those; 0: each worker is one. Logs what is wrong
 * with the hosts. */
enum status host_options_fill(const struct host_options *options, bool has_workers,
                              uint32_t processes, uint32_t *workers);

#endif
