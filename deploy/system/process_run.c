/* Runs a child to its end, unless a deadline or a signal comes first. */
#include "deploy/system/process_run.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "deploy/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 5

struct run {
    pid_t pid;
    int output_fd, signal_fd;
    uint64_t deadline_ms; // UINT64_MAX: none
};

/* In the child: never returns. */
static void become(const struct process_run_options *options, int input_fd, int output_fd,
                   pid_t parent)
{
    process_init_child(parent);
    int error_fd = options->takes_errors    ? output_fd
                   : options->error_fd != 0 ? options->error_fd
                                            : STDERR_FILENO;
    bool is_set = dup2(input_fd, STDIN_FILENO) >= 0 && dup2(output_fd, STDOUT_FILENO) >= 0 &&
                  dup2(error_fd, STDERR_FILENO) >= 0;
    if (is_set) {
        // execvp does not write to its arguments; its interface is older than const.
        union {
            const char *const *in;
            char *const *out;
        } cast = {.in = options->argv};
        execvp(options->argv[0], cast.out);
    }
    _exit(127);
}

static void write_input(int fd, const char *text)
{
    // The child may end without reading it.
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    for (size_t size = strlen(text); size > 0;) {
        ssize_t wrote = write(fd, text, size);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            break;
        }
        text += wrote;
        size -= (size_t)wrote;
    }
    sigaction(SIGPIPE, &before, NULL);
}

/* Starts the child; its input is written. The signals that we take are those that are blocked. */
static enum status start(const struct process_run_options *options, struct run *run)
{
    int in[2], out[2];
    sigset_t signals;
    if (pipe2(in, O_CLOEXEC) != 0) {
        return STATUS_IO;
    }
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return STATUS_IO;
    }
    pid_t parent = getpid();
    run->pid = fork();
    if (run->pid == 0) {
        become(options, options->input_fd != 0 ? options->input_fd : in[0], out[1], parent);
    }
    close(in[0]);
    close(out[1]);
    if (run->pid > 0) {
        setpgid(run->pid, run->pid); // as the child does: whoever is first
        write_input(in[1], options->input_fd != 0 ? "" : options->input);
    }
    close(in[1]);
    run->output_fd = out[0];
    process_ending_signals(&signals);
    run->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    run->deadline_ms = options->timeout_ms > 0 ? clock_now_ms() + options->timeout_ms : UINT64_MAX;
    return run->pid > 0 ? STATUS_OK : STATUS_IO;
}

/* Waits for output, at most timeout_ms (-1: for ever). STATUS_OK: look again. */
static enum status wait_for_event(const struct run *run, int timeout_ms)
{
    struct pollfd items[] = {{.fd = run->signal_fd, .events = POLLIN},
                             {.fd = run->output_fd, .events = POLLIN}};
    uint64_t now_ms = clock_now_ms();
    if (now_ms >= run->deadline_ms) {
        return STATUS_TIMED_OUT;
    }
    if (run->deadline_ms != UINT64_MAX &&
        (timeout_ms < 0 || (uint64_t)timeout_ms > run->deadline_ms - now_ms)) {
        timeout_ms = (int)(run->deadline_ms - now_ms);
    }
    poll(items, run->output_fd >= 0 ? 2 : 1, timeout_ms);
    struct signalfd_siginfo info;
    return read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? STATUS_INTERRUPTED
                                                                              : STATUS_OK;
}

static enum status read_output(const struct run *run, char *ret_output, size_t output_size)
{
    size_t used = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        status = wait_for_event(run, -1);
        struct pollfd item = {.fd = run->output_fd, .events = POLLIN};
        if (status != STATUS_OK || poll(&item, 1, 0) <= 0) {
            continue;
        }
        char rest[4096];
        bool has_room = used + 1 < output_size;
        ssize_t got = has_room ? read(run->output_fd, ret_output + used, output_size - 1 - used)
                               : read(run->output_fd, rest, sizeof(rest));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            break;
        }
        used += has_room && got > 0 ? (size_t)got : 0;
    }
    ret_output[used] = '\0';
    return status;
}

/* It has closed its output, and is about to end. */
static enum status wait_for_end(struct run *run, int *ret_code)
{
    int result = 0;
    close(run->output_fd);
    run->output_fd = -1;
    while (waitpid(run->pid, &result, WNOHANG) != run->pid) {
        enum status status = wait_for_event(run, POLL_MS);
        if (status != STATUS_OK) {
            return status;
        }
    }
    run->pid = 0;
    if (!WIFEXITED(result)) {
        *ret_code = -WTERMSIG(result);
        return STATUS_IO;
    }
    *ret_code = WEXITSTATUS(result);
    return STATUS_OK;
}

enum status process_run(const struct process_run_options *options, char *ret_output,
                        size_t output_size, int *ret_code)
{
    struct run run = {.output_fd = -1, .signal_fd = -1};
    ret_output[0] = '\0';
    enum status status = start(options, &run);
    if (status == STATUS_OK) {
        status = read_output(&run, ret_output, output_size);
    }
    if (status == STATUS_OK) {
        status = wait_for_end(&run, ret_code);
    }
    if (run.pid > 0) {
        kill(-run.pid, SIGKILL);
        waitpid(run.pid, NULL, 0);
    }
    if (run.output_fd >= 0) {
        close(run.output_fd);
    }
    if (run.signal_fd >= 0) {
        close(run.signal_fd);
    }
    return status;
}
