/* ringside run: one job. */
#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/options/log_level.h"
#include "deploy/command/commands.h"
#include "deploy/command/session.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/launch.h"
#include "deploy/launch/own_program.h"
#include "deploy/report/run_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status parse(int argc, char **argv, struct job *job, struct session *session,
                         bool *ret_is_done)
{
    session->program = own_program_cut(&argc, argv);
    struct launcher_options *options = &session->options;
    struct host_options *hosts = &session->hosts;
    struct option_program program = {
        .name = "ringside run",
        .usage = "ringside run [OPTION ...] [-- PROGRAM [ARGUMENT ...]]",
        .summary =
            "Starts the servers and workers of one job, on this host or on others (-H), shows how "
            "it goes, and\nwrites a run folder. PROGRAM trains a model of its own in the place of "
            "`worker`: with ringside.torch,\nor by libringside.",
        .example = "  ringside run -n 2 --mode ring --model lenet5 --data shapes --epochs 3\n"
                   "  ringside run -H node1:2,node2:2 --mode ring --model cnn --data shapes\n"
                   "  ringside run -n 2 --mode ps-async -- python3 train.py --epochs 3\n",
        .sets = {job_option_set(job), launcher_option_set(options), host_option_set(hosts),
                 security_option_set(&options->security), launcher_run_option_set(options)},
        .set_count = 5,
        .takes_program = true,
    };
    enum status status = options_parse(&program, argc, argv, ret_is_done);
    if (status != STATUS_OK || *ret_is_done) {
        return status;
    }
    status = host_options_fill(hosts, options_was_given(&program, "workers"), job->processes,
                               &job->workers);
    if (status != STATUS_OK) {
        return status;
    }
    char error[OPTION_ERROR_BYTES];
    const struct job asked = *job;
    const struct job_list jobs = {job, 1, sizeof(*job)};
    status = session_take_program(session, &program, job, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    status = launcher_resume_folder(options);
    if (status != STATUS_OK) {
        return status;
    }
    status = job_resolve(job, error, sizeof(error));
    if (status == STATUS_OK) {
        status = job_check_effects(&program, &asked, &jobs, error, sizeof(error));
    }
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    status = launcher_check_mirror(options, job);
    return status == STATUS_OK ? launch_check(&options->security, job) : status;
}

/* The line that a person looks for. Why a run has no summary was said before. */
static void print_closing(const char *folder)
{
    struct run_folder run;
    if (!run_folder_has_summary(folder) || run_folder_open(folder, &run) != STATUS_OK) {
        return;
    }
    char accuracy[RUN_FOLDER_FORMAT_BYTES];
    run_folder_value(&run, "test_accuracy", accuracy, sizeof(accuracy));
    if (accuracy[0] != '\0') {
        run_folder_format(&run, "test_accuracy", accuracy, sizeof(accuracy));
        printf("test accuracy %s, ", accuracy);
    }
    if (run_folder_number(&run, "best_accuracy") > run_folder_number(&run, "test_accuracy")) {
        run_folder_format(&run, "best_accuracy", accuracy, sizeof(accuracy));
        printf("best %s (epoch %.0f), ", accuracy, run_folder_number(&run, "best_epoch"));
    }
    printf("run folder %s\n", folder);
    run_folder_close(&run);
}

/* Tries the job before anything is written. */
static enum status begin(struct session *session, const struct job *job)
{
    char what[80];
    size_t prefix = job_is_external(job) ? strlen(JOB_EXTERNAL_PREFIX) : 0;
    snprintf(what, sizeof(what), "%s-%.40s", mode_text(job->mode).text, job->model + prefix);
    enum status status = session_begin(session, what, job);
    if (status != STATUS_OK) {
        return status;
    }
    preflight_try(&session->preflight, job);
    status = session_end_preflight(session, FOLDER_LOGS_NAME);
    if (status == STATUS_OK) {
        preflight_say_memory(&session->preflight, job);
    }
    return status;
}

static enum exit_code run(struct session *session, const struct job *job)
{
    const struct launcher_options *options = &session->options;
    enum status status = begin(session, job);
    if (status != STATUS_OK) {
        return session_exit_code(status);
    }
    const struct job_list jobs = {job, 1, sizeof(*job)};
    session_warn_of_restarts(session, &jobs);
    const struct launch_options launch = {
        .job = job,
        .folder = options->out,
        .resume = options->resume,
        .mirror = options->mirror,
        .port = options->port,
        .health_port = options->health_port,
        .restarts = options->restarts,
        .security = &session->security,
        .log_level = log_level_choices[options->log_level].name,
        .shows_progress = true,
        .dashboard = options->dashboard,
        .has_tensorboard = options->tensorboard,
        .shows_ranks = options->shows_ranks,
        .program = session->program,
    };
    enum exit_code code = launch_job(&session->launcher, &launch);
    bool may_read = !session->launcher.is_folder_held;
    if (may_read && (code == EXIT_COMPLETED || options->resume[0] == '\0')) {
        print_closing(options->out);
    }
    return code;
}

enum exit_code command_run(int argc, char **argv)
{
    struct job job;
    struct session *session = calloc(1, sizeof(*session));
    bool is_done = false;
    if (session == NULL) {
        return EXIT_FAILED;
    }
    enum exit_code code = EXIT_USAGE;
    if (parse(argc, argv, &job, session, &is_done) == STATUS_OK) {
        code = is_done ? EXIT_COMPLETED : run(session, &job);
    }
    session_close(session);
    free(session);
    return code;
}
