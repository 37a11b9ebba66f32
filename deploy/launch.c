/* One job: its processes started through the agents of its hosts, watched, ended. */
#include "deploy/launch.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/transport.h"
#include "deploy/fetch.h"
#include "deploy/handover.h"
#include "deploy/last_summary.h"
#include "deploy/members.h"
#include "deploy/placement.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// After the first Ctrl-C the job has this long to end cleanly.
#define STOP_MS 1500

// Once the verdict is known, members have this long to end by themselves.
#define CLOSE_MS 1500

// What is killed is gone within this, or its host is.
#define KILL_MS 3000

#define ARGUMENT_BYTES 1200

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
};

void launch_block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
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

/* "--name=value" for every option of the job. */
static enum status add_job_arguments(const struct job *job, char storage[][ARGUMENT_BYTES],
                                     const char **argv, size_t *count)
{
    for (size_t i = 0; i < job_option_count; i++) {
        char value[OPTION_VALUE_BYTES];
        option_format(&job_options[i], job, value, sizeof(value));
        snprintf(storage[i], ARGUMENT_BYTES, "--%s=%s", job_options[i].name, value);
        argv[(*count)++] = storage[i];
    }
    return STATUS_OK;
}

static enum status start(struct launch *launch, size_t index, size_t host, const char *const *argv)
{
    char name[MEMBER_NAME_BYTES], log[MEMBER_LOG_BYTES];
    size_t servers = launch->placement.server_count;
    const char *role = index < servers ? "ps" : "worker";
    size_t number = index < servers ? index : index - servers;
    snprintf(name, sizeof(name), "%s %zu", role, number);
    snprintf(log, sizeof(log), "%.4000s/logs/%s-%zu.log", launch->options->folder, role, number);
    const struct member_start member = {
        .name = name,
        .log = log,
        .host = host,
        .argv = argv,
        .environment = environment_of(launch, host),
        .input = launch->handover.text,
        .announces = index == 0,
        .has_terminal = index == 0,
    };
    return members_start(&launch->members, index, &member);
}

static enum status start_coordinator(struct launch *launch)
{
    static char storage[64][ARGUMENT_BYTES];
    const struct launch_options *options = launch->options;
    size_t host = launch->placement.host_of_server[0];
    char port[16];
    const char *argv[AGENT_LIST_MAX] = {facts_of(launch, host)->programs.ps};
    size_t count = 1;
    snprintf(port, sizeof(port), "%u", options->port);
    snprintf(launch->folder, sizeof(launch->folder), "%s", options->folder);
    if (is_remote(launch, host)) {
        enum status status = fetch_make_folder(&launch->launcher->crew, host, launch->folder,
                                               sizeof(launch->folder));
        if (status != STATUS_OK) {
            return status;
        }
    }
    const char *const own[] = {"--bind",       launch->launcher->addresses[host],
                               "--port",       port,
                               "--port-range", launch->launcher->host_options->port_range,
                               "--out",        launch->folder,
                               "--log-level",  options->log_level,
                               "--progress",   options->shows_progress ? "auto" : "none"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        argv[count++] = own[i];
    }
    for (const char *const *at = launch->handover.arguments; *at != NULL; at++) {
        argv[count++] = *at;
    }
    enum status status = add_job_arguments(options->job, storage, argv, &count);
    return status == STATUS_OK ? start(launch, 0, host, argv) : status;
}

/* Takes the interrupts that have come. */
static void take_interrupts(struct launch *launch)
{
    for (; launch->interrupts < launch->launcher->crew.interrupts; launch->interrupts++) {
        if (launch->interrupts > 0) {
            launch->deadline_ms = clock_now_ms(); // asked twice: at once
        } else {
            launch->deadline_ms = clock_now_ms() + STOP_MS;
            members_signal(&launch->members, 0, SIGINT);
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
            log_error("the coordinator did not say where it listens: see %s", coordinator->log);
            return STATUS_TIMED_OUT;
        }
        step(launch, deadline_ms);
    }
    return STATUS_OK;
}

static enum status start_server(struct launch *launch, uint32_t index)
{
    size_t host = launch->placement.host_of_server[index];
    char text[16];
    snprintf(text, sizeof(text), "%u", index);
    const char *const argv[] = {facts_of(launch, host)->programs.ps,
                                "--shard-index",
                                text,
                                "--server",
                                launch->endpoint,
                                "--bind",
                                launch->launcher->addresses[host],
                                "--port-range",
                                launch->launcher->host_options->port_range,
                                "--log-level",
                                launch->options->log_level,
                                launch->handover.arguments[0],
                                launch->handover.arguments[1],
                                NULL};
    return start(launch, index, host, argv);
}

