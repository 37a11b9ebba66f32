/* Reads a network, and checks that it is one tree. */
#include "deploy/predict/basis/network.h"

#include "common/base/log.h"
#include "deploy/predict/basis/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST_KIB_MAX  1e9
#define NAME_BYTES_MAX 50 // numbers of hosts and sides of links follow

static uint32_t add_link(struct network *network, const char *name, const char *side,
                         double bandwidth)
{
    struct network_link *link = &network->links[network->link_count];
    snprintf(link->name, sizeof(link->name), "%s %s", name, side);
    link->bandwidth = bandwidth;
    link->may_saturate = bandwidth > 0;
    return network->link_count++;
}

/* Others' traffic on the link of a host or a switch, in each direction, loss, and burst. */
static enum status read_traffic(const struct fields *fields, struct network_link *ret_traffic)
{
    double burst_kib = 0;
    enum status status =
        fields_quantity(fields, "background", QUANTITY_BANDWIDTH, false, &ret_traffic->background);
    if (status == STATUS_OK) {
        status = fields_number(fields, "loss", 0, 0.5, false, &ret_traffic->loss);
    }
    if (status == STATUS_OK) {
        status = fields_number(fields, "burst-kib", 0, BURST_KIB_MAX, false, &burst_kib);
    }
    ret_traffic->burst = burst_kib * 1024;
    return status;
}

static void add_traffic(struct network *network, uint32_t up, uint32_t down,
                        const struct network_link *traffic)
{
    network->links[up].background = network->links[down].background = traffic->background;
    network->links[up].loss = network->links[down].loss = traffic->loss;
    network->links[up].burst = network->links[down].burst = traffic->burst;
}

/* A name that is kept whole. As fields_text. */
static enum status read_name(const struct fields *fields, const char *field, bool is_required,
                             const char **ret_name)
{
    enum status status = fields_text(fields, field, is_required, ret_name);
    return status == STATUS_OK && *ret_name != NULL && strlen(*ret_name) > NAME_BYTES_MAX
               ? fields_refuse(fields, field, "has more than 50 bytes; shorten it")
               : status;
}

static uint32_t find_switch(const struct network *network, const char *name)
{
    for (uint32_t i = 0; i < network->switch_count; i++) {
        if (strcmp(network->switches[i].name, name) == 0) {
            return i;
        }
    }
    return NETWORK_NONE;
}

static enum status refuse_switch(const struct fields *fields, const char *field, const char *name)
{
    char why[256];
    snprintf(why, sizeof(why), "names no switch: \"switches\" has no '%s'", name);
    return fields_refuse(fields, field, why);
}

static enum status read_switch(const char *file, json_t *object, size_t index,
                               struct network *network)
{
    static const char *const names[] = {"name",    "to",         "bandwidth", "oversubscription",
                                        "latency", "background", "loss",      "burst-kib",
                                        NULL};
    char place[32];
    snprintf(place, sizeof(place), "switches[%zu]", index);
    const struct fields fields = {file, place, object};
    struct network_switch *own = &network->switches[index];
    const char *name = NULL;
    enum status status = fields_check_names(&fields, names);
    if (status == STATUS_OK) {
        status = read_name(&fields, "name", true, &name);
    }
    if (status == STATUS_OK && find_switch(network, name) != NETWORK_NONE) {
        status = fields_refuse(&fields, "name", "is that of another switch");
    }
    if (status == STATUS_OK) {
        snprintf(own->name, sizeof(own->name), "%s", name);
        status = fields_quantity(&fields, "bandwidth", QUANTITY_BANDWIDTH, false, &own->bandwidth);
    }
    if (status == STATUS_OK) {
        status = fields_number(&fields, "oversubscription", 1, 1e6, false, &own->oversubscription);
    }
    if (status == STATUS_OK) {
        status = read_traffic(&fields, &own->traffic);
    }
    if (status == STATUS_OK && own->bandwidth > 0 && own->oversubscription > 0) {
        status = fields_refuse(&fields, "oversubscription", "and bandwidth exclude each other");
    }
    own->above = own->up = own->down = NETWORK_NONE;
    network->switch_count++;
    return status == STATUS_OK
               ? fields_quantity(&fields, "latency", QUANTITY_TIME, false, &own->latency_s)
               : status;
}

