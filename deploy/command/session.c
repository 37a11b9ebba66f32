/* Opens what a command works with, and closes it. */
#include "deploy/command/session.h"

#include "common/base/log.h"
#include "common/thread/slow_disk.h"
#include "deploy/command/series_mirror.h"
#include "deploy/launch/launch.h"
#include "deploy/launch/own_program.h"
#include "deploy/system/folder.h"
#include "deploy/system/process.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status session_take_program(const struct session *session,
                                 const struct option_program *options, struct job *job,
                                 char *ret_error, size_t error_size)
{
    bool is_external = job_is_external(job);
    if (session->program == NULL && !is_external) {
        return STATUS_OK;
    }
    if (session->program == NULL) {
        snprintf(ret_error, error_size,
                 "--model %s is a program of your own, and none is named: add it behind `--`, as "
                 "in `-- python3 train.py`",
                 job->model);
        return STATUS_INVALID;
    }
    if (!is_external && options_was_given(options, "model")) {
        snprintf(ret_error, error_size,
                 "--model %s is one of ours, and a program of your own is named, too: leave out "
                 "one of them, or give the program's model a name: --model %sNAME",
                 job->model, JOB_EXTERNAL_PREFIX);
        return STATUS_INVALID;
    }
    if (session->options.resume[0] != '\0') {
        snprintf(
            ret_error, error_size,
            "--resume %s goes on from checkpoints of ours, and a program of your own keeps its "
            "own: leave it out",
            session->options.resume);
        return STATUS_INVALID;
    }
    bool is_for_here = !host_options_name_hosts(&session->hosts);
    return own_program_take(session->program, is_for_here, job, ret_error, error_size);
}

/* The thread's until it is over: if the disk hangs, it has all that it needs. */
struct errand {
    char folder[FOLDER_PATH_MAX];
    const char *inner;                // of folder_make; a constant, or NULL
    bool goes_on;                     // a run does, in the folder
    char mirror[LAUNCH_MIRROR_BYTES]; // of the run
    struct folder_lock lock;
    enum status status; // of the work
};

/* While the disk is waited for. Signals are blocked, and those before were taken. */
static bool is_still_wanted(void *context)
{
    sigset_t ending, pending, both;
    (void)context;
    process_ending_signals(&ending);
    return sigpending(&pending) != 0 || sigandset(&both, &ending, &pending) != 0 ||
           sigisemptyset(&both);
}

/* Whether a thread that touches the session's folders might never come back. */
static bool has_lost_disk(const struct session *session)
{
    return session->has_disk_failed || session->launcher.is_folder_held;
}

/* Has a thread do the work, on a copy of the errand, and takes over what came of it. STATUS_IO: the
 * disk hangs, or has before. */
static enum status run(struct session *session, const char *complaint, void (*work)(void *data),
                       struct errand *errand)
{
    const struct slow_disk_wait wait = {
        .warn_s = session->disk_warn_s, .fail_s = session->disk_fail_s, .turn = is_still_wanted};
    if (has_lost_disk(session)) {
        return STATUS_IO;
    }
    struct errand *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    *copy = *errand;
    const struct slow_disk_work what = {
        .complaint = complaint, .path = copy->folder, .run = work, .data = copy};
    enum status status = slow_disk_await(&wait, &what);
    if (slow_disk_is_given_up(status)) {
        session->has_disk_failed = true;
        return status; // which leaves the copy to the thread
    }
    *errand = *copy;
    free(copy);
    return status == STATUS_OK ? errand->status : status;
}

static void take_lock(void *data)
{
    struct errand *errand = data;
    errand->status = folder_lock_take(errand->folder, &errand->lock);
}

static void release_lock(void *data)
{
    struct errand *errand = data;
    folder_lock_release(&errand->lock);
    errand->status = STATUS_OK;
}

static void make_folder(void *data)
{
    struct errand *errand = data;
    errand->status = errand->goes_on ? folder_go_on(errand->folder, errand->inner)
                                     : folder_make(errand->folder, errand->inner);
}

static enum status hold_folder(struct session *session)
{
    struct errand errand = {.lock = {.fd = -1}};
    snprintf(errand.folder, sizeof(errand.folder), "%s", session->options.out);
    enum status status = run(session, "not locked the run folder", take_lock, &errand);
    if (status == STATUS_OK) {
        session->lock = errand.lock;
    }
    return status;
}

/* The kernel lets go of a lock that is left; its file lies there, and nobody holds it. */
static void release_folder(struct session *session)
{
    struct errand errand = {.lock = session->lock};
    snprintf(errand.folder, sizeof(errand.folder), "%s", session->lock.folder);
    if (errand.folder[0] != '\0') {
        (void)run(session, "not unlocked the run folder", release_lock, &errand);
    }
    session->lock = (struct folder_lock){.fd = -1};
}

