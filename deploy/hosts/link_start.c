/* Starts ssh, srun, or the agent of this host, with pipes to and from it. */
#include "deploy/hosts/link_start.h"

#include "deploy/hosts/srun_command.h"
#include "deploy/hosts/ssh_command.h"
#include "deploy/system/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ERROR_LINE 1024 // of ssh or srun

bool link_is_by_srun(const struct host_link *link)
{
    return !link->is_local && link->options->allocation != NULL;
}

/* The descriptors of a child, and ours. */
struct link_files {
    int child[3], own[3]; // standard input, output, error; -1: none
};

static void close_files(int files[3])
{
    for (size_t i = 0; i < 3; i++) {
        if (files[i] >= 0) {
            close(files[i]);
        }
        files[i] = -1;
    }
}

static enum status open_files(const struct host_link *link, struct link_files *files)
{
    *files = (struct link_files){{-1, -1, -1}, {-1, -1, -1}};
    int in[2], out[2], error[2];
    if (pipe2(in, O_CLOEXEC) != 0) {
        return STATUS_IO;
    }
    files->child[0] = in[0];
    files->own[0] = in[1];
    if (pipe2(out, O_CLOEXEC) != 0) {
        return STATUS_IO;
    }
    files->own[1] = out[0];
    files->child[1] = out[1];
    if (link->is_local) {
        return STATUS_OK; // its errors are ours
    }
    if (pipe2(error, O_CLOEXEC) != 0) {
        return STATUS_IO;
    }
    files->own[2] = error[0];
    files->child[2] = error[1];
    return STATUS_OK;
}

/* In the child: never returns. */
static void become(const struct link_files *files, const char *path, const char *const *argv,
                   int terminal_fd)
{
    bool is_set = dup2(files->child[0], STDIN_FILENO) >= 0 &&
                  dup2(files->child[1], STDOUT_FILENO) >= 0 &&
                  (files->child[2] < 0 || dup2(files->child[2], STDERR_FILENO) >= 0);
    if (terminal_fd >= 0) {
        fcntl(terminal_fd, F_SETFD, 0); // not closed by exec
    }
    if (is_set) {
        // execvp does not write to its arguments; its interface is older than const.
        union {
            const char *const *in;
            char *const *out;
        } cast = {.in = argv};
        execvp(path, cast.out);
    }
    _exit(127);
}

static enum status start(struct host_link *link, const char *path, const char *const *argv,
                         int terminal_fd)
{
    struct link_files files;
    enum status status = open_files(link, &files);
    pid_t parent = getpid();
    link->pid = status == STATUS_OK ? fork() : -1;
    if (link->pid == 0) {
        process_isolate_child(parent);
        if (link_is_by_srun(link)) {
            // Killed, it would leave its step to notice by itself; asked to end, it ends that.
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            process_drop_variables(srun_is_dropped);
        } else if (link->is_local) {
            // The end of its input ends it, after the coordinator has written its summary. If it
            // is stopped, it is made to go on.
            prctl(PR_SET_PDEATHSIG, SIGCONT);
        }
        become(&files, path, argv, terminal_fd);
    }
    close_files(files.child);
    if (link->pid < 0) {
        link->pid = 0;
        close_files(files.own);
        return STATUS_IO;
    }
    setpgid(link->pid, link->pid); // as the child does: whoever is first
    line_writer_init(&link->writer, files.own[0]);
    status = line_reader_init(&link->reader, files.own[1], AGENT_LINE_MAX);
    if (status == STATUS_OK && files.own[2] >= 0) {
        status = line_reader_init(&link->errors, files.own[2], ERROR_LINE);
    }
    return status;
}

static enum status start_here(struct host_link *link)
{
    char fd_text[16];
    int terminal_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    snprintf(fd_text, sizeof(fd_text), "%d", terminal_fd >= 0 ? terminal_fd : 0);
    const char *const argv[] = {"ringside",          "agent", "--terminal-fd", fd_text, "--lock",
                                link->options->lock, NULL};
    enum status status = start(link, "/proc/self/exe", argv, terminal_fd);
    if (terminal_fd >= 0) {
        close(terminal_fd);
    }
    return status;
}

static enum status start_there(struct host_link *link)
{
    struct ssh_command by_ssh;
    struct srun_command by_srun;
    char script[SSH_SCRIPT_BYTES], own[PROGRAMS_PATH_MAX];
    programs_find_own(own, sizeof(own));
    if (ssh_agent_script(link->options->place, own, link->options->timeout, script) != STATUS_OK) {
        return STATUS_INVALID;
    }
    if (link_is_by_srun(link)) {
        srun_command_make(&by_srun, link->options->allocation, link->name, script);
        return start(link, by_srun.argv[0], by_srun.argv, -1);
    }
    if (ssh_command_make(&by_ssh, link->options->ssh, link->name, script) != STATUS_OK) {
        return STATUS_INVALID;
    }
    return start(link, by_ssh.argv[0], by_ssh.argv, -1);
}

enum status link_start(struct host_link *link)
{
    return link->is_local ? start_here(link) : start_there(link);
}
