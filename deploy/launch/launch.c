/* Runs one job: starts its processes through the agents of its hosts, watches and ends them. */
#include "deploy/launch/launch.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/job_options.h"
#include "common/transport/transport.h"
#include "deploy/hosts/host_limits.h"
#include "deploy/hosts/placement.h"
#include "deploy/launch/fetch.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/last_summary.h"
#include "deploy/launch/log_tail.h"
#include "deploy/launch/member_command.h"
#include "deploy/launch/members.h"
#include "deploy/system/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// After the first Ctrl-C the job has this long to end cleanly.
#define STOP_MS 4000

// Once the verdict is known, members have this long to end by themselves.
#define CLOSE_MS 1500

// What is killed is gone within this, or its host is.
#define KILL_MS 3000

/* A running job. Member 0 is the coordinator, then come the other servers, then the workers. */
struct launch {
    struct launcher *launcher;
    const struct launch_options *options;
    struct placement placement;
    struct members members;
    struct handover handover;     // of keys
    char folder[LAUNCH_PATH_MAX]; // that the coordinator writes, on its host
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t deadline_ms; // when whatever still runs is killed; 0: not set
    unsigned interrupts;  // that have been taken

    // Why the job ends, as the coordinator was told. "": not known here.
    char cause[OPTION_ERROR_BYTES];
    bool is_certain; // no later event can be a better reason
};

void launch_block_signals(void)
{
    sigset_t set;
    process_ending_signals(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static const struct host_facts *facts_of(const struct launch *launch, size_t host)
{
    return &launch->launcher->crew.links[host].facts;
}

static bool is_remote(const struct launch *launch, size_t host)
{
    return !launch->launcher->crew.links[host].is_local;
}

/* Threads that wait in spinning teams cost the others their cores when there are too few. */
static const char *const *environment_of(const struct launch *launch, size_t host)
{
    static const char *const passive[] = {"OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT=0", NULL};
    static const char *const none[] = {NULL};
    const struct job *job = launch->options->job;
    uint64_t threads =
        (uint64_t)(job->threads > 0 ? job->threads : 1) * launch->placement.local_size[host];
    return threads > facts_of(launch, host)->cores ? passive : none;
}

static enum status start(struct launch *launch, size_t index, size_t host, const char *const *argv)
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
        .environment = environment_of(launch, host),
        .input = launch->handover.text,
        .announces = index == 0,
        .is_told = index == 0,
        .has_terminal = index == 0,
    };
    enum status status = members_start(&launch->members, index, &member);
    if (status != STATUS_OK) {
        snprintf(launch->cause, sizeof(launch->cause), "%s could not be started on %s", name,
                 launch->launcher->crew.links[host].name);
    }
    return status;
}

/* What the commands of all members have: where they may listen, and whether they have keys. */
static enum status begin_command(const struct launch *launch, size_t host, const char *program,
                                 struct member_command *ret_command)
{
    enum status status = member_command_create(program, ret_command);
    if (status != STATUS_OK) {
        return status;
    }
    member_command_add_option(ret_command, "--bind", launch->launcher->addresses[host]);
    member_command_add_option(ret_command, "--port-range",
                              launch->launcher->host_options->port_range);
    member_command_add_option(ret_command, "--log-level", launch->options->log_level);
    for (const char *const *at = launch->handover.arguments; *at != NULL; at++) {
        member_command_add(ret_command, *at);
    }
    return STATUS_OK;
}

/* The folder that the coordinator writes: the user's, or one of the agent where it runs. */
static enum status choose_folder(struct launch *launch, size_t host)
{
    snprintf(launch->folder, sizeof(launch->folder), "%s", launch->options->folder);
    return is_remote(launch, host) ? fetch_make_folder(&launch->launcher->crew, host,
                                                       launch->folder, sizeof(launch->folder))
                                   : STATUS_OK;
}

static enum status start_coordinator(struct launch *launch)
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
    member_command_add_number(&command, "--port", options->port);
    member_command_add_option(&command, "--out", launch->folder);
    member_command_add_option(&command, "--progress", options->shows_progress ? "auto" : "none");
    member_command_add_job(&command, options->job);
    status = start(launch, 0, host, command.argv);
    member_command_destroy(&command);
    return status;
}

