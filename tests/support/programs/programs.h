/* Starts the real programs for end-to-end tests, and ends them by pid.
 *
 * The build folder comes from RINGSIDE_TEST_BUILD, which meson sets. */
#ifndef TESTS_SUPPORT_PROGRAMS_PROGRAMS_H
#define TESTS_SUPPORT_PROGRAMS_PROGRAMS_H

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Of ps and worker: another process of the job was lost.
#define EXIT_CODE_LOST 75

#define PROGRAM_ARGS_MAX   48
#define PROGRAM_PATH_BYTES 512
#define PROGRAM_TEXT_BYTES 65536

struct program_run {
    pid_t pid;
    int announce_fd;                      // read end; -1: none
    char output_path[PROGRAM_PATH_BYTES]; // standard output and error
};

/* A fresh folder below the system's temporary one; fails the test if there is none. */
void programs_make_folder(char ret_path[PROGRAM_PATH_BYTES]);
void programs_remove_folder(const char *path);

/* Starts build/PATH with the arguments (NULL-terminated). `environment` (NULL-terminated
 * NAME=VALUE, or NULL) is added to ours. announces: the program gets --announce-fd. */
void program_start(struct program_run *run, const char *folder, const char *path, bool announces,
                   const char *const *args, const char *const *environment);

/* The line that it announces; fails the test if it ends without. */
void program_read_endpoint(struct program_run *run, char *ret_endpoint, size_t endpoint_size);

/* Waits for its end; the exit code, or 128 + the signal. Kills it and fails the test after 60 s,
 * which patience_ms (as every limit here) may make longer. */
int program_wait(struct program_run *run);

/* The same with a limit of one's own. */
int program_wait_for(struct program_run *run, int timeout_ms);

void program_kill(struct program_run *run, int signal_number);

/* Everything it has written. */
const char *program_output(const struct program_run *run);

/* Waits until it has written a line with these words; what stands behind them, valid until the next
 * call of program_output. Fails the test after 60 s. */
const char *program_await_line(const struct program_run *run, const char *words);

/* Waits until FOLDER (which is there) has an entry NAME. Fails the test after 60 s. */
void programs_wait_for_file(const char *folder, const char *name);

/* FOLDER/NAME as JSON; the caller owns it. Fails the test if it cannot be read. */
json_t *programs_read_json(const char *folder, const char *name);

/* A command with a folder for its test, in which `out` will be: *state between these two. */
struct command_test {
    struct program_run run;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
};
int command_test_set_up(void **state);
int command_test_tear_down(void **state);

/* Runs a small job by `ringside run` with the arguments (NULL-terminated; what they leave out is
 * small: lenet5 on a few images) to its end. Its summary, with the details as key "details", which
 * the caller owns; fails the test unless it is completed. */
json_t *programs_run_job(const char *const *args);

/* The same, of which only the digest of the parameters counts. */
#define PROGRAM_DIGEST_BYTES 80
void programs_run_digest(const char *const *args, char ret_digest[PROGRAM_DIGEST_BYTES]);

/* Runs a job by hand on `cuda`, of ps and two workers that lie in build/PROGRAMS; `args`, and
 * `environment` of the workers, are NULL-terminated. Kills worker 1 while they train. Fails the
 * test unless both others end with a failure, and ps names the worker. The run folder is
 * FOLDER/out; returns what ps has written. */
const char *programs_lose_worker(const char *folder, const char *programs, const char *const *args,
                                 const char *const *environment);

#endif
