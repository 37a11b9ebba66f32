/* Starts the coordinator, the other servers and the workers of a job, each on its host. */
#include "deploy/launch/launch_start.h"

#include "common/base/log.h"
#include "deploy/launch/fetch.h"
#include "deploy/launch/launch_timeline.h"
#include "deploy/launch/member_command.h"
#include "deploy/launch/own_program.h"
#include "deploy/system/command_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct host_facts *facts_of(const struct launch *launch, size_t host)
{
    return &launch->launcher->crew.links[host].facts;
}

bool launch_is_remote(const struct launch *launch, size_t host)
{
    return !launch->launcher->crew.links[host].is_local;
}

/* If there are too few cores, teams of threads that spin while they wait take cores from the
 * others. */
static const char *const *environment_of(const struct launch *launch, size_t host)
{
    static const char *const passive[] = {"OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT=0", NULL};
    static const char *const none[] = {NULL};
    const struct job *job = &launch->job;
    uint64_t threads =
        (uint64_t)(job->threads > 0 ? job->threads : 1) * launch->placement.local_size[host];
    return threads > facts_of(launch, host)->cores ? passive : none;
}

static enum status start(struct launch *launch, size_t index, size_t host, const char *const *argv,
                         const char *const *environment)
{
    char name[MEMBER_NAME_BYTES], log[MEMBER_LOG_BYTES];
    size_t servers = launch->placement.server_count;
    const char *role = index < servers ? "ps" : "worker";
    size_t number = index < servers ? index : index - servers;
    snprintf(name, sizeof(name), "%s %zu", index > 0 && index < servers ? "server" : role, number);
    snprintf(log, sizeof(log), "%.4000s/logs/%s-%zu.log", launch->options->folder, role, number);
    const struct member_start member = {
        .name = name,
        .log = log,
        .host = host,
        .argv = argv,
        .environment = environment,
        .endpoint = index > 0 ? launch->endpoint : NULL,
        .input = launch->handover.text,
        .announces = index == 0,
        // A coordinator that is started again listens where it did before.
        .listens = index == 0 && launch->is_private,
        .is_told = index == 0,
        .has_terminal = index == 0,
    };
    enum status status = members_start(&launch->members, index, &member);
    if (status != STATUS_OK) {
        snprintf(launch->cause, sizeof(launch->cause), "%s could not be started on %s", name,
                 launch->launcher->crew.links[host].name);
        launch->culprit = &launch->members.list[index];
    }
    return status;
}

/* Begins a command with what all members have: where they may listen, and whether they have
 * keys. */
static enum status begin_command(struct launch *launch, size_t host, const char *program,
                                 struct member_command *ret_command)
{
    enum status status = launch_timeline_choose(launch, host);
    if (status != STATUS_OK) {
        return status;
    }
    status = member_command_create(program, ret_command);
    if (status != STATUS_OK) {
        return status;
    }
    if (!launch->is_private) {
        member_command_add_option(ret_command, "--bind", launch->launcher->addresses[host]);
        member_command_add_option(ret_command, "--port-range",
                                  launch->launcher->host_options->port_range);
    }
    member_command_add_option(ret_command, "--log-level", launch->options->log_level);
    if (launch->timelines != NULL) {
        member_command_add_option(ret_command, "--timeline-dir", launch->timelines[host]);
    }
    for (const char *const *at = launch->handover.arguments; *at != NULL; at++) {
        member_command_add(ret_command, *at);
    }
    return STATUS_OK;
}

static bool is_resumed(const struct launch_options *options)
{
    return options->resume != NULL && options->resume[0] != '\0';
}

/* Chooses the folder that the coordinator writes: the user's, or one that the agent on its host
 * makes. */
static enum status choose_folder(struct launch *launch, size_t host)
{
    if (launch->folder[0] != '\0') {
        return STATUS_OK; // of the attempt before: it has the checkpoints
    }
    snprintf(launch->folder, sizeof(launch->folder), "%s", launch->options->folder);
    return launch_is_remote(launch, host)
               ? fetch_make_folder(&launch->launcher->crew, host, launch->folder,
                                   sizeof(launch->folder))
               : STATUS_OK;
}

/* The port that the user asks for, or the one that the coordinator had before. */
static uint32_t port_of(const struct launch *launch)
{
    const char *colon = strrchr(launch->endpoint, ':');
    return launch->returns > 0 && colon != NULL ? (uint32_t)strtoul(colon + 1, NULL, 10)
                                                : launch->options->port;
}