/* Tells the coordinator why the job has to end: see ps-server/coordinator/launcher_news.h. */
static void tell(struct launch *launch, const char *kind, const char *cause)
{
    char line[OPTION_ERROR_BYTES + 64];
    snprintf(launch->cause, sizeof(launch->cause), "%s", cause);
    snprintf(line, sizeof(line), "%s %s", kind, launch->cause);
    members_tell(&launch->members, 0, line);
}

static void tell_interrupt(struct launch *launch)
{
    int number = launch->launcher->crew.last_signal;
    tell(launch, "interrupted",
         number == SIGINT   ? "interrupted by SIGINT (Ctrl-C)"
         : number == SIGHUP ? "interrupted by SIGHUP: the terminal of ringside was closed"
                            : "interrupted by SIGTERM");
    launch->is_certain = true;
}

/* Takes the interrupts that have come. */
static void take_interrupts(struct launch *launch)
{
    for (; launch->interrupts < launch->launcher->crew.interrupts; launch->interrupts++) {
        if (launch->interrupts > 0) {
            launch->deadline_ms = clock_now_ms(); // asked twice: at once
        } else {
            launch->deadline_ms = clock_now_ms() + STOP_MS;
            tell_interrupt(launch);
        }
    }
}

static void handle(void *context, size_t host, const struct agent_message *message)
{
    struct launch *launch = context;
    members_take(&launch->members, host, message, launch->endpoint, sizeof(launch->endpoint));
}

/* Waits for something to happen, and takes it. */
static void step(struct launch *launch, uint64_t deadline_ms)
{
    crew_step(&launch->launcher->crew, deadline_ms);
    members_take_losses(&launch->members);
    take_interrupts(launch);
}

/* Waits for the line that the coordinator announces; it may end instead. */
static enum status await_endpoint(struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    uint64_t deadline_ms = clock_now_ms() + (uint64_t)(1000 * launch->options->job->start_timeout);
    while (launch->endpoint[0] == '\0') {
        if (launch->interrupts > 0) {
            return STATUS_INTERRUPTED;
        }
        if (coordinator->is_over) {
            return STATUS_UNREACHABLE; // it has said why in its log
        }
        if (clock_now_ms() >= deadline_ms) {
            snprintf(launch->cause, sizeof(launch->cause),
                     "the coordinator did not say within %g s where it listens (--start-timeout)",
                     launch->options->job->start_timeout);
            return STATUS_TIMED_OUT;
        }
        step(launch, deadline_ms);
    }
    return STATUS_OK;
}

static enum status start_server(struct launch *launch, uint32_t index)
{
    size_t host = launch->placement.host_of_server[index];
    struct member_command command;
    enum status status = begin_command(launch, host, facts_of(launch, host)->programs.ps, &command);
    if (status != STATUS_OK) {
        return status;
    }
    member_command_add_option(&command, "--server", launch->endpoint);
    member_command_add_number(&command, "--shard-index", index);
    status = start(launch, index, host, command.argv);
    member_command_destroy(&command);
    return status;
}

static enum status start_worker(struct launch *launch, uint32_t rank)
{
    const struct placement *placement = &launch->placement;
    size_t host = placement->host_of_worker[rank];
    struct member_command command;
    enum status status =
        begin_command(launch, host, facts_of(launch, host)->programs.worker, &command);
    if (status != STATUS_OK) {
        return status;
    }
    member_command_add_option(&command, "--server", launch->endpoint);
    member_command_add_number(&command, "--rank", rank);
    member_command_add_number(&command, "--local-rank", placement->local_rank[rank]);
    member_command_add_number(&command, "--local-size", placement->local_size[host]);
    status = start(launch, placement->server_count + rank, host, command.argv);
    member_command_destroy(&command);
    return status;
}

static enum status start_all(struct launch *launch)
{
    enum status status = start_coordinator(launch);
    if (status != STATUS_OK) {
        return status;
    }
    crew_listen(&launch->launcher->crew, handle, launch);
    status = await_endpoint(launch);
    for (uint32_t i = 1; i < launch->placement.server_count && status == STATUS_OK; i++) {
        status = start_server(launch, i);
    }
    for (uint32_t i = 0; i < launch->placement.worker_count && status == STATUS_OK; i++) {
        status = start_worker(launch, i);
    }
    return status;
}