/* Switches may be listed in any order, so this comes after all have been read. */
static enum status connect_switch(const char *file, json_t *object, size_t index,
                                  struct network *network)
{
    char place[32];
    snprintf(place, sizeof(place), "switches[%zu]", index);
    const struct fields fields = {file, place, object};
    struct network_switch *own = &network->switches[index];
    const char *to = NULL;
    enum status status = fields_text(&fields, "to", false, &to);
    bool has_link = own->bandwidth > 0 || own->oversubscription > 0 || own->latency_s > 0 ||
                    own->traffic.background > 0 || own->traffic.loss > 0 || own->traffic.burst > 0;
    if (status == STATUS_OK && to == NULL) {
        return has_link ? fields_refuse(&fields, "to",
                                        "is missing, so bandwidth, oversubscription, latency, "
                                        "background, loss and burst-kib have no link")
                        : STATUS_OK;
    }
    own->above = status == STATUS_OK ? find_switch(network, to) : NETWORK_NONE;
    return status == STATUS_OK && own->above == NETWORK_NONE ? refuse_switch(&fields, "to", to)
                                                             : status;
}

struct host_group {
    double count, workers, servers, cores, nic, memory;
    const char *machine; // NULL: each has one to itself
    struct network_host host;
    struct network_link traffic;
};

static enum status read_group(const struct fields *fields, const struct network *network,
                              struct host_group *group)
{
    static const char *const names[] = {
        "name",    "count",      "workers", "servers",   "switch",
        "nic",     "latency",    "memory",  "cores",     "memory-latency",
        "machine", "background", "loss",    "burst-kib", NULL};
    const char *name = NULL, *above = NULL;
    enum status status = fields_check_names(fields, names);
    if (status == STATUS_OK) {
        status = read_name(fields, "name", true, &name);
    }
    if (status == STATUS_OK) {
        status = fields_text(fields, "switch", true, &above);
    }
    if (status == STATUS_OK) {
        group->host.above = find_switch(network, above);
        snprintf(group->host.name, sizeof(group->host.name), "%s", name);
        status = group->host.above == NETWORK_NONE
                     ? refuse_switch(fields, "switch", above)
                     : fields_number(fields, "count", 1, NETWORK_HOSTS_MAX, false, &group->count);
    }
    if (status == STATUS_OK) {
        status = fields_number(fields, "workers", 0, 1024, false, &group->workers);
    }
    if (status == STATUS_OK) {
        status = fields_number(fields, "servers", 0, 1024, false, &group->servers);
    }
    if (status == STATUS_OK) {
        status = fields_number(fields, "cores", 1, 65536, false, &group->cores);
    }
    if (status == STATUS_OK) {
        status = read_name(fields, "machine", false, &group->machine);
    }
    if (status == STATUS_OK && group->machine != NULL && group->cores == 0) {
        status = fields_refuse(fields, "cores", "is missing: hosts share those of their machine");
    }
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "nic", QUANTITY_BANDWIDTH, true, &group->nic);
    }
    if (status == STATUS_OK) {
        status = read_traffic(fields, &group->traffic);
    }
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "latency", QUANTITY_TIME, true, &group->host.latency_s);
    }
    if (status == STATUS_OK) {
        status = fields_quantity(fields, "memory", QUANTITY_BANDWIDTH, false, &group->memory);
    }
    return status == STATUS_OK ? fields_quantity(fields, "memory-latency", QUANTITY_TIME, false,
                                                 &group->host.memory_latency_s)
                               : status;
}