enum status launch_start_coordinator(struct launch *launch)
{
    const struct launch_options *options = launch->options;
    size_t host = launch->placement.host_of_server[0];
    struct member_command command;
    enum status status = choose_folder(launch, host);
    if (status != STATUS_OK) {
        return status;
    }
    status = begin_command(launch, host, facts_of(launch, host)->programs.ps, &command);
    if (status != STATUS_OK) {
        return status;
    }
    if (!launch->is_private) {
        member_command_add_number(&command, "--port", port_of(launch));
    }
    if (options->dashboard != NULL && options->dashboard[0] != '\0') {
        member_command_add_option(&command, "--dashboard", options->dashboard);
    }
    if (options->has_tensorboard) {
        member_command_add(&command, "--tensorboard");
    }
    if (options->health_port != 0) {
        member_command_add_number(&command, "--health-port", options->health_port);
    }
    member_command_add_option(&command, "--out", launch->folder);
    member_command_add_option(&command, "--progress",
                              !options->shows_progress ? "none"
                              : options->shows_ranks   ? "ranks"
                                                       : "auto");
    if (is_resumed(options)) {
        member_command_add_option(&command, "--resume", options->resume);
    }
    if (launch->mirror.folder[0] != '\0') {
        member_command_add_option(&command, "--mirror", launch->mirror.folder);
        member_command_add_option(&command, "--run-number", launch->mirror.run);
    }
    if (launch->attempts > 0 || launch->returns > 0) {
        member_command_add_option(&command, "--restarted", launch->restart_reason);
        member_command_add_option(&command, "--given-fault", options->job->faults);
    }
    char program[JOB_PROGRAM_BYTES];
    if (options->program != NULL &&
        command_text_write_line(options->program, program, sizeof(program))) {
        member_command_add_option(&command, "--program", program);
    } else if (options->program != NULL) {
        log_warn("the program and its arguments have more than %d bytes: job.json keeps none of "
                 "them, and no report has the command that repeats this run",
                 JOB_PROGRAM_BYTES - 1);
    }
    member_command_add_job(&command, &launch->job);
    status = start(launch, 0, host, command.argv, environment_of(launch, host));
    member_command_destroy(&command);
    return status;
}

enum status launch_start_server(struct launch *launch, uint32_t index)
{
    size_t host = launch->placement.host_of_server[index];
    struct member_command command;
    enum status status = begin_command(launch, host, facts_of(launch, host)->programs.ps, &command);
    if (status != STATUS_OK) {
        return status;
    }
    member_command_add_option(&command, "--server", launch->endpoint);
    member_command_add_seconds(&command, "--stall-warn", launch->job.stall_warn);
    member_command_add_number(&command, "--shard-index", index);
    status = start(launch, index, host, command.argv, environment_of(launch, host));
    member_command_destroy(&command);
    return status;
}

/* `env` finds the program in the folders of PATH, on whatever host. */
static enum status start_own_program(struct launch *launch, uint32_t rank)
{
    const struct placement *placement = &launch->placement;
    struct own_program_environment *environment = malloc(sizeof(*environment));
    struct member_command command;
    if (environment == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = launch_timeline_choose(launch, placement->host_of_worker[rank]);
    if (status == STATUS_OK) {
        status = member_command_create("/usr/bin/env", &command);
    }
    if (status == STATUS_OK) {
        member_command_add(&command, "--");
        for (const char *const *at = launch->options->program; *at != NULL; at++) {
            member_command_add(&command, *at);
        }
        own_program_describe(launch, rank, environment);
        status = start(launch, placement->server_count + rank, placement->host_of_worker[rank],
                       command.argv, environment->list);
        member_command_destroy(&command);
    }
    free(environment);
    return status;
}

enum status launch_start_worker(struct launch *launch, uint32_t rank)
{
    const struct placement *placement = &launch->placement;
    size_t host = placement->host_of_worker[rank];
    struct member_command command;
    if (launch->options->program != NULL) {
        return start_own_program(launch, rank);
    }
    enum status status =
        begin_command(launch, host, facts_of(launch, host)->programs.worker, &command);
    if (status != STATUS_OK) {
        return status;
    }
    member_command_add_option(&command, "--server", launch->endpoint);
    member_command_add_seconds(&command, "--stall-warn", launch->job.stall_warn);
    member_command_add_number(&command, "--rank", rank);
    member_command_add_number(&command, "--local-rank", placement->local_rank[rank]);
    member_command_add_number(&command, "--local-size", placement->local_size[host]);
    status = start(launch, placement->server_count + rank, host, command.argv,
                   environment_of(launch, host));
    member_command_destroy(&command);
    return status;
}
