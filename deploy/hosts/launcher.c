/* Opens the launcher: reads its hosts, starts their agents, finds their addresses. */
#include "deploy/hosts/launcher.h"

#include "common/base/clock.h"
#include "common/base/folder_lock.h"
#include "common/base/log.h"
#include "deploy/system/programs.h"

#include <stdio.h>
#include <string.h>

#define ROUTE_MS 3000

/* The agents' answers to AGENT_ROUTE. */
struct routes {
    struct launcher *launcher;
    bool has_answered[HOSTS_MAX];
    char own[HOSTS_MAX][INTERFACE_ADDRESS_BYTES];
};

static void take_route(void *context, size_t host, const struct agent_message *message)
{
    struct routes *routes = context;
    if (message->kind == AGENT_ROUTED) {
        routes->has_answered[host] = true;
        snprintf(routes->own[host], sizeof(routes->own[host]), "%s", message->own);
    }
}

static bool is_waiting(const struct routes *routes)
{
    const struct crew *crew = &routes->launcher->crew;
    for (size_t i = 0; i < crew->count; i++) {
        if (crew->links[i].state == HOST_LINK_UP && !routes->has_answered[i]) {
            return true;
        }
    }
    return false;
}

/* Asks each host which of its addresses it would send from to reach this address. */
static void ask_routes(struct launcher *launcher, const char *address, struct routes *routes)
{
    struct crew *crew = &launcher->crew;
    uint64_t deadline_ms = clock_now_ms() + ROUTE_MS;
    *routes = (struct routes){.launcher = launcher};
    crew_listen(crew, take_route, routes);
    const struct agent_message message = {.kind = AGENT_ROUTE, .address = address};
    for (size_t i = 0; i < crew->count; i++) {
        crew_say(crew, i, &message);
    }
    while (is_waiting(routes) && crew->interrupts == 0 && clock_now_ms() < deadline_ms) {
        crew_step(crew, deadline_ms);
    }
    crew_listen(crew, NULL, NULL);
}

static bool is_one_network(const struct crew *crew)
{
    const char *first = NULL;
    for (size_t i = 0; i < crew->count; i++) {
        const struct host_link *link = &crew->links[i];
        if (link->state != HOST_LINK_UP) {
            continue;
        }
        first = first != NULL ? first : link->facts.host_id;
        if (strcmp(link->facts.host_id, first) != 0) {
            return false;
        }
    }
    return true;
}

static void set_address(struct launcher *launcher, size_t host, const char *address)
{
    snprintf(launcher->addresses[host], sizeof(launcher->addresses[host]), "%s", address);
}

/* Whether others can use this address of the host: the host has it, and it is not a loopback
 * address. */
static bool is_usable(const struct host_facts *facts, const char *address)
{
    return !address_is_loopback(address) && interfaces_with(&facts->interfaces, address) != NULL;
}

/* Finds the interface by the name or network that the user gave. */
static void choose_wanted(struct launcher *launcher, struct findings *findings)
{
    const char *wanted = launcher->host_options->network_interface;
    for (size_t i = 0; i < launcher->crew.count; i++) {
        const struct host_link *link = &launcher->crew.links[i];
        const struct interface *interface = interfaces_choose(&link->facts.interfaces, wanted);
        if (link->state != HOST_LINK_UP) {
            continue;
        }
        if (interface != NULL) {
            set_address(launcher, i, interface->address);
            continue;
        }
        char has[256];
        struct finding *finding = findings_add(findings, link->name);
        if (finding != NULL) {
            interfaces_describe(&link->facts.interfaces, has, sizeof(has));
            snprintf(finding->interface, sizeof(finding->interface), "%.60s", wanted);
            snprintf(finding->problem, sizeof(finding->problem), "it has no such interface");
            snprintf(finding->advice, sizeof(finding->advice),
                     "add one that it has to --network-interface: %s", has);
        }
    }
}

/* Finds a host that ssh reached at an address that others can use; crew.count if there is none. */
static size_t find_anchor(const struct launcher *launcher)
{
    const struct crew *crew = &launcher->crew;
    for (size_t i = 0; i < crew->count; i++) {
        const struct host_facts *facts = &crew->links[i].facts;
        if (crew->links[i].state == HOST_LINK_UP && is_usable(facts, facts->own)) {
            return i;
        }
    }
    return crew->count;
}