static enum status start_worker(struct launch *launch, uint32_t rank)
{
    size_t host = launch->placement.host_of_worker[rank];
    char rank_text[16], local_rank[16], local_size[16];
    snprintf(rank_text, sizeof(rank_text), "%u", rank);
    snprintf(local_rank, sizeof(local_rank), "%u", launch->placement.local_rank[rank]);
    snprintf(local_size, sizeof(local_size), "%u", launch->placement.local_size[host]);
    const char *const argv[] = {facts_of(launch, host)->programs.worker,
                                "--server",
                                launch->endpoint,
                                "--rank",
                                rank_text,
                                "--local-rank",
                                local_rank,
                                "--local-size",
                                local_size,
                                "--bind",
                                launch->launcher->addresses[host],
                                "--port-range",
                                launch->launcher->host_options->port_range,
                                "--log-level",
                                launch->options->log_level,
                                launch->handover.arguments[0],
                                launch->handover.arguments[1],
                                NULL};
    return start(launch, launch->placement.server_count + rank, host, argv);
}

static enum status start_all(struct launch *launch)
{
    enum status status = start_coordinator(launch);
    if (status == STATUS_OK) {
        crew_listen(&launch->launcher->crew, handle, launch);
        status = await_endpoint(launch);
    }
    for (uint32_t i = 1; i < launch->placement.server_count && status == STATUS_OK; i++) {
        status = start_server(launch, i);
    }
    for (uint32_t i = 0; i < launch->placement.worker_count && status == STATUS_OK; i++) {
        status = start_worker(launch, i);
    }
    return status;
}

/* Says which member has ended badly; the coordinator gets the time to give its verdict on it. */
static void note_deaths(struct launch *launch)
{
    for (size_t i = 1; i < launch->members.count; i++) {
        struct member *member = &launch->members.list[i];
        if (!member->is_over || member->is_noted) {
            continue;
        }
        member->is_noted = true;
        bool is_clean =
            !member->is_lost && WIFEXITED(member->result) && WEXITSTATUS(member->result) == 0;
        if (is_clean || launch->interrupts > 0 || launch->deadline_ms != 0) {
            continue;
        }
        char end[OPTION_ERROR_BYTES];
        members_describe_end(&launch->members, i, end, sizeof(end));
        log_error("%s %s; its log: %s", member->name, end, member->log);
        launch->deadline_ms =
            clock_now_ms() + (uint64_t)(1000 * (launch->options->job->lost_after + 3));
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
        note_deaths(launch);
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

static enum exit_code verdict_of(const struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    const struct launch_options *options = launch->options;
    if (launch->interrupts > 0) {
        last_summary_write(options->folder, options->job,
                           "interrupted by a signal; the coordinator was killed");
        return EXIT_INTERRUPTED;
    }
    if (!coordinator->is_started) {
        last_summary_write(options->folder, options->job, "the coordinator could not be started");
        return EXIT_FAILED;
    }
    if (coordinator->is_over && !coordinator->is_lost && WIFEXITED(coordinator->result) &&
        WEXITSTATUS(coordinator->result) <= EXIT_USAGE) {
        enum exit_code code = (enum exit_code)WEXITSTATUS(coordinator->result);
        if (code != EXIT_COMPLETED) {
            last_summary_write(options->folder, options->job,
                               "the coordinator failed; its log says why");
            log_error("the job failed; the logs: %s/logs", options->folder);
        }
        return code;
    }
    char end[OPTION_ERROR_BYTES], reason[OPTION_ERROR_BYTES + 32];
    members_describe_end(&launch->members, 0, end, sizeof(end));
    snprintf(reason, sizeof(reason), "the coordinator %s", end);
    log_error("%s; its log: %s", reason, coordinator->log);
    last_summary_write(options->folder, options->job, reason);
    return EXIT_FAILED;
}

/* Whether a host of the job listens off the loopback interface. */
static bool is_far(const struct launch *launch)
{
    for (size_t i = 0; i < launch->launcher->hosts.count; i++) {
        if (placement_uses(&launch->placement, i) &&
            !security_is_local_address(launch->launcher->addresses[i])) {
            return true;
        }
    }
    return false;
}

/* With the keys that its processes need. */
static enum status start_with_keys(struct launch *launch)
{
    const struct launch_options *options = launch->options;
    enum status status =
        handover_begin(&launch->handover, options->security, options->job, is_far(launch));
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
    enum exit_code code = verdict_of(launch);
    bool is_fine = status == STATUS_OK && brought == STATUS_OK;
    return is_fine || code != EXIT_COMPLETED ? code : EXIT_FAILED;
}

enum exit_code launch_job(struct launcher *launcher, const struct launch_options *options)
{
    char error[OPTION_ERROR_BYTES];
    struct launch *launch = calloc(1, sizeof(*launch));
    if (launch == NULL) {
        log_error("cannot prepare to launch: out of memory");
        return EXIT_FAILED;
    }
    launch->launcher = launcher;
    launch->options = options;
    launch->interrupts = 0;
    enum exit_code code = EXIT_FAILED;
    enum status status = placement_make(&launcher->hosts, options->job, launcher->coordinator,
                                        &launch->placement, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
    } else {
        status = launcher_recover(launcher);
    }
    if (status == STATUS_OK) {
        status = members_init(&launch->members, &launcher->crew,
                              launch->placement.server_count + launch->placement.worker_count);
    }
    if (status == STATUS_OK) {
        launch->members.shows_lines = launcher->has_others;
        code = run(launch);
    }
    members_finish(&launch->members);
    free(launch);
    return status == STATUS_INTERRUPTED ? EXIT_INTERRUPTED : code;
}
