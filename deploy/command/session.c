/* Opens what a command works with, and closes it. */
#include "deploy/command/session.h"

#include "common/thread/slow_disk.h"
#include "deploy/launch/launch.h"
#include "deploy/launch/own_program.h"
#include "deploy/system/folder.h"
#include "deploy/system/process.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct folder_lock lock;
    enum status status;
};

/* While the disk is waited for. Signals are blocked, and nobody has taken them yet. */
static bool is_still_wanted(void *context)
{
    sigset_t ending, pending, both;
    (void)context;
    process_ending_signals(&ending);
    return sigpending(&pending) != 0 || sigandset(&both, &ending, &pending) != 0 ||
           sigisemptyset(&both);
}

/* STATUS_OK: it was run. STATUS_NO_MEMORY: it was not. Otherwise the errand is gone. */
static enum status run(const struct session *session, const char *lacks, void (*work)(void *data),
                       struct errand *errand)
{
    const struct slow_disk_wait wait = {
        .warn_s = session->disk_warn_s, .fail_s = session->disk_fail_s, .turn = is_still_wanted};
    const struct slow_disk_work what = {
        .lacks = lacks, .path = session->options.out, .run = work, .data = errand};
    return slow_disk_await(&wait, &what);
}

static void take_lock(void *data)
{
    struct errand *errand = data;
    errand->status = folder_lock_take(errand->folder, &errand->lock);
}

static enum status hold_folder(struct session *session)
{
    struct errand *errand = calloc(1, sizeof(*errand));
    if (errand == NULL) {
        return STATUS_NO_MEMORY;
    }
    snprintf(errand->folder, sizeof(errand->folder), "%s", session->options.out);
    enum status status = run(session, "not locked the run folder", take_lock, errand);
    if (slow_disk_is_given_up(status)) {
        return status; // which leaves it to the thread
    }
    if (status == STATUS_OK) {
        status = errand->status;
        session->lock = errand->lock;
    }
    free(errand);
    return status;
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
    return goes_on ? folder_go_on(options->out, inner) : folder_make(options->out, inner);
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

void session_close(struct session *session)
{
    series_page_destroy(session->page);
    launcher_close(&session->launcher);
    folder_lock_release(&session->lock);
    security_close(&session->security);
}