static enum status make(struct session *session, const char *folder, const char *inner,
                        bool goes_on)
{
    struct errand errand = {.inner = inner, .goes_on = goes_on};
    if (snprintf(errand.folder, sizeof(errand.folder), "%s", folder) >=
        (int)sizeof(errand.folder)) {
        log_error("--out is too long");
        return STATUS_INVALID;
    }
    return run(session, "not made the run folder", make_folder, &errand);
}

enum status session_make_folder(struct session *session, const char *folder, const char *inner)
{
    return make(session, folder, inner, false);
}

static void remove_run(void *data)
{
    struct errand *errand = data;
    errand->status = series_mirror_remove_run(errand->folder, errand->mirror);
}

enum status session_remove_run(struct session *session, const char *folder, const char *mirror)
{
    struct errand errand = {.goes_on = false};
    snprintf(errand.folder, sizeof(errand.folder), "%s", folder);
    snprintf(errand.mirror, sizeof(errand.mirror), "%s", mirror);
    const char *complaint = mirror[0] != '\0' ? "not removed, with its mirror, the run before in"
                                              : "not removed the run before in";
    return run(session, complaint, remove_run, &errand);
}

static void look_for_folder(void *data)
{
    struct errand *errand = data;
    errand->status = access(errand->folder, F_OK) == 0 ? STATUS_OK : STATUS_END_OF_DATA;
}

static void remove_empty_folder(void *data)
{
    struct errand *errand = data;
    rmdir(errand->folder); // which is not done if there is anything in it
    errand->status = STATUS_OK;
}

void session_begin_mirrors(struct session *session)
{
    const struct launcher *launcher = &session->launcher;
    const char *mirror = session->options.mirror;
    struct errand errand = {.goes_on = false};
    if (mirror[0] == '\0' || launcher_mirror_is_memory(mirror) ||
        !launcher->crew.links[launcher->coordinator].is_local) {
        return;
    }
    snprintf(errand.folder, sizeof(errand.folder), "%s", mirror);
    session->makes_mirrors = run(session, "given nothing of the folder of mirrors", look_for_folder,
                                 &errand) == STATUS_END_OF_DATA;
}

void session_end_mirrors(struct session *session)
{
    struct errand errand = {.goes_on = false};
    if (session->makes_mirrors) {
        snprintf(errand.folder, sizeof(errand.folder), "%s", session->options.mirror);
        (void)run(session, "not removed the folder of mirrors", remove_empty_folder, &errand);
    }
}

enum status session_begin(struct session *session, const char *what, const struct job *job)
{
    session->disk_warn_s = job->stall_warn;
    session->disk_fail_s = job_disk_fail_s(job);
    launch_block_signals();
    launcher_default_folder(&session->options, what);
    enum status status = security_open(&session->options.security, &session->security);
    if (status != STATUS_OK) {
        return status;
    }
    status = hold_folder(session);
    if (status != STATUS_OK) {
        return status;
    }
    folder_lock_bequeath(&session->lock); // to agents: see folder_lock.h
    preflight_begin(&session->preflight, &session->launcher, &session->options, &session->hosts);
    session->preflight.program = session->program;
    return STATUS_OK;
}

enum exit_code session_exit_code(enum status status)
{
    return status == STATUS_MISMATCH ? EXIT_USAGE : exit_code(status); // see preflight_end
}

enum status session_end_preflight(struct session *session, const char *inner)
{
    enum status status = preflight_end(&session->preflight);
    const struct launcher_options *options = &session->options;
    bool goes_on = launcher_resumes_itself(options) ||
                   (options->resume[0] != '\0' && strcmp(options->resume, options->out) == 0);
    if (status != STATUS_OK) {
        return status;
    }
    return make(session, options->out, inner, goes_on);
}

enum status session_open_page(struct session *session)
{
    const struct launcher_options *options = &session->options;
    char url[SERIES_URL_BYTES];
    if (options->dashboard[0] == '\0') {
        return STATUS_OK;
    }
    enum status status = series_page_create(options->out, options->dashboard, &session->page);
    if (status != STATUS_OK) {
        return status;
    }
    series_page_url(session->page, url);
    printf("page of all runs: %s\n", url);
    fflush(stdout);
    return STATUS_OK;
}

void session_warn_of_restarts(const struct session *session, const struct job_list *jobs)
{
    const struct launcher_options *options = &session->options;
    if (options->restarts == 0 || options->mirror[0] != '\0' ||
        session->program != NULL) { // which keeps its own
        return;
    }
    for (size_t i = 0; i < jobs->count; i++) {
        if (job_list_at(jobs, i)->checkpoint_every.kind == CHECKPOINT_NEVER) {
            log_warn("without --checkpoint-every a job that has to be started again begins at its "
                     "first step");
            return;
        }
    }
}

void session_close(struct session *session)
{
    series_page_destroy(session->page);
    launcher_close(&session->launcher);
    release_folder(session);
    security_close(&session->security);
}
