/* Asks the agents of a job's hosts about clocks, data, devices, programs and connections. */
#include "deploy/preflight/host_check.h"

#include "common/base/clock.h"
#include "common/base/signals.h"
#include "common/job/job_text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOCK_APART_US 1000000
#define ANSWER_MS      2500 // for what an agent answers at once
#define CONNECT_MS     2500 // for a connection to be made

enum progress { NOT_ASKED, ASKED, ANSWERED, SILENT };

/* A round of questions to the agents. */
struct check {
    struct launcher *launcher;
    struct findings *findings;
    struct memory_found *memory; // (HOSTS_MAX)
    const struct job *job;
    const struct placement *placement;
    const char *const *program; // of the user's own; NULL: none
    uint32_t first_id;          // of the probes, by host
    enum progress probes[HOSTS_MAX], listens[HOSTS_MAX];
    uint32_t ports[HOSTS_MAX];                    // that a host listens on
    char said[HOSTS_MAX][512];                    // the last line of a probe's standard error
    enum progress connects[HOSTS_MAX][HOSTS_MAX]; // from, to
};

static const struct host_link *link_of(const struct check *check, size_t host)
{
    return &check->launcher->crew.links[host];
}

static size_t host_count(const struct check *check)
{
    return check->launcher->crew.count;
}

static bool takes_part(const struct check *check, size_t host)
{
    return link_of(check, host)->state == HOST_LINK_UP &&
           check->launcher->addresses[host][0] != '\0' && placement_uses(check->placement, host);
}

/* Adds a finding with the host's address and the ports that a job would use. */
static struct finding *add_finding(const struct check *check, size_t host, uint32_t port)
{
    const struct launcher *launcher = check->launcher;
    const char *range = launcher->host_options->port_range;
    struct finding *finding = findings_add(check->findings, link_of(check, host)->name);
    if (finding == NULL) {
        return NULL;
    }
    launcher_describe_address(launcher, host, finding->interface, sizeof(finding->interface));
    if (range[0] != '\0') {
        snprintf(finding->port, sizeof(finding->port), "%s", range);
    } else if (port != 0) {
        snprintf(finding->port, sizeof(finding->port), "%u", port);
    }
    return finding;
}

static void add_unreached(const struct check *check, size_t from, size_t to, const char *text)
{
    const char *range = check->launcher->host_options->port_range;
    struct finding *finding = add_finding(check, to, check->ports[to]);
    if (finding == NULL) {
        return;
    }
    snprintf(finding->with, sizeof(finding->with), "%.63s", link_of(check, from)->name);
    snprintf(finding->problem, sizeof(finding->problem), "%s cannot connect to it: %.300s",
             link_of(check, from)->name, text);
    snprintf(finding->advice, sizeof(finding->advice),
             range[0] != '\0'
                 ? "open these ports in its firewall, or choose another --network-interface"
                 : "name the ports that its firewall leaves open with --port-range, or choose "
                   "another --network-interface");
}

static void add_not_listening(const struct check *check, size_t host, const char *text,
                              const char *advice)
{
    struct finding *finding = add_finding(check, host, 0);
    if (finding != NULL) {
        snprintf(finding->problem, sizeof(finding->problem), "it cannot listen: %.300s", text);
        snprintf(finding->advice, sizeof(finding->advice), "%s", advice);
    }
}

static void take_listening(struct check *check, size_t host, const struct agent_message *message)
{
    check->listens[host] = ANSWERED;
    check->ports[host] = message->port;
    if (message->port == 0) {
        add_not_listening(check, host, message->text, "choose other ports with --port-range");
    }
}

static void take_connected(struct check *check, size_t from, const struct agent_message *message)
{
    size_t to = message->id;
    if (to >= host_count(check) || check->connects[from][to] != ASKED) {
        return;
    }
    check->connects[from][to] = ANSWERED;
    check->launcher->reaches[from][to] = message->text[0] == '\0';
    if (message->text[0] != '\0') {
        add_unreached(check, from, to, message->text);
    }
}

