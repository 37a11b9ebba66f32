/* The launcher: its hosts with their agents, and the addresses that jobs use there. Jobs run on it
 * one after the other. */
#ifndef DEPLOY_HOSTS_LAUNCHER_H
#define DEPLOY_HOSTS_LAUNCHER_H

#include "common/base/status.h"
#include "deploy/hosts/allocation.h"
#include "deploy/hosts/crew.h"
#include "deploy/hosts/findings.h"
#include "deploy/hosts/host_options.h"
#include "deploy/hosts/hosts.h"
#include "deploy/hosts/launcher_options.h"
#include "deploy/hosts/ship.h"
#include "deploy/system/folder_lock.h"
#include "deploy/system/interfaces.h"

#include <stdbool.h>
#include <stddef.h>

struct launcher {
    const struct launcher_options *options; // borrowed
    const struct host_options *host_options;
    struct host_link_options link_options;
    char shipped[SHIP_PLACE_BYTES];  // where --ship has put the programs
    char lock[FOLDER_PATH_MAX + 32]; // lock file of the output folder; "": none
    struct hosts hosts;
    size_t coordinator;           // host of it
    struct allocation allocation; // whose nodes srun reaches; none: ssh reaches hosts
    bool has_others;              // a host that is not this one
    struct crew crew;
    char addresses[HOSTS_MAX][128];     // of each host; "": not known
    bool reaches[HOSTS_MAX][HOSTS_MAX]; // preflight has connected the one to the other
};

/* Reads the options' hosts, and starts an agent on each. Hosts that cannot be had, or whose address
 * cannot be told, are findings; then STATUS_UNREACHABLE. Logs what else is wrong.
 * launch_block_signals comes before it, launcher_close after it in any case. */
enum status launcher_open(struct launcher *launcher, const struct launcher_options *options,
                          const struct host_options *host_options, struct findings *findings);
void launcher_close(struct launcher *launcher);

/* Agents that were lost are started anew; hosts that cannot be had are logged. */
enum status launcher_recover(struct launcher *launcher);

/* "eth0 10.0.0.7": what messages say of a host's address. */
void launcher_describe_address(const struct launcher *launcher, size_t host, char *ret_text,
                               size_t text_size);

#endif
