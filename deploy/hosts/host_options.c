/* The table of options for other hosts. */
#include "deploy/hosts/host_options.h"

#include "common/base/log.h"
#include "common/transport/port_range.h"
#include "deploy/system/interfaces.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct host_options, name), sizeof(((struct host_options *)0)->name)

static const struct option_choice ways[] = {
    {"auto", "srun in a job of Slurm, otherwise ssh"},
    {"ssh", "ssh; a job of Slurm is not looked at"},
    {"srun", "srun, to the nodes of the job of Slurm that this is"},
    {NULL, NULL},
};

static const struct option rows[] = {
    {"hosts", 'H', OPTION_TEXT, FIELD(hosts), "", 0, 0, NULL, NULL, "HOST:SLOTS,...",
     "hosts to run on, and how many workers each takes (1 where it is left out); ranks are dealt "
     "host by host. In a job of Slurm otherwise its nodes, with a worker for each task"},
    {"hostfile", 0, OPTION_TEXT, FIELD(hostfile), "", 0, 0, NULL, NULL, "FILE",
     "the same from a file: a line for each host, HOST:SLOTS or HOST slots=SLOTS"},
    {"coordinator", 0, OPTION_TEXT, FIELD(coordinator), "", 0, 0, NULL, NULL, "HOST",
     "host of the coordinator, also one without workers; otherwise the first host"},
    {"network-interface", 0, OPTION_TEXT, FIELD(network_interface), "", 0, 0, NULL,
     interfaces_wanted_is_valid, "NAME|CIDR,...",
     "interface for the job, by name or by its network; the first of the list that a host has; "
     "otherwise the one by which hosts reach each other"},
    {"port-range", 0, OPTION_TEXT, FIELD(port_range), "", 0, 0, NULL, port_range_is_valid, "A-B",
     "TCP ports that processes may listen on, for firewalls; otherwise any that is free"},
    {"reach", 0, OPTION_CHOICE, FIELD(reach), "auto", 0, 0, ways, NULL, NULL,
     "how other hosts are reached"},
    {"ssh", 0, OPTION_TEXT, FIELD(ssh), "ssh", 0, 0, NULL, NULL, "COMMAND",
     "ssh, with options of your own if you like; it reads your ssh configuration as always"},
    {"remote-ringside", 0, OPTION_TEXT, FIELD(remote_ringside), "", 0, 0, NULL, NULL, "PATH",
     "where ringside is on other hosts; otherwise at the same path as here, or on PATH there"},
    {"ship", 0, OPTION_FLAG, FIELD(ship), "false", 0, 0, NULL, NULL, NULL,
     "copy the programs through ssh to ~/.cache/ringside of hosts that lack this build"},
    {"preflight", 0, OPTION_FLAG, FIELD(preflight), "true", 0, 0, NULL, NULL, NULL,
     "before a job on other hosts, try versions, clocks, data, devices and every connection"},
    {"link-timeout", 0, OPTION_REAL, FIELD(link_timeout), "5", 2, 3600, NULL, NULL, "SECONDS",
     "how long a host, or this launcher, may give no sign of life until its processes are ended"},
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
    return strcmp(options->reach, "srun") == 0 ||
           (strcmp(options->reach, "auto") == 0 && allocation_is_there(getenv));
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
                 "--reach srun is for a job of Slurm, and this is none: SLURM_JOB_ID and "
                 "SLURM_JOB_NODELIST are not set; start it by sbatch or in salloc");
        return STATUS_INVALID;
    }
    if (options->ship) {
        snprintf(error, OPTION_ERROR_BYTES,
                 "--ship copies through ssh: in a job of Slurm install ringside in a folder that "
                 "all nodes see, or copy it by sbcast, or say --reach ssh");
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
                              uint32_t *workers)
{
    static struct hosts hosts;
    static struct allocation allocation;
    size_t coordinator;
    enum status status = host_options_read(options, &hosts, &coordinator, &allocation);
    if (status != STATUS_OK || !host_options_name_hosts(options)) {
        return status;
    }
    uint32_t slots = hosts_slots(&hosts);
    if (!has_workers) {
        *workers = slots;
    } else if (*workers > slots) {
        log_error("%u workers are asked for, but the hosts have %u slot%s: ask for fewer with "
                  "--workers, or %s",
                  *workers, slots, slots == 1 ? "" : "s",
                  is_named(options) ? "give hosts more (HOST:SLOTS)"
                                    : "ask Slurm for more tasks (--ntasks)");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}