static void add_no_program(struct check *check, struct finding *finding)
{
    const char *name = check->program[0];
    bool is_path = strchr(name, '/') != NULL;
    snprintf(finding->problem, sizeof(finding->problem), "there is no program %.300s%s", name,
             is_path ? "" : " in the folders of its PATH");
    snprintf(finding->advice, sizeof(finding->advice), "%s",
             is_path ? "it must lie at the same path on every host with workers"
                     : "install it there, or name it by a path that all hosts have");
}

static void take_probe_end(struct check *check, size_t host, const struct agent_message *message)
{
    check->probes[host] = ANSWERED;
    if (message->status == 0) {
        return;
    }
    bool is_misuse = check->program == NULL && message->status == EXIT_USAGE;
    check->findings->has_misuse = check->findings->has_misuse || is_misuse;
    struct finding *finding = findings_add(check->findings, link_of(check, host)->name);
    if (finding == NULL) {
        return;
    }
    if (check->program != NULL) {
        add_no_program(check, finding);
        return;
    }
    // "TIME error worker host=NAME: sentence": the sentence.
    const char *sentence = strstr(check->said[host], ": ");
    snprintf(finding->problem, sizeof(finding->problem), "%.500s",
             sentence != NULL ? sentence + 2 : "the job's data, model and device cannot be opened");
    char name[JOB_NAME_BYTES];
    const char *path;
    job_split_data(check->job->data, name, &path);
    if (strstr(finding->problem, path) != NULL && path[0] != '\0') {
        snprintf(finding->advice, sizeof(finding->advice),
                 "the data must lie at the same path on every host with workers");
    }
}

static void take(void *context, size_t host, const struct agent_message *message)
{
    struct check *check = context;
    bool is_probe = message->id == check->first_id + (uint32_t)host;
    if (message->kind == AGENT_LISTENING && check->listens[host] == ASKED) {
        take_listening(check, host, message);
    } else if (message->kind == AGENT_CONNECTED) {
        take_connected(check, host, message);
    } else if (message->kind == AGENT_OUTPUT && is_probe && strcmp(message->stream, "error") == 0) {
        snprintf(check->said[host], sizeof(check->said[host]), "%s", message->text);
    } else if (message->kind == AGENT_OUTPUT && is_probe && check->program == NULL) {
        memory_said_take(message->text, &check->memory[host]);
    } else if (message->kind == AGENT_EXITED && is_probe && check->probes[host] == ASKED) {
        take_probe_end(check, host, message);
    }
}

/* Waits while `is_waiting` is true of a host that is up. */
static void await(struct check *check, bool (*is_waiting)(const struct check *check, size_t host),
                  uint64_t deadline_ms)
{
    struct crew *crew = &check->launcher->crew;
    bool has_more = true;
    while (has_more && crew->interrupts == 0 && clock_now_ms() < deadline_ms) {
        has_more = false;
        for (size_t i = 0; i < crew->count; i++) {
            has_more = has_more || (crew->links[i].state == HOST_LINK_UP && is_waiting(check, i));
        }
        if (has_more) {
            crew_step(crew, deadline_ms);
        }
    }
}

static bool awaits_clock(const struct check *check, size_t host)
{
    return !link_of(check, host)->has_clock;
}

static bool awaits_listening(const struct check *check, size_t host)
{
    return check->listens[host] == ASKED;
}

static bool awaits_connected(const struct check *check, size_t host)
{
    for (size_t to = 0; to < host_count(check); to++) {
        if (check->connects[host][to] == ASKED) {
            return true;
        }
    }
    return false;
}

static bool awaits_probe(const struct check *check, size_t host)
{
    return check->probes[host] == ASKED;
}

/* A shell finds a program as `env` will, when the job starts. */
static const char find_program[] = "command -v -- \"$1\" >/dev/null";

