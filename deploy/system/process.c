/* Starts, signals and ends child processes. */
#include "deploy/system/process.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/new_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 5
#define HELD_MS 1000 // a killed process has ended by then, unless the kernel holds it

/* In the child: signals as a fresh program has them. */
static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
}

void process_drop_variables(bool (*is_dropped)(const char *name))
{
    for (char **variable = environ; *variable != NULL;) {
        char name[128];
        size_t size = strcspn(*variable, "=");
        snprintf(name, sizeof(name), "%.*s", (int)(size < sizeof(name) ? size : 0), *variable);
        if (name[0] == '\0' || !is_dropped(name)) {
            variable++;
            continue;
        }
        unsetenv(name);
        variable = environ; // it was moved
    }
}

static bool is_own(const char *name)
{
    return strncmp(name, "RINGSIDE_", strlen("RINGSIDE_")) == 0 &&
           strcmp(name, "RINGSIDE_CACHE") != 0;
}

/* In the child: what the user's RINGSIDE_ variables meant is in the job already; a worker would
 * take RINGSIDE_THREADS for an option of its own. Where caches lie is no option. */
static void drop_own_variables(void)
{
    process_drop_variables(is_own);
    // It tells each worker its rank: what a launcher above it says is about itself.
    setenv("RINGSIDE_LAUNCHER", "none", 1);
}

/* What the system says of a process, and its flags; '\0': there is none. */
static char read_state(pid_t pid, unsigned long *ret_flags)
{
    char path[32], text[512];
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, text, sizeof(text) - 1) : -1;
    text[size > 0 ? size : 0] = '\0';
    if (file >= 0) {
        close(file);
    }
    // Behind the name: state, parent, group, session, terminal, its group, flags.
    const char *end = strrchr(text, ')'), *at = end;
    for (unsigned i = 0; i < 7 && at != NULL; i++) {
        at = strchr(at + 1, ' ');
    }
    *ret_flags = at != NULL ? strtoul(at, NULL, 10) : 0;
    return (char)(at != NULL ? end[2] : '\0');
}

bool process_is_ending(pid_t pid)
{
    const unsigned long exiting = 4; // PF_EXITING of Linux: see proc(5), "flags"
    unsigned long flags;
    return read_state(pid, &flags) != '\0' && (flags & exiting) != 0;
}

bool process_is_held(pid_t pid)
{
    char path[32];
    unsigned long flags;
    struct stat facts;
    char state = read_state(pid, &flags);
    snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
    // A folder has two links more than it has folders: one for each thread.
    bool has_threads = stat(path, &facts) == 0 && facts.st_nlink > 3;
    return state != '\0' && state != 'X' && (state != 'Z' || has_threads);
}

bool process_has_gone(pid_t parent)
{
    return getppid() != parent || process_is_ending(parent);
}

void process_isolate_child(pid_t parent)
{
    reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127); // the launcher died before the line above
    }
    setpgid(0, 0);
}

void process_init_child(pid_t parent)
{
    process_isolate_child(parent);
    drop_own_variables();
}

