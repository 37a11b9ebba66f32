/* Child processes: started with their output where it belongs, and ended with certainty.
 *
 * A child has a process group of its own, so that Ctrl-C reaches the launcher alone, and is killed
 * by the kernel if the launcher dies. */
#ifndef DEPLOY_PROCESS_H
#define DEPLOY_PROCESS_H

#include "common/status.h"

#include <stdbool.h>
#include <sys/types.h>

#define PROCESS_ARGS_MAX 128
#define PROCESS_NAME_MAX 32
#define PROCESS_PATH_MAX 4096

struct process {
    char name[PROCESS_NAME_MAX]; // "worker 3", for messages
    char log[PROCESS_PATH_MAX];  // where its standard error goes
    pid_t pid;                   // 0: not started
    bool is_over;
    int result; // as waitpid gives it, once it is over
};

struct process_options {
    const char *const *argv;        // NULL-terminated; argv[0] is the path
    const char *const *environment; // NULL-terminated NAME=VALUE, added to ours
    const char *log;                // file for its standard error
    bool inherits_output;           // standard output: ours; otherwise the log
    int extra_fd;                   // kept open for it; -1: none
};

/* Logs what cannot be started. */
enum status process_start(struct process *process, const char *name,
                          const struct process_options *options);

/* In a child, between fork and exec: makes it what the top of this file says, without the blocked
 * signals and the RINGSIDE_ variables of the launcher. */
void process_init_child(pid_t parent);

void process_signal(const struct process *process, int signal_number);

/* Marks those that have ended. Does not wait. */
void process_reap(struct process *processes, unsigned count);

/* Waits at most timeout_ms for all of them, then kills what is left, with all that it has started,
 * and waits for that. */
void process_end_all(struct process *processes, unsigned count, unsigned timeout_ms);

/* "was killed by signal 9", "ended with exit code 1" */
void process_describe_end(const struct process *process, char *ret_text, size_t text_size);

#endif