/* Finds the addresses by which hosts reach each other. For one host it is the address that ssh
 * reached. For each of the others it is the address from which its packets to that host leave.
 * Names are not looked up: on Debian a host's own name is 127.0.1.1. */
static void choose_routed(struct launcher *launcher, struct findings *findings)
{
    struct routes routes = {.launcher = launcher};
    const struct crew *crew = &launcher->crew;
    size_t anchor = find_anchor(launcher);
    if (anchor < crew->count) {
        ask_routes(launcher, crew->links[anchor].facts.own, &routes);
        snprintf(routes.own[anchor], sizeof(routes.own[anchor]), "%.15s",
                 crew->links[anchor].facts.own);
    }
    for (size_t i = 0; i < crew->count; i++) {
        const struct host_link *link = &crew->links[i];
        const struct interface *first = interfaces_first(&link->facts.interfaces);
        if (link->state != HOST_LINK_UP) {
            continue;
        }
        if (is_usable(&link->facts, routes.own[i])) {
            set_address(launcher, i, routes.own[i]);
        } else if (first != NULL) {
            set_address(launcher, i, first->address);
        } else {
            struct finding *finding = findings_add(findings, link->name);
            if (finding != NULL) {
                snprintf(finding->problem, sizeof(finding->problem),
                         "it has no IPv4 address except loopback");
                snprintf(finding->advice, sizeof(finding->advice),
                         "bring a network interface up there");
            }
        }
    }
}

static void choose_addresses(struct launcher *launcher, struct findings *findings)
{
    if (launcher->host_options->network_interface[0] != '\0') {
        choose_wanted(launcher, findings);
    } else if (is_one_network(&launcher->crew)) {
        for (size_t i = 0; i < launcher->crew.count; i++) {
            set_address(launcher, i, launcher->options->bind);
        }
    } else {
        choose_routed(launcher, findings);
    }
}

static void add_lost(const struct launcher *launcher, struct findings *findings)
{
    for (size_t i = 0; i < launcher->crew.count; i++) {
        const struct host_link *link = &launcher->crew.links[i];
        bool is_new = link->state == HOST_LINK_LOST && !findings_name(findings, link->name);
        struct finding *finding = is_new ? findings_add(findings, link->name) : NULL;
        if (finding != NULL) {
            snprintf(finding->problem, sizeof(finding->problem), "%s", link->why);
            snprintf(finding->advice, sizeof(finding->advice), "%s", link->advice);
        }
    }
}

/* Whether this host has the ssh that reaches others. If not, they would seem to lack something. */
static enum status check_ssh(const struct host_options *options)
{
    char program[sizeof(options->ssh)];
    const char *begin = options->ssh + strspn(options->ssh, " \t");
    snprintf(program, sizeof(program), "%.*s", (int)strcspn(begin, " \t"), begin);
    if (program[0] == '\0' || programs_have(program)) {
        return STATUS_OK; // ssh_command_make refuses an empty command
    }
    log_error("there is no program %.200s%s, and other hosts are reached by it: install it "
              "(package openssh-client), or name another command with --ssh",
              program, strchr(program, '/') == NULL ? " in the folders of PATH" : "");
    return STATUS_INVALID;
}

/* Whether the options suit the hosts, before any of these hears of the job. */
static enum status check_options(const struct launcher *launcher,
                                 const struct allocation *allocation)
{
    const struct launcher_options *options = launcher->options;
    const char *coordinator = launcher->hosts.list[launcher->coordinator].name;
    if (launcher->has_others && strcmp(options->bind, "127.0.0.1") != 0) {
        log_error("--bind is for jobs on this host alone; with other hosts, --network-interface "
                  "chooses the address of each");
        return STATUS_INVALID;
    }
    bool is_here = host_link_is_here(coordinator, allocation);
    if (options->resume[0] != '\0' && !is_here) {
        log_error(
            "--resume %s needs the coordinator on this host, which has the checkpoints, and it "
            "is on %s: have the coordinator here, with --coordinator localhost",
            options->resume, coordinator);
        return STATUS_INVALID;
    }
    if (launcher_mirror_is_memory(options->mirror) && !is_here) {
        log_error("--mirror memory needs the coordinator on this host, and it is on %s: name a "
                  "folder there, such as --mirror /dev/shm/NAME, or have the coordinator here, "
                  "with --coordinator localhost",
                  coordinator);
        return STATUS_INVALID;
    }
    return launcher->has_others && allocation == NULL ? check_ssh(launcher->host_options)
                                                      : STATUS_OK;
}