/* Tells the coordinator how a member has ended, unless that follows from what it was told. */
static void note_end(struct launch *launch, size_t index)
{
    struct member *member = &launch->members.list[index];
    char end[OPTION_ERROR_BYTES - MEMBER_NAME_BYTES], sentence[OPTION_ERROR_BYTES], kind[64];
    bool is_killed = member_was_killed(member);
    member->is_noted = true;
    if ((!is_killed && WEXITSTATUS(member->result) == 0) || launch->is_certain ||
        (launch->cause[0] != '\0' && !is_killed)) {
        return;
    }
    members_explain_end(&launch->members, index, end, sizeof(end));
    snprintf(sentence, sizeof(sentence), "%s %s", member->name, end);
    snprintf(kind, sizeof(kind), "%s %s", is_killed ? "killed" : "ended", member->name);
    tell(launch, kind, sentence);
    launch->is_certain = is_killed;
    if (launch->deadline_ms == 0) {
        launch->deadline_ms =
            clock_now_ms() + (uint64_t)(1000 * (launch->options->job->lost_after + 3));
    }
}

/* Notes killed members first: the others may have ended because of them. */
static void note_ends(struct launch *launch)
{
    for (int is_killed = 1; is_killed >= 0; is_killed--) {
        for (size_t i = 1; i < launch->members.count; i++) {
            const struct member *member = &launch->members.list[i];
            if (member->is_over && !member->is_noted &&
                member_was_killed(member) == (is_killed != 0)) {
                note_end(launch, i);
            }
        }
    }
}

/* Until the coordinator has ended, or whoever is left must be killed. */
static void watch(struct launch *launch)
{
    while (!launch->members.list[0].is_over) {
        if (launch->deadline_ms != 0 && clock_now_ms() >= launch->deadline_ms) {
            break;
        }
        step(launch, launch->deadline_ms != 0 ? launch->deadline_ms : UINT64_MAX);
        note_ends(launch);
    }
}

/* Waits for all to end, then kills who has not. */
static void end_all(struct launch *launch, unsigned close_ms)
{
    struct members *members = &launch->members;
    uint64_t deadline_ms = clock_now_ms() + close_ms;
    while (!members_all_over(members) && clock_now_ms() < deadline_ms) {
        step(launch, deadline_ms);
    }
    for (size_t i = 0; i < members->count; i++) {
        members_signal(members, i, SIGKILL);
    }
    deadline_ms = clock_now_ms() + KILL_MS;
    while (!members_all_over(members) && clock_now_ms() < deadline_ms) {
        step(launch, deadline_ms);
    }
}

/* A coordinator on another host has written its run folder there. */
static enum status bring_folder(struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    if (!coordinator->is_started || coordinator->is_lost || !is_remote(launch, coordinator->host)) {
        return STATUS_OK;
    }
    return fetch_folder(&launch->launcher->crew, coordinator->host, launch->options->folder);
}

/* Describes why there is no summary. */
static void explain(struct launch *launch, enum status brought, char *ret_reason,
                    size_t reason_size)
{
    const struct member *coordinator = &launch->members.list[0];
    char end[OPTION_ERROR_BYTES - MEMBER_NAME_BYTES];
    if (coordinator->stopped != 0) {
        process_name_signal(coordinator->stopped, end, sizeof(end));
        snprintf(ret_reason, reason_size, "the coordinator was stopped by %.80s, and did not go on",
                 end);
    } else if (launch->cause[0] != '\0' && (!coordinator->is_lost || launch->interrupts > 0)) {
        snprintf(ret_reason, reason_size, "%s", launch->cause);
    } else if (brought != STATUS_OK) {
        snprintf(ret_reason, reason_size, "the run folder did not come from %s",
                 launch->launcher->crew.links[coordinator->host].name);
    } else if (!coordinator->is_over) {
        snprintf(ret_reason, reason_size, "the coordinator %s",
                 coordinator->is_started ? "does not end" : "could not be started");
    } else {
        members_explain_end(&launch->members, 0, end, sizeof(end));
        snprintf(ret_reason, reason_size, "the coordinator %s", end);
    }
}

