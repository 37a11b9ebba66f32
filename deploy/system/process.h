/* Child processes: started with their output where it belongs, and ended with certainty.
 *
 * A child has a process group of its own, so that Ctrl-C reaches the launcher alone, and is killed
 * by the kernel if the launcher dies. */
#ifndef DEPLOY_SYSTEM_PROCESS_H
#define DEPLOY_SYSTEM_PROCESS_H

#include "common/base/status.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
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
    const char *log;                // file for its standard error; NULL: error_fd
    int error_fd;                   // its standard error, if there is no log
    int output_fd;                  // its standard output; 0: where its standard error goes
    const int *extra_fds;           // (extra_count), kept open for it
    size_t extra_count;
    const char *input;     // all of its standard input; NULL: there is none
    const char *directory; // to run in, if it is there; NULL: ours
};

/* Logs what cannot be started. */
enum status process_start(struct process *process, const char *name,
                          const struct process_options *options);

/* Whether a process has ended and nobody has waited for it, or is just ending. */
bool process_is_ending(pid_t pid);

/* Whether a process was killed, or has ended, and is still there, or threads of it are: only the
 * kernel keeps them. What has ended and nobody has waited for is not meant. */
bool process_is_held(pid_t pid);

/* Whether the parent that this process had has ended, or is just ending: its pipes close before it
 * is anybody else's child. */
bool process_has_gone(pid_t parent);

/* In a child, between fork and exec: makes it what the top of this file says, without the blocked
 * signals of the launcher. */
void process_isolate_child(pid_t parent);

/* The same, also without the launcher's RINGSIDE_ variables. */
void process_init_child(pid_t parent);

/* In a child, too: its environment without some of the variables. */
void process_drop_variables(bool (*is_dropped)(const char *name));

/* An open file that holds `text`, to be read from its begin; -1 if there is none to be had. Nobody
 * else can find it, and nobody waits for it: secrets go to a child that way. */
int process_open_input(const char *text);

/* SIGKILL goes to all that it has started, too. */
void process_signal(const struct process *process, int signal_number);

/* Whether it was stopped by a signal or continued (0) since the last call. Does not wait. */
bool process_take_stop(const struct process *process, int *ret_signal);

/* Marks those that have ended. Does not wait. What is left of the group of one that has failed is
 * killed: children of a program of the user's own. */
void process_reap(struct process *processes, unsigned count);

/* Waits at most timeout_ms for all of them, then kills what is left, with all that it has started,
 * and waits for that, but not for what the kernel holds, as where a disk hangs: that is not over.
 */
void process_end_all(struct process *processes, unsigned count, unsigned timeout_ms);

/* A result of waitpid in words: "was killed by signal 7 (bus error; was a data file
 * truncated?)", "ended with exit code 1". */
void process_describe_end(int result, char *ret_text, size_t text_size);

/* The name of a signal, for messages: "SIGTERM". */
void process_name_signal(int signal_number, char *ret_text, size_t text_size);

/* The signals by which people end a command: SIGINT, SIGTERM and, unless it is ignored (nohup),
 * SIGHUP. */
void process_ending_signals(sigset_t *ret_set);

#endif
