/* One job on this host. */
#include "deploy/launch.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/transport.h"
#include "deploy/last_summary.h"
#include "deploy/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// After the first Ctrl-C the job has this long to end cleanly.
#define STOP_MS 1500

// Once the verdict is known, members have this long to end by themselves.
#define CLOSE_MS 1500

#define ARGUMENT_BYTES 1200

/* A running job. */
struct launch {
    const struct programs *programs;
    const struct launch_options *options;
    struct process *processes; // ps 0, ps 1, ..., then the workers; owned
    unsigned count, server_count;
    int signal_fd;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    uint64_t deadline_ms; // when whatever still runs is killed; 0: not set
    bool is_interrupted;
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

static int open_signal_fd(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Threads that wait in spinning teams cost the others their cores when there are too few. */
static const char *const *environment_of(const struct job *job)
{
    static const char *const passive[] = {"OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT=0", NULL};
    static const char *const none[] = {NULL};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = (uint64_t)(job->threads > 0 ? job->threads : 1) * job->workers;
    return cores > 0 && threads > (uint64_t)cores ? passive : none;
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

static enum status start(struct launch *launch, unsigned index, const char *const *argv,
                         const char *name, const char *log_name, int announce_fd)
{
    char log[LAUNCH_PATH_MAX];
    snprintf(log, sizeof(log), "%s/logs/%s.log", launch->options->folder, log_name);
    struct process_options options = {
        .argv = argv,
        .environment = environment_of(launch->options->job),
        .log = log,
        .inherits_output = index == 0,
        .extra_fd = announce_fd,
    };
    enum status status = process_start(&launch->processes[index], name, &options);
    if (status == STATUS_OK) {
        launch->count = index + 1;
    }
    return status;
}

static enum status start_coordinator(struct launch *launch, int announce_fd)
{
    static char storage[64][ARGUMENT_BYTES];
    const struct launch_options *options = launch->options;
    char port[16], fd[16];
    const char *argv[PROCESS_ARGS_MAX] = {launch->programs->ps};
    size_t count = 1;
    snprintf(port, sizeof(port), "%u", options->port);
    snprintf(fd, sizeof(fd), "%d", announce_fd);
    const char *const own[] = {"--bind",        options->address,
                               "--port",        port,
                               "--out",         options->folder,
                               "--announce-fd", fd,
                               "--log-level",   options->log_level,
                               "--progress",    options->shows_progress ? "auto" : "none"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        argv[count++] = own[i];
    }
    enum status status = add_job_arguments(options->job, storage, argv, &count);
    if (status != STATUS_OK) {
        return status;
    }
    return start(launch, 0, argv, "ps 0", "ps-0", announce_fd);
}

static void handle_interrupt(struct launch *launch)
{
    if (launch->is_interrupted) {
        launch->deadline_ms = clock_now_ms(); // asked twice: at once
        return;
    }
    launch->is_interrupted = true;
    launch->deadline_ms = clock_now_ms() + STOP_MS;
    process_signal(&launch->processes[0], SIGINT);
}

/* Takes the signals that have come. */
static void take_signals(struct launch *launch)
{
    struct signalfd_siginfo info;
    while (read(launch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD) {
            handle_interrupt(launch);
        }
    }
}

/* Waits until there is something to read, or a signal to take. STATUS_OK: something to read. */
static enum status wait_for_announcement(struct launch *launch, int fd, uint64_t deadline_ms)
{
    for (;;) {
        struct pollfd items[] = {{.fd = fd, .events = POLLIN},
                                 {.fd = launch->signal_fd, .events = POLLIN}};
        uint64_t now_ms = clock_now_ms();
        if (now_ms >= deadline_ms || poll(items, 2, (int)(deadline_ms - now_ms)) == 0) {
            log_error("the coordinator did not say where it listens: see %s",
                      launch->processes[0].log);
            return STATUS_TIMED_OUT;
        }
        take_signals(launch);
        if (launch->is_interrupted) {
            return STATUS_INTERRUPTED;
        }
        if (items[0].revents != 0) {
            return STATUS_OK;
        }
    }
}

/* Reads the line that the coordinator announces; it may end instead. */
static enum status read_endpoint(struct launch *launch, int fd)
{
    size_t used = 0;
    uint64_t deadline_ms = clock_now_ms() + (uint64_t)(1000 * launch->options->job->start_timeout);
    while (used < sizeof(launch->endpoint) - 1) {
        enum status status = wait_for_announcement(launch, fd, deadline_ms);
        if (status != STATUS_OK) {
            return status;
        }
        ssize_t got = read(fd, launch->endpoint + used, sizeof(launch->endpoint) - 1 - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    launch->endpoint[used] = '\0';
    char *end = strchr(launch->endpoint, '\n');
    if (end == NULL) {
        return STATUS_UNREACHABLE; // it has said why in its log
    }
    *end = '\0';
    return STATUS_OK;
}

static enum status start_members(struct launch *launch)
{
    const struct launch_options *options = launch->options;
    char index[16], size[16], name[32], log_name[32];
    snprintf(size, sizeof(size), "%u", options->job->workers);
    for (unsigned i = 1; i < launch->server_count; i++) {
        snprintf(index, sizeof(index), "%u", i);
        snprintf(name, sizeof(name), "ps %u", i);
        snprintf(log_name, sizeof(log_name), "ps-%u", i);
        const char *const argv[] = {launch->programs->ps,
                                    "--shard-index",
                                    index,
                                    "--server",
                                    launch->endpoint,
                                    "--bind",
                                    options->address,
                                    "--log-level",
                                    options->log_level,
                                    NULL};
        enum status status = start(launch, i, argv, name, log_name, -1);
        if (status != STATUS_OK) {
            return status;
        }
    }
    for (unsigned i = 0; i < options->job->workers; i++) {
        snprintf(index, sizeof(index), "%u", i);
        snprintf(name, sizeof(name), "worker %u", i);
        snprintf(log_name, sizeof(log_name), "worker-%u", i);
        const char *const argv[] = {
            launch->programs->worker, "--server",    launch->endpoint,   "--rank", index,
            "--local-rank",           index,         "--local-size",     size,     "--bind",
            options->address,         "--log-level", options->log_level, NULL};
        enum status status = start(launch, launch->server_count + i, argv, name, log_name, -1);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* Says which member has ended badly; the coordinator gets the time to give its verdict on it. */
static void note_deaths(struct launch *launch, bool *was_over)
{
    for (unsigned i = 1; i < launch->count; i++) {
        const struct process *process = &launch->processes[i];
        if (!process->is_over || was_over[i]) {
            continue;
        }
        was_over[i] = true;
        bool is_clean = WIFEXITED(process->result) && WEXITSTATUS(process->result) == 0;
        if (is_clean || launch->is_interrupted || launch->deadline_ms != 0) {
            continue;
        }
        char end[64];
        process_describe_end(process, end, sizeof(end));
        log_error("%s %s; its log: %s", process->name, end, process->log);
        launch->deadline_ms =
            clock_now_ms() + (uint64_t)(1000 * (launch->options->job->lost_after + 3));
    }
}

/* Until the coordinator has ended, or whoever is left must be killed. */
static void watch(struct launch *launch)
{
    bool *was_over = calloc(launch->count, sizeof(*was_over));
    while (was_over != NULL && !launch->processes[0].is_over) {
        uint64_t now_ms = clock_now_ms();
        if (launch->deadline_ms != 0 && now_ms >= launch->deadline_ms) {
            break;
        }
        int timeout_ms = launch->deadline_ms != 0 ? (int)(launch->deadline_ms - now_ms) : -1;
        struct pollfd item = {.fd = launch->signal_fd, .events = POLLIN};
        poll(&item, 1, timeout_ms);
        take_signals(launch);
        process_reap(launch->processes, launch->count);
        note_deaths(launch, was_over);
    }
    free(was_over);
}

static enum exit_code verdict_of(const struct launch *launch)
{
    const struct process *coordinator = &launch->processes[0];
    if (launch->is_interrupted) {
        last_summary_write(launch->options->folder, launch->options->job,
                           "interrupted by a signal; the coordinator was killed");
        return EXIT_INTERRUPTED;
    }
    if (coordinator->pid > 0 && WIFEXITED(coordinator->result) &&
        WEXITSTATUS(coordinator->result) <= EXIT_USAGE) {
        enum exit_code code = (enum exit_code)WEXITSTATUS(coordinator->result);
        if (code != EXIT_COMPLETED) {
            last_summary_write(launch->options->folder, launch->options->job,
                               "the coordinator failed; its log says why");
            log_error("the job failed; the logs: %s/logs", launch->options->folder);
        }
        return code;
    }
    char end[64], reason[128];
    process_describe_end(coordinator, end, sizeof(end));
    snprintf(reason, sizeof(reason), "the coordinator %s", end);
    log_error("%s; its log: %s", reason, coordinator->log);
    last_summary_write(launch->options->folder, launch->options->job, reason);
    return EXIT_FAILED;
}

static enum status start_all(struct launch *launch)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        log_error("cannot make a pipe: %m");
        return STATUS_IO;
    }
    enum status status = start_coordinator(launch, ends[1]);
    close(ends[1]);
    if (status == STATUS_OK) {
        status = read_endpoint(launch, ends[0]);
    }
    close(ends[0]);
    return status == STATUS_OK ? start_members(launch) : status;
}

enum exit_code launch_job(const struct programs *programs, const struct launch_options *options)
{
    const struct job *job = options->job;
    struct launch launch = {
        .programs = programs,
        .options = options,
        .server_count = job->servers > 1 ? job->servers : 1,
        .signal_fd = open_signal_fd(),
    };
    launch.processes = calloc(launch.server_count + job->workers, sizeof(*launch.processes));
    if (launch.processes == NULL || launch.signal_fd < 0) {
        log_error("cannot prepare to launch: out of memory or file descriptors");
        free(launch.processes);
        return EXIT_FAILED;
    }
    enum status status = start_all(&launch);
    if (status == STATUS_OK) {
        watch(&launch);
    }
    bool may_close = status == STATUS_OK || status == STATUS_INTERRUPTED;
    process_end_all(launch.processes, launch.count, may_close ? CLOSE_MS : 0);
    enum exit_code code = verdict_of(&launch);
    close(launch.signal_fd);
    free(launch.processes);
    return status == STATUS_OK || code != EXIT_COMPLETED ? code : EXIT_FAILED;
}