int process_open_input(const char *text)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    for (size_t size = strlen(text); fd >= 0 && size > 0;) {
        ssize_t wrote = write(fd, text, size);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            close(fd);
            return -1;
        }
        text += wrote;
        size -= (size_t)wrote;
    }
    if (fd >= 0) {
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

/* The files of a child, open in us. */
struct child_files {
    int input, output, error;
};

/* In the child: never returns. */
static void become(const struct process_options *options, const struct child_files *files,
                   pid_t parent)
{
    process_init_child(parent);
    bool is_set = dup2(files->input, STDIN_FILENO) >= 0 &&
                  dup2(files->output, STDOUT_FILENO) >= 0 && dup2(files->error, STDERR_FILENO) >= 0;
    for (size_t i = 0; i < options->extra_count; i++) {
        fcntl(options->extra_fds[i], F_SETFD, 0); // not closed by exec
    }
    for (size_t i = 0; options->environment != NULL && options->environment[i] != NULL; i++) {
        putenv(strdup(options->environment[i]));
    }
    if (options->directory != NULL && chdir(options->directory) != 0) {
        errno = 0; // it stays where it is
    }
    if (is_set) {
        // execv does not write to its arguments; its interface is older than const.
        union {
            const char *const *in;
            char *const *out;
        } cast = {.in = options->argv};
        execv(options->argv[0], cast.out);
    }
    _exit(127);
}

static enum status open_files(const struct process_options *options, struct child_files *ret_files)
{
    ret_files->error = options->error_fd;
    if (options->log != NULL) {
        ret_files->error = new_file_append(options->log);
    }
    if (ret_files->error < 0) {
        log_error("cannot write the log %s: %m", options->log);
        return STATUS_IO;
    }
    ret_files->output = options->output_fd != 0 ? options->output_fd : ret_files->error;
    ret_files->input = options->input != NULL ? process_open_input(options->input)
                                              : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (ret_files->input < 0) {
        log_error("cannot make a standard input: %m");
        if (options->log != NULL) {
            close(ret_files->error);
        }
        return STATUS_IO;
    }
    return STATUS_OK;
}

enum status process_start(struct process *process, const char *name,
                          const struct process_options *options)
{
    struct child_files files;
    enum status status = open_files(options, &files);
    if (status != STATUS_OK) {
        return status;
    }
    *process = (struct process){0};
    snprintf(process->name, sizeof(process->name), "%s", name);
    snprintf(process->log, sizeof(process->log), "%s", options->log != NULL ? options->log : "");
    pid_t parent = getpid();
    process->pid = fork();
    if (process->pid == 0) {
        become(options, &files, parent);
    }
    close(files.input);
    if (options->log != NULL) {
        close(files.error);
    }
    if (process->pid < 0) {
        log_error("cannot start %s: %m", name);
        process->pid = 0;
        return STATUS_IO;
    }
    setpgid(process->pid, process->pid); // as the child does: whoever is first
    return STATUS_OK;
}

void process_signal(const struct process *process, int signal_number)
{
    if (process->pid > 0 && !process->is_over) {
        kill(signal_number == SIGKILL ? -process->pid : process->pid, signal_number);
    }
}

bool process_take_stop(const struct process *process, int *ret_signal)
{
    siginfo_t info = {0};
    if (process->pid <= 0 || process->is_over ||
        waitid(P_PID, (id_t)process->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) != 0 ||
        info.si_pid != process->pid) {
        return false;
    }
    *ret_signal = info.si_code == CLD_CONTINUED ? 0 : info.si_status;
    return true;
}

/* Kills what is left of the group of a process that has failed. Until it is reaped, the group's
 * number belongs to nobody else. */
static void kill_rest(const struct process *process)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == process->pid && (info.si_code != CLD_EXITED || info.si_status != 0)) {
        kill(-process->pid, SIGKILL);
    }
}

void process_reap(struct process *processes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct process *process = &processes[i];
        if (process->pid <= 0 || process->is_over) {
            continue;
        }
        kill_rest(process);
        if (waitpid(process->pid, &process->result, WNOHANG) == process->pid) {
            process->is_over = true;
        }
    }
}

static bool all_over(const struct process *processes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (processes[i].pid > 0 && !processes[i].is_over) {
            return false;
        }
    }
    return true;
}

static void await_ends(struct process *processes, unsigned count, unsigned timeout_ms)
{
    uint64_t deadline_ms = clock_now_ms() + timeout_ms;
    while (!all_over(processes, count) && clock_now_ms() < deadline_ms) {
        poll(NULL, 0, POLL_MS);
        process_reap(processes, count);
    }
}

void process_end_all(struct process *processes, unsigned count, unsigned timeout_ms)
{
    process_reap(processes, count);
    await_ends(processes, count, timeout_ms);
    for (unsigned i = 0; i < count; i++) {
        process_signal(&processes[i], SIGKILL);
    }
    await_ends(processes, count, HELD_MS);
}

/* The usual cause of a signal. */
static const char *hint_of(int signal_number)
{
    static const struct {
        int number;
        const char *text;
    } hints[] = {
        {SIGABRT, "; its log says why"},
        {SIGBUS, "; was a data file truncated?"},
        {SIGILL, "; was it built for another processor?"},
        {SIGKILL, "; is memory short, or has somebody killed it?"},
        {SIGXCPU, "; see ulimit -t"},
        {SIGXFSZ, "; see ulimit -f"},
    };
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (hints[i].number == signal_number) {
            return hints[i].text;
        }
    }
    return "";
}

void process_name_signal(int signal_number, char *ret_text, size_t text_size)
{
    const char *name = sigabbrev_np(signal_number);
    if (name != NULL) {
        snprintf(ret_text, text_size, "SIG%s", name);
    } else {
        snprintf(ret_text, text_size, "signal %d", signal_number);
    }
}

void process_describe_end(int result, char *ret_text, size_t text_size)
{
    if (!WIFSIGNALED(result)) {
        snprintf(ret_text, text_size, "ended with exit code %d", WEXITSTATUS(result));
        return;
    }
    int number = WTERMSIG(result);
    const char *meaning = sigdescr_np(number);
    if (meaning == NULL) {
        snprintf(ret_text, text_size, "was killed by signal %d", number);
        return;
    }
    snprintf(ret_text, text_size, "was killed by signal %d (%c%s%s)", number,
             tolower((unsigned char)meaning[0]), meaning + 1, hint_of(number));
}

void process_ending_signals(sigset_t *ret_set)
{
    struct sigaction hangup;
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
        sigaddset(ret_set, SIGHUP);
    }
}