/* Names the reason, unless the coordinator has, and shows the log of the process it is about. */
static void report_failure(const struct launch *launch, const char *reason, bool is_said)
{
    log_error("the job failed%s%s; the logs: %s/logs", is_said ? "" : ": ", is_said ? "" : reason,
              launch->options->folder);
    for (size_t i = 0; i < launch->members.count; i++) {
        const struct member *member = &launch->members.list[i];
        const char *name = i == 0 ? "the coordinator" : member->name;
        size_t size = strlen(name);
        if (strncmp(reason, name, size) == 0 && reason[size] == ' ') {
            log_tail_print(member->log, stderr);
        }
    }
}

/* Reports how the job has ended. The exit code agrees with the summary. */
static enum exit_code conclude(struct launch *launch, enum status brought)
{
    const struct member *coordinator = &launch->members.list[0];
    const struct launch_options *options = launch->options;
    struct last_summary summary = {.reason = ""};
    last_summary_tidy(options->folder);
    bool is_its_own = last_summary_read(options->folder, &summary) == STATUS_OK;
    if (!is_its_own) {
        explain(launch, brought, summary.reason, sizeof(summary.reason));
        last_summary_write(options->folder, options->job, summary.reason);
    }
    if (summary.is_completed) {
        return EXIT_COMPLETED;
    }
    bool is_said = is_its_own && options->shows_progress;
    if (launch->interrupts > 0) {
        if (!is_said) {
            log_error("the job ends: %s", summary.reason);
        }
        return EXIT_INTERRUPTED;
    }
    report_failure(launch, summary.reason, is_said);
    bool is_usage = coordinator->is_over && !coordinator->is_lost &&
                    WIFEXITED(coordinator->result) &&
                    WEXITSTATUS(coordinator->result) == EXIT_USAGE;
    return is_usage ? EXIT_USAGE : EXIT_FAILED;
}

/* Starts the processes with their keys. */
static enum status start_with_keys(struct launch *launch)
{
    enum status status = handover_begin(&launch->handover, launch->options->security);
    if (status == STATUS_OK) {
        status = start_all(launch);
    }
    handover_end(&launch->handover);
    return status;
}

static enum exit_code run(struct launch *launch)
{
    enum status status = start_with_keys(launch);
    if (status == STATUS_OK) {
        watch(launch);
    }
    bool may_close = status == STATUS_OK || status == STATUS_INTERRUPTED;
    end_all(launch, may_close ? CLOSE_MS : 0);
    enum status brought = bring_folder(launch);
    crew_listen(&launch->launcher->crew, NULL, NULL);
    return conclude(launch, brought);
}

/* Where the members go, and whether the hosts can hold them. */
static enum status prepare(struct launch *launch)
{
    const struct launch_options *options = launch->options;
    struct launcher *launcher = launch->launcher;
    char error[OPTION_ERROR_BYTES];
    enum status status = placement_make(&launcher->hosts, options->job, launcher->coordinator,
                                        &launch->placement, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    status = launcher_recover(launcher);
    if (status != STATUS_OK) {
        return status;
    }
    status = host_limits_check(&launcher->crew, &launch->placement, options->job, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        last_summary_write(options->folder, options->job, error);
        return status;
    }
    status = members_init(&launch->members, &launcher->crew,
                          launch->placement.server_count + launch->placement.worker_count);
    launch->members.shows_lines = launcher->has_others;
    return status;
}

enum exit_code launch_job(struct launcher *launcher, const struct launch_options *options)
{
    struct launch *launch = calloc(1, sizeof(*launch));
    if (launch == NULL) {
        log_error("cannot prepare to launch: out of memory");
        return EXIT_FAILED;
    }
    launch->launcher = launcher;
    launch->options = options;
    enum status status = prepare(launch);
    enum exit_code code = status == STATUS_OK ? run(launch) : EXIT_FAILED;
    members_finish(&launch->members);
    free(launch);
    return status == STATUS_INTERRUPTED ? EXIT_INTERRUPTED : code;
}