/* The first host that names the machine; host_count: none does. */
static uint32_t find_machine(const struct network *network, const char *name)
{
    uint32_t host = 0;
    while (host < network->host_count && strcmp(network->hosts[host].machine_name, name) != 0) {
        host++;
    }
    return host;
}

/* Hosts of a group share the machine that it names, also with those of other groups. */
static enum status find_cores(const struct fields *fields, const struct network *network,
                              struct host_group *group)
{
    group->host.cores = (uint32_t)group->cores;
    if (group->machine == NULL) {
        return STATUS_OK;
    }
    snprintf(group->host.machine_name, sizeof(group->host.machine_name), "%s", group->machine);
    group->host.machine = find_machine(network, group->host.machine_name);
    bool is_there = group->host.machine < network->host_count;
    return is_there && network->hosts[group->host.machine].cores != group->host.cores
               ? fields_refuse(fields, "cores", "is not what another group says of that machine")
               : STATUS_OK;
}

/* Names of hosts are in the output, and tell links apart. `seen`: by name, the group of each. */
static enum status check_name(const struct fields *fields, const char *name, size_t index,
                              json_t *seen)
{
    const json_t *other = json_object_get(seen, name);
    if (other != NULL) {
        char why[NETWORK_NAME_BYTES + 96];
        snprintf(why, sizeof(why),
                 "makes a host %s, as hosts[%lld] does; hosts need names of "
                 "their own",
                 name, (long long)json_integer_value(other));
        return fields_refuse(fields, "name", why);
    }
    return json_object_set_new(seen, name, json_integer((json_int_t)index)) == 0 ? STATUS_OK
                                                                                 : STATUS_NO_MEMORY;
}

static enum status add_hosts(const char *file, json_t *object, size_t index, json_t *seen,
                             struct network *network)
{
    char place[32];
    snprintf(place, sizeof(place), "hosts[%zu]", index);
    const struct fields fields = {file, place, object};
    struct host_group group = {.count = 1, .workers = 1};
    enum status status = read_group(&fields, network, &group);
    if (status != STATUS_OK) {
        return status;
    }
    if (floor(group.count) != group.count || floor(group.workers) != group.workers ||
        floor(group.servers) != group.servers || floor(group.cores) != group.cores) {
        return fields_refuse(&fields, "count",
                             "and workers, servers and cores have to be whole numbers");
    }
    status = find_cores(&fields, network, &group);
    if (status != STATUS_OK) {
        return status;
    }
    if (group.count > NETWORK_HOSTS_MAX - network->host_count) {
        return fields_refuse(&fields, "count", "makes too many hosts");
    }
    for (uint32_t i = 0; i < (uint32_t)group.count && status == STATUS_OK; i++) {
        struct network_host *host = &network->hosts[network->host_count];
        *host = group.host;
        host->machine = group.machine != NULL ? group.host.machine : network->host_count;
        network->host_count++;
        snprintf(host->name, sizeof(host->name), "%.50s%u", group.host.name, i);
        status = check_name(&fields, host->name, index, seen);
        host->workers = (uint32_t)group.workers;
        host->servers = (uint32_t)group.servers;
        host->up = add_link(network, host->name, "out", group.nic);
        host->down = add_link(network, host->name, "in", group.nic);
        add_traffic(network, host->up, host->down, &group.traffic);
        host->memory = add_link(network, host->name, "memory", group.memory);
        network->has_server_places = network->has_server_places || host->servers > 0;
    }
    return status;
}

/* The switches from one to the top, itself included; more than NETWORK_DEPTH_MAX in a circle. */
static uint32_t depth_of(const struct network *network, uint32_t at)
{
    uint32_t depth = 1;
    while (network->switches[at].above != NETWORK_NONE && depth <= NETWORK_DEPTH_MAX) {
        at = network->switches[at].above;
        depth++;
    }
    return depth;
}

