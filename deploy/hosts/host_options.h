/* Options of the commands that start jobs on other hosts. */
#ifndef DEPLOY_HOSTS_HOST_OPTIONS_H
#define DEPLOY_HOSTS_HOST_OPTIONS_H

#include "common/options/options.h"
#include "deploy/hosts/allocation.h"
#include "deploy/hosts/hosts.h"

#include <stdbool.h>
#include <stddef.h>

/* How other hosts are reached. */
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

/* The options are about other hosts: they name some, or we are in an allocation of Slurm and may
 * use it. */
bool host_options_name_hosts(const struct host_options *options);

/* The hosts that the options name, and which of them has the coordinator; without names the nodes
 * of the allocation of Slurm that we are in; without one this host alone, with any number of slots.
 * The allocation is none (its job is "") where it is not to be used. Logs what is wrong. */
enum status host_options_read(const struct host_options *options, struct hosts *ret_hosts,
                              size_t *ret_coordinator, struct allocation *ret_allocation);

/* Where there are such hosts and the number of workers is not given, it is the sum of their slots.
 * Logs what is wrong with the hosts. */
enum status host_options_fill(const struct host_options *options, bool has_workers,
                              uint32_t *workers);

#endif
