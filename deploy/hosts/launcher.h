/* The launcher: its hosts with their agents, and the addresses that jobs use there. It runs one job
 * after another. */
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
#include "deploy/system/folder.h"
#include "deploy/system/interfaces.h"

#include <stdbool.h>
#include <stddef.h>

struct launcher {
    const struct launcher_options *options; // borrowed
    const struct host_options *host_options;
    struct host_link_options link_options;
    char shipped[SHIP_PLACE_BYTES];  // where --ship put the programs
    char lock[FOLDER_PATH_MAX + 32]; // lock file of the output folder; "": none
    struct hosts hosts;
    size_t coordinator;           // host of the coordinator
    struct allocation allocation; // whose nodes srun reaches; none: ssh reaches hosts
    bool has_others;              // there is a host other than this one
    bool is_folder_held; // the kernel holds a coordinator that writes on this host; whoever else
                         // touches its folder may be held, too
    struct crew crew;
    char addresses[HOSTS_MAX][128];     // of each host; "": not known
    bool reaches[HOSTS_MAX][HOSTS_MAX]; // [from][to]: preflight has connected them
};

/* Reads the options' hosts, and starts an agent on each. A host that is not available, or whose
 * address is unknown, becomes a finding, and the result is STATUS_UNREACHABLE. Logs what else is
 * wrong. Call launch_block_signals before it, and launcher_close after it in any case. */
enum status launcher_open(struct launcher *launcher, const struct launcher_options *options,
                          const struct host_options *host_options, struct findings *findings);
void launcher_close(struct launcher *launcher);

/* Starts lost agents again. Logs hosts that are not available. */
enum status launcher_recover(struct launcher *launcher);

/* The same for a job that may go on with the hosts that are there: marks the others as away.
 * STATUS_UNREACHABLE if there is none. */
enum status launcher_recover_some(struct launcher *launcher);

/* Describes a host's address for messages: "eth0 10.0.0.7". */
void launcher_describe_address(const struct launcher *launcher, size_t host, char *ret_text,
                               size_t text_size);

#endif
