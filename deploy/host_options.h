/* Options of the commands that start jobs on other hosts. */
#ifndef DEPLOY_HOST_OPTIONS_H
#define DEPLOY_HOST_OPTIONS_H

#include "common/options.h"
#include "deploy/hosts.h"

#include <stdbool.h>
#include <stddef.h>

struct host_options {
    char hosts[4096], hostfile[1024], coordinator[HOST_NAME_BYTES];
    char network_interface[256];
    char port_range[16];
    char ssh[512], remote_ringside[1024];
    bool ship;
    bool preflight;
    double link_timeout; // seconds
};

struct option_set host_option_set(struct host_options *options);

/* The hosts that the options name, and which of them has the coordinator; this one alone, with any
 * number of slots, if they name none. Logs what is wrong. */
enum status host_options_read(const struct host_options *options, struct hosts *ret_hosts,
                              size_t *ret_coordinator);

/* Where hosts are named and the number of workers is not given, it is the sum of their slots. Logs
 * what is wrong with the hosts. */
enum status host_options_fill(const struct host_options *options, bool has_workers,
                              uint32_t *workers);

#endif