static void start_probes(struct check *check)
{
    char text[JOB_TEXT_BYTES], directory[4096];
    if (job_encode(check->job, text, sizeof(text)) != STATUS_OK) {
        return;
    }
    for (size_t i = 0; i < host_count(check); i++) {
        const struct host_link *link = link_of(check, i);
        if (link->state != HOST_LINK_UP || check->placement->local_size[i] == 0 ||
            findings_name(check->findings, link->name)) {
            continue;
        }
        struct agent_message message = {
            .kind = AGENT_START,
            .id = check->first_id + (uint32_t)i,
            .argv = {link->facts.programs.worker, "--probe"},
            .input = text,
            .directory = link->is_local ? NULL : getcwd(directory, sizeof(directory)),
        };
        if (check->program != NULL) {
            const char *const argv[] = {"/bin/sh", "-c", find_program, "sh", check->program[0]};
            memcpy(message.argv, argv, sizeof(argv));
        }
        crew_say(&check->launcher->crew, i, &message);
        check->probes[i] = ASKED;
    }
}

static bool talk(const struct check *check, size_t a, size_t b)
{
    return takes_part(check, a) && takes_part(check, b) &&
           (placement_connects(check->placement, check->job, a, b) ||
            placement_connects(check->placement, check->job, b, a));
}

/* Asks a host to listen if another one has to reach it and has not been seen to. */
static void ask_to_listen(struct check *check)
{
    struct launcher *launcher = check->launcher;
    const char *range = launcher->host_options->port_range;
    for (size_t to = 0; to < host_count(check); to++) {
        bool is_needed = false;
        for (size_t from = 0; from < host_count(check); from++) {
            is_needed = is_needed || (talk(check, from, to) && !launcher->reaches[from][to]);
        }
        if (is_needed) {
            const struct agent_message message = {.kind = AGENT_LISTEN,
                                                  .address = launcher->addresses[to],
                                                  .ports = range[0] != '\0' ? range : "*"};
            crew_say(&launcher->crew, to, &message);
            check->listens[to] = ASKED;
        }
    }
}

/* Ignores answers from here on: no host would connect any more. */
static void give_up_listening(struct check *check)
{
    for (size_t i = 0; i < host_count(check); i++) {
        if (check->listens[i] == ASKED) {
            check->listens[i] = SILENT;
        }
    }
}

static void ask_to_connect(struct check *check)
{
    struct launcher *launcher = check->launcher;
    for (size_t from = 0; from < host_count(check); from++) {
        for (size_t to = 0; to < host_count(check); to++) {
            if (check->ports[to] == 0 || !talk(check, from, to) || launcher->reaches[from][to]) {
                continue;
            }
            const struct agent_message message = {.kind = AGENT_CONNECT,
                                                  .id = (uint32_t)to,
                                                  .address = launcher->addresses[to],
                                                  .port = check->ports[to],
                                                  .timeout_ms = CONNECT_MS};
            crew_say(&launcher->crew, from, &message);
            check->connects[from][to] = ASKED;
        }
    }
}

static void stop_listening(struct check *check)
{
    const struct agent_message message = {.kind = AGENT_CLOSE};
    for (size_t i = 0; i < host_count(check); i++) {
        if (check->listens[i] != NOT_ASKED) {
            crew_say(&check->launcher->crew, i, &message);
        }
    }
}