enum status launcher_open(struct launcher *launcher, const struct launcher_options *options,
                          const struct host_options *host_options, struct findings *findings)
{
    *launcher = (struct launcher){.options = options, .host_options = host_options};
    findings->count = findings->left_out = 0;
    enum status status = host_options_read(host_options, &launcher->hosts, &launcher->coordinator,
                                           &launcher->allocation);
    if (status != STATUS_OK) {
        return status;
    }
    const struct allocation *allocation =
        launcher->allocation.job[0] != '\0' ? &launcher->allocation : NULL;
    for (size_t i = 0; i < launcher->hosts.count; i++) {
        launcher->has_others =
            launcher->has_others || !host_link_is_here(launcher->hosts.list[i].name, allocation);
    }
    status = check_options(launcher, allocation);
    if (status != STATUS_OK) {
        return status;
    }
    if (options->out[0] != '\0') {
        folder_lock_path(options->out, launcher->lock, sizeof(launcher->lock));
    }
    launcher->link_options = (struct host_link_options){
        .lock = launcher->lock,
        .ssh = host_options->ssh,
        .allocation = allocation,
        .place = host_options->remote_ringside,
        .timeout = host_options->link_timeout,
    };
    if (launcher->has_others && host_options->ship) {
        status = ship_programs(&launcher->hosts, host_options->ssh, launcher->shipped, findings);
        if (status != STATUS_OK) {
            return status;
        }
        launcher->link_options.place = launcher->shipped;
    }
    status = crew_open(&launcher->crew, &launcher->hosts, &launcher->link_options);
    if (status != STATUS_OK) {
        return status;
    }
    add_lost(launcher, findings);
    choose_addresses(launcher, findings);
    return findings->count == 0 ? STATUS_OK : STATUS_UNREACHABLE;
}

void launcher_close(struct launcher *launcher)
{
    crew_close(&launcher->crew);
}

enum status launcher_recover(struct launcher *launcher)
{
    crew_step(&launcher->crew, 0); // takes what happened since the last step
    enum status status = crew_reopen(&launcher->crew);
    for (size_t i = 0; status == STATUS_OK && i < launcher->crew.count; i++) {
        const struct host_link *link = &launcher->crew.links[i];
        if (link->state == HOST_LINK_LOST) {
            log_error("%s is not available: %s; %s", link->name, link->why, link->advice);
            status = STATUS_UNREACHABLE;
        }
    }
    return status;
}

enum status launcher_recover_some(struct launcher *launcher)
{
    size_t there = 0;
    crew_step(&launcher->crew, 0); // takes what happened since the last step
    enum status status = crew_reopen(&launcher->crew);
    for (size_t i = 0; status == STATUS_OK && i < launcher->crew.count; i++) {
        const struct host_link *link = &launcher->crew.links[i];
        bool is_away = link->state == HOST_LINK_LOST;
        if (is_away) {
            log_warn("%s is not available: %s; the job goes on without it", link->name, link->why);
        }
        launcher->hosts.list[i].is_away = is_away;
        there += !is_away;
    }
    return status == STATUS_OK && there == 0 ? STATUS_UNREACHABLE : status;
}

void launcher_describe_address(const struct launcher *launcher, size_t host, char *ret_text,
                               size_t text_size)
{
    const char *address = launcher->addresses[host];
    const struct interface *interface =
        interfaces_with(&launcher->crew.links[host].facts.interfaces, address);
    snprintf(ret_text, text_size, "%s%s%s", interface != NULL ? interface->name : "",
             interface != NULL ? " " : "", address);
}