/* Gives a switch's link what follows from that of the links below it, and adds it to `below`. */
static void derive_link(struct network *network, struct network_switch *own, double below_own,
                        double *below)
{
    struct network_link *up = &network->links[own->up], *down = &network->links[own->down];
    up->bandwidth = own->oversubscription > 0 ? below_own / own->oversubscription : own->bandwidth;
    up->may_saturate = up->bandwidth > 0 && network_free(up) < below_own;
    below[own->above] += up->may_saturate ? up->bandwidth : below_own;
    // What comes down ends at NICs that carry no more than they do up.
    down->bandwidth = up->bandwidth;
    down->may_saturate = up->may_saturate;
}

/* Others leave something of every link that has a limit. */
static enum status check_background(const struct network *network)
{
    for (uint32_t i = 0; i < network->link_count; i++) {
        const struct network_link *link = &network->links[i];
        if (link->background > 0 && link->background >= link->bandwidth) {
            char background[QUANTITY_BYTES], bandwidth[QUANTITY_BYTES];
            quantity_format(link->background, QUANTITY_BANDWIDTH, background);
            quantity_format(link->bandwidth, QUANTITY_BANDWIDTH, bandwidth);
            log_error("the network's link %s has %s and a background of %s; others have to leave "
                      "some of it to the job",
                      link->name, bandwidth, background);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

/* What is below a switch comes first. */
enum status network_relink(struct network *network)
{
    double *below = calloc(network->switch_count, sizeof(*below));
    if (below == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < network->host_count; i++) {
        below[network->hosts[i].above] += network->links[network->hosts[i].up].bandwidth;
    }
    for (uint32_t depth = NETWORK_DEPTH_MAX; depth >= 1; depth--) {
        for (uint32_t i = 0; i < network->switch_count; i++) {
            struct network_switch *own = &network->switches[i];
            if (own->above != NETWORK_NONE && depth_of(network, i) == depth) {
                derive_link(network, own, below[i], below);
            }
        }
    }
    free(below);
    return check_background(network);
}

static enum status link_switches(struct network *network)
{
    for (uint32_t depth = NETWORK_DEPTH_MAX; depth >= 1; depth--) {
        for (uint32_t i = 0; i < network->switch_count; i++) {
            struct network_switch *own = &network->switches[i];
            if (own->above != NETWORK_NONE && depth_of(network, i) == depth) {
                own->up = add_link(network, own->name, "up", 0);
                own->down = add_link(network, own->name, "down", 0);
                add_traffic(network, own->up, own->down, &own->traffic);
            }
        }
    }
    return network_relink(network);
}

/* Checks that all hosts reach each other, and that no switch is above itself. */
static enum status check_tree(const char *file, const struct network *network)
{
    uint32_t top = NETWORK_NONE;
    for (uint32_t i = 0; i < network->switch_count; i++) {
        uint32_t at = i;
        if (depth_of(network, i) > NETWORK_DEPTH_MAX) {
            log_error("%s: switch %s has more than %d switches above it, or is above itself", file,
                      network->switches[i].name, NETWORK_DEPTH_MAX - 1);
            return STATUS_INVALID;
        }
        while (network->switches[at].above != NETWORK_NONE) {
            at = network->switches[at].above;
        }
        if (top != NETWORK_NONE && at != top) {
            log_error("%s: the network is cut: no way leads from switch %s to switch %s; connect "
                      "them with \"to\"",
                      file, network->switches[top].name, network->switches[at].name);
            return STATUS_INVALID;
        }
        top = at;
    }
    return STATUS_OK;
}

static enum status build(const struct fields *fields, const json_t *switches, const json_t *hosts,
                         struct network *network)
{
    json_t *seen = json_object();
    enum status status = seen != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; i < json_array_size(switches) && status == STATUS_OK; i++) {
        status = read_switch(fields->file, json_array_get(switches, i), i, network);
    }
    for (size_t i = 0; i < json_array_size(switches) && status == STATUS_OK; i++) {
        status = connect_switch(fields->file, json_array_get(switches, i), i, network);
    }
    if (status == STATUS_OK) {
        status = check_tree(fields->file, network);
    }
    for (size_t i = 0; i < json_array_size(hosts) && status == STATUS_OK; i++) {
        status = add_hosts(fields->file, json_array_get(hosts, i), i, seen, network);
    }
    json_decref(seen);
    return status == STATUS_OK ? link_switches(network) : status;
}

static enum status read_errors(const char *file, json_t *object, struct network *network)
{
    static const char *const names[] = {"bandwidth", "latency", NULL};
    const struct fields fields = {file, "errors", object};
    enum status status = object != NULL ? fields_check_names(&fields, names) : STATUS_OK;
    if (object == NULL || status != STATUS_OK) {
        return status;
    }
    status = fields_number(&fields, "bandwidth", 0, 1, false, &network->bandwidth_error);
    return status == STATUS_OK
               ? fields_number(&fields, "latency", 0, 1, false, &network->latency_error)
               : status;
}

static enum status read_all(const struct fields *fields, struct network *network)
{
    static const char *const names[] = {"comment", "measured", "hosts",      "switches",
                                        "flow",    "errors",   "conditions", "send-buffer-kib",
                                        "paced",   NULL};
    const json_t *switches = NULL, *hosts = NULL;
    enum status status = fields_check_names(fields, names);
    if (status == STATUS_OK) {
        status = fields_check_notes(fields, "measured");
    }
    if (status == STATUS_OK) {
        status = conditions_read(fields, &network->conditions);
    }
    if (status == STATUS_OK) {
        status =
            fields_quantity(fields, "flow", QUANTITY_BANDWIDTH, false, &network->flow_bandwidth);
    }
    if (status == STATUS_OK) {
        status = fields_number(fields, "send-buffer-kib", 0, 1 << 24, false, &network->send_buffer);
        network->send_buffer *= 1024;
    }
    if (status == STATUS_OK) {
        status = network_pacing_read(fields, &network->pacing);
    }
    if (status == STATUS_OK) {
        status = read_errors(fields->file, json_object_get(fields->object, "errors"), network);
    }
    if (status == STATUS_OK) {
        status = fields_list(fields, "switches", true, &switches);
    }
    if (status == STATUS_OK) {
        status = fields_list(fields, "hosts", true, &hosts);
    }
    if (status == STATUS_OK && json_array_size(switches) > NETWORK_SWITCHES_MAX) {
        status = fields_refuse(fields, "switches", "has too many entries");
    }
    if (status != STATUS_OK) {
        return status;
    }
    network->is_measured = json_object_get(fields->object, "measured") != NULL;
    network->switches = calloc(json_array_size(switches), sizeof(*network->switches));
    network->hosts = calloc(NETWORK_HOSTS_MAX, sizeof(*network->hosts));
    network->links = calloc((size_t)3 * NETWORK_HOSTS_MAX + 2 * json_array_size(switches),
                            sizeof(*network->links));
    return network->switches != NULL && network->hosts != NULL && network->links != NULL
               ? build(fields, switches, hosts, network)
               : STATUS_NO_MEMORY;
}

enum status network_take(json_t *object, const char *name, struct network *ret_network)
{
    struct network network = {0};
    enum status status = read_all(&(struct fields){name, "", object}, &network);
    if (status != STATUS_OK) {
        network_finish(&network);
        return status;
    }
    *ret_network = network;
    return STATUS_OK;
}

enum status network_read(const char *file, struct network *ret_network)
{
    json_t *object = NULL;
    enum status status = fields_load(file, &object);
    if (status == STATUS_OK) {
        status = network_take(object, file, ret_network);
    }
    json_decref(object);
    return status;
}

void network_finish(struct network *network)
{
    free(network->hosts);
    free(network->switches);
    free(network->links);
}