/* Adds the questions that were not answered in time. */
static void add_silent(struct check *check)
{
    for (size_t i = 0; i < host_count(check); i++) {
        if (link_of(check, i)->state != HOST_LINK_UP) {
            continue;
        }
        if (check->listens[i] == SILENT) {
            add_not_listening(check, i, "its agent does not answer",
                              "is the host, or the link to it, overloaded?");
        }
        for (size_t to = 0; to < host_count(check); to++) {
            if (check->connects[i][to] == ASKED) {
                add_unreached(check, i, to, "its agent does not answer");
            }
        }
        if (check->probes[i] == ASKED) {
            const struct agent_message end = {
                .kind = AGENT_SIGNAL, .id = check->first_id + (uint32_t)i, .signal = SIGKILL};
            crew_say(&check->launcher->crew, i, &end);
            struct finding *finding = findings_add(check->findings, link_of(check, i)->name);
            if (finding != NULL) {
                snprintf(finding->problem, sizeof(finding->problem), "the job's %s within %g s",
                         check->program != NULL ? "program was not found"
                                                : "data, model and device could not be opened",
                         check->job->start_timeout);
                snprintf(finding->advice, sizeof(finding->advice),
                         "give it more time with --start-timeout");
            }
        }
    }
}

static void check_clocks(struct check *check)
{
    await(check, awaits_clock, clock_now_ms() + ANSWER_MS);
    for (size_t i = 0; i < host_count(check); i++) {
        const struct host_link *link = link_of(check, i);
        int64_t apart_us = llabs(link->clock_ahead_us) - (int64_t)(link->round_us / 2);
        if (link->state != HOST_LINK_UP || !link->has_clock || apart_us <= CLOCK_APART_US) {
            continue;
        }
        struct finding *finding = findings_add(check->findings, link->name);
        if (finding != NULL) {
            snprintf(finding->problem, sizeof(finding->problem),
                     "its clock is %.1f s %s that of this host", (double)apart_us / 1e6,
                     link->clock_ahead_us > 0 ? "ahead of" : "behind");
            snprintf(finding->advice, sizeof(finding->advice),
                     "set its clock (chrony, ntp), because logs and timelines of all hosts are "
                     "compared");
        }
    }
}

/* Adds the hosts that were lost during the check. */
static void add_lost(struct check *check, const bool *was_up)
{
    for (size_t i = 0; i < host_count(check); i++) {
        const struct host_link *link = link_of(check, i);
        struct finding *finding = was_up[i] && link->state == HOST_LINK_LOST
                                      ? findings_add(check->findings, link->name)
                                      : NULL;
        if (finding != NULL) {
            snprintf(finding->problem, sizeof(finding->problem), "%s", link->why);
            snprintf(finding->advice, sizeof(finding->advice), "%s", link->advice);
        }
    }
}

static void run(struct check *check, bool probes)
{
    struct launcher *launcher = check->launcher;
    bool was_up[HOSTS_MAX] = {false};
    for (size_t i = 0; i < host_count(check); i++) {
        was_up[i] = link_of(check, i)->state == HOST_LINK_UP;
    }
    uint64_t began_ms = clock_now_ms();
    crew_listen(&launcher->crew, take, check);
    if (probes) {
        start_probes(check);
    }
    ask_to_listen(check);
    check_clocks(check);
    await(check, awaits_listening, began_ms + ANSWER_MS);
    give_up_listening(check);
    ask_to_connect(check);
    await(check, awaits_connected, clock_now_ms() + CONNECT_MS + ANSWER_MS / 4);
    await(check, awaits_probe, began_ms + (uint64_t)(1000 * check->job->start_timeout));
    stop_listening(check);
    if (launcher->crew.interrupts == 0) {
        add_silent(check);
        add_lost(check, was_up);
    }
    crew_listen(&launcher->crew, NULL, NULL);
}

enum status host_check_run(struct launcher *launcher, const struct host_check_wish *wish,
                           struct findings *findings, struct memory_found *ret_memory)
{
    struct check *check = calloc(1, sizeof(*check));
    if (check == NULL) {
        return STATUS_NO_MEMORY;
    }
    check->launcher = launcher;
    check->findings = findings;
    check->memory = ret_memory;
    check->job = wish->job;
    check->placement = wish->placement;
    check->program = wish->program;
    check->first_id = crew_take_ids(&launcher->crew, launcher->crew.count);
    run(check, wish->probes);
    free(check);
    return STATUS_OK;
}
