/* The table of options for other hosts. */
#include "deploy/host_options.h"

#include "common/log.h"
#include "common/port_range.h"
#include "deploy/interfaces.h"

#include <stddef.h>
#include <stdio.h>

#define FIELD(name) offsetof(struct host_options, name), sizeof(((struct host_options *)0)->name)

static const struct option rows[] = {
    {"hosts", 'H', OPTION_TEXT, FIELD(hosts), "", 0, 0, NULL, NULL, "HOST:SLOTS,...",
     "hosts to run on, and how many workers each takes (1 where it is left out); ranks are dealt "
     "host by host"},
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

static enum status read_names(const struct host_options *options, struct hosts *hosts,
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
    } else {
        hosts->list[0] = (struct host){.name = "localhost", .slots = HOSTS_SLOTS_MAX};
        hosts->count = 1;
    }
    if (status == STATUS_OK && options->coordinator[0] != '\0') {
        status = hosts_add_idle(hosts, options->coordinator, error);
    }
    return status;
}

enum status host_options_read(const struct host_options *options, struct hosts *ret_hosts,
                              size_t *ret_coordinator)
{
    char error[OPTION_ERROR_BYTES];
    ret_hosts->count = 0;
    enum status status = read_names(options, ret_hosts, error);
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
    size_t coordinator;
    enum status status = host_options_read(options, &hosts, &coordinator);
    bool names_hosts = options->hosts[0] != '\0' || options->hostfile[0] != '\0';
    if (status != STATUS_OK || !names_hosts) {
        return status;
    }
    uint32_t slots = hosts_slots(&hosts);
    if (!has_workers) {
        *workers = slots;
    } else if (*workers > slots) {
        log_error("%u workers are asked for, but the hosts have %u slot%s: ask for fewer with "
                  "--workers, or give hosts more (HOST:SLOTS)",
                  *workers, slots, slots == 1 ? "" : "s");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}
