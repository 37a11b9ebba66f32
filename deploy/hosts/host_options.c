/* The table of options for other hosts. */
#include "deploy/hosts/host_options.h"

#include "common/base/log.h"
#include "common/transport/port_range.h"
#include "deploy/system/interfaces.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(kind, field) OPTION_FIELD(kind, host_options, field)

static const struct option_choice ways[] = {
    [REACH_AUTO] = {"auto", "srun in a Slurm job, otherwise ssh"},
    [REACH_SSH] = {"ssh", "ssh, even in a Slurm job"},
    [REACH_SRUN] = {"srun", "srun, to the nodes of this Slurm job"},
    {NULL, NULL},
};

static const struct option rows[] = {
    {.name = "hosts",
     .letter = 'H',
     FIELD(TEXT, hosts),
     .fallback = "",
     .metavar = "HOST:SLOTS,...",
     .help = "hosts to run on, and how many workers each takes (default 1); ranks are assigned "
             "host by host. In a Slurm job the default is its nodes, with a worker for each task"},
    {.name = "hostfile",
     FIELD(TEXT, hostfile),
     .fallback = "",
     .metavar = "FILE",
     .help = "the same from a file with one host to a line: HOST:SLOTS, or HOST slots=SLOTS"},
    {.name = "coordinator",
     FIELD(TEXT, coordinator),
     .fallback = "",
     .metavar = "HOST",
     .help = "host of the coordinator, which need not have workers; the default is the first host"},
    {.name = "network-interface",
     FIELD(TEXT, network_interface),
     .fallback = "",
     .is_valid = interfaces_wanted_is_valid,
     .metavar = "NAME|CIDR,...",
     .help = "network interface for the job, by name or network; each host takes the first one in "
             "the list that it has. The default is the one through which hosts reach each other"},
    {.name = "port-range",
     FIELD(TEXT, port_range),
     .fallback = "",
     .is_valid = port_range_is_valid,
     .metavar = "A-B",
     .help = "TCP ports that processes may listen on, for firewalls; by default any free ones"},
    {.name = "reach",
     FIELD(CHOICE, reach),
     .fallback = "auto",
     .choices = ways,
     .help = "how other hosts are reached"},
    {.name = "ssh",
     FIELD(TEXT, ssh),
     .fallback = "ssh",
     .metavar = "COMMAND",
     .help = "the ssh command, with your own options if you like; it reads your ssh configuration "
             "as usual"},
    {.name = "remote-ringside",
     FIELD(TEXT, remote_ringside),
     .fallback = "",
     .metavar = "PATH",
     .help =
         "path of ringside on other hosts; the default is the same path as here, or PATH there"},
    {.name = "ship",
     FIELD(FLAG, ship),
     .fallback = "false",
     .help = "copy the programs by ssh to ~/.cache/ringside on hosts that lack this build"},
    {.name = "preflight",
     FIELD(FLAG, preflight),
     .fallback = "true",
     .help =
         "before a job on other hosts, check versions, clocks, data, devices and every connection"},
    {.name = "link-timeout",
     FIELD(REAL, link_timeout),
     .fallback = "5",
     OPTION_RANGE(2, 3600),
     .metavar = "SECONDS",
     .help = "after this much silence from a host, or from this launcher, its processes are ended"},
};

struct option_set host_option_set(struct host_options *options)
{
    return (struct option_set){.title = "Other hosts",
                               .rows = rows,
                               .count = sizeof(rows) / sizeof(rows[0]),
                               .values = options};
}

static bool is_named(const struct host_options *options)
{
    return options->hosts[0] != '\0' || options->hostfile[0] != '\0';
}

static bool uses_slurm(const struct host_options *options)
{
    return options->reach == REACH_SRUN ||
           (options->reach == REACH_AUTO && allocation_is_there(getenv));
}

bool host_options_name_hosts(const struct host_options *options)
{
    return is_named(options) || uses_slurm(options);
}

static enum status read_names(const struct host_options *options,
                              const struct allocation *allocation, struct hosts *hosts,
                              char error[OPTION_ERROR_BYTES])
{
    enum status status = STATUS_OK;
    if (options->hosts[0] != '\0' && options->hostfile[0] != '\0') {
        snprintf(error, OPTION_ERROR_BYTES, "--hosts and --hostfile name the hosts: give one");
        return STATUS_INVALID;
    }
    if (options->hosts[0] != '\0') {
        status = hosts_parse(hosts, options->hosts, error);
    } else if (options->hostfile[0] != '\0') {
        status = hosts_read(hosts, options->hostfile, error);
    } else if (allocation->job[0] != '\0') {
        *hosts = allocation->hosts;
    } else {
        hosts->list[0] = (struct host){.name = "localhost", .slots = HOSTS_SLOTS_MAX};
        hosts->count = 1;
    }
    if (status == STATUS_OK && options->coordinator[0] != '\0') {
        status = hosts_add_idle(hosts, options->coordinator, error);
    }
    return status;
}

static enum status read_allocation(const struct host_options *options,
                                   struct allocation *allocation, char error[OPTION_ERROR_BYTES])
{
    *allocation = (struct allocation){.job = ""};
    if (!uses_slurm(options)) {
        return STATUS_OK;
    }
    if (!allocation_is_there(getenv)) {
        snprintf(error, OPTION_ERROR_BYTES,
                 "--reach srun is for Slurm jobs, and this is not one: SLURM_JOB_ID and "
                 "SLURM_JOB_NODELIST are not set; start it by sbatch or in salloc");
        return STATUS_INVALID;
    }
    if (options->ship) {
        snprintf(error, OPTION_ERROR_BYTES,
                 "--ship copies through ssh. In a Slurm job, install ringside in a folder that all "
                 "nodes see, or copy it by sbcast, or say --reach ssh");
        return STATUS_INVALID;
    }
    return allocation_read(is_named(options), allocation, error);
}

enum status host_options_read(const struct host_options *options, struct hosts *ret_hosts,
                              size_t *ret_coordinator, struct allocation *ret_allocation)
{
    char error[OPTION_ERROR_BYTES];
    ret_hosts->count = 0;
    enum status status = read_allocation(options, ret_allocation, error);
    if (status == STATUS_OK) {
        status = read_names(options, ret_allocation, ret_hosts, error);
    }
    if (status == STATUS_OK && ret_allocation->job[0] != '\0') {
        status = allocation_check(ret_allocation, ret_hosts, error);
    }
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    *ret_coordinator =
        options->coordinator[0] != '\0' ? hosts_find(ret_hosts, options->coordinator) : 0;
    return STATUS_OK;
}

enum status host_options_fill(const struct host_options *options, bool has_workers,
                              uint32_t processes, uint32_t *workers)
{
    struct hosts hosts;
    struct allocation allocation;
    size_t coordinator;
    enum status status = host_options_read(options, &hosts, &coordinator, &allocation);
    if (status != STATUS_OK || !host_options_name_hosts(options)) {
        return status;
    }
    uint32_t slots = hosts_slots(&hosts);
    if (!has_workers) {
        *workers = slots;
    } else if ((processes > 0 ? processes : *workers) > slots) {
        log_error("%u worker%s are asked for, but the hosts have %u slot%s: ask for fewer with "
                  "%s, or %s",
                  processes > 0 ? processes : *workers, processes > 0 ? " processes" : "s", slots,
                  slots == 1 ? "" : "s", processes > 0 ? "--processes" : "--workers or --processes",
                  is_named(options) ? "give hosts more (HOST:SLOTS)"
                                    : "ask Slurm for more tasks (--ntasks)");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}
