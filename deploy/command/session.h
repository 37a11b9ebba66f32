/* What a command works with that launches jobs: options, hosts, their agents, keys, and the lock of
 * its folder. */
#ifndef DEPLOY_COMMAND_SESSION_H
#define DEPLOY_COMMAND_SESSION_H

#include "common/base/folder_lock.h"
#include "common/base/signals.h"
#include "common/base/status.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "common/options/options.h"
#include "common/security/security.h"
#include "deploy/hosts/host_options.h"
#include "deploy/hosts/launcher.h"
#include "deploy/hosts/launcher_options.h"
#include "deploy/preflight/preflight.h"
#include "deploy/watch/series_page.h"

/* Zeroed: nothing is open. Large: on the heap. */
struct session {
    struct launcher_options options;
    struct host_options hosts;
    struct launcher launcher;
    struct preflight preflight;
    struct security security;
    struct folder_lock lock;
    double disk_warn_s, disk_fail_s; // how long a disk that hangs is waited for: see slow_disk_wait
    bool has_disk_failed;            // it hangs: nothing is asked of it any more
    bool makes_mirrors;              // the folder of --mirror was not there before
    struct series_page *page;        // NULL: nobody asked for it

    // Of the user's own, and its arguments: what follows `--`. Ends with NULL; NULL: there is none.
    const char *const *program; // borrowed from the command line
};

/* After the options were parsed, and before the job is resolved: makes it one of the session's
 * program, if there is one. Refuses a job that is neither wholly of a program nor wholly of ours:
 * writes a sentence. */
enum status session_take_program(const struct session *session,
                                 const struct option_program *options, struct job *job,
                                 char *ret_error, size_t error_size);

/* After the options were parsed: names the folder after `what`, if they do not, takes its lock,
 * opens the keys and connects to the hosts. preflight_try is next, for each job. From here on
 * signals are blocked. `job`, any of them, says how long a disk that hangs is waited for.
 * STATUS_IO: it hangs. */
enum status session_begin(struct session *session, const char *what, const struct job *job);

/* How a command ends that could not begin. */
enum exit_code session_exit_code(enum status status);

/* Ends the preflight, and makes the folder where all is well; `inner`, a constant, as of
 * folder_make. STATUS_IO: the disk hangs; STATUS_INTERRUPTED: or somebody does not want to wait for
 * it. */
enum status session_end_preflight(struct session *session, const char *inner);

/* The same of a further folder, as folder_make does. */
enum status session_make_folder(struct session *session, const char *folder, const char *inner);

/* series_mirror_remove_run, of a disk that may hang: STATUS_IO or STATUS_INTERRUPTED, too. */
enum status session_remove_run(struct session *session, const char *folder, const char *mirror);

/* Runs of a comparison or a sweep have mirrors in the folder of --mirror, which the first of them
 * makes. Where it was not there before, and the coordinator is on this host, it is removed behind
 * the last one, if nothing is left in it. */
void session_begin_mirrors(struct session *session);
void session_end_mirrors(struct session *session);

/* With --dashboard: serves a page of the runs in the folder, and prints its address. */
enum status session_open_page(struct session *session);

/* With --restarts: warns if a job among these has nothing to go on from. */
void session_warn_of_restarts(const struct session *session, const struct job_list *jobs);

void session_close(struct session *session); // zeroed is fine

#endif
