/* ringside run: one job. */
#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/options/log_level.h"
#include "deploy/command/commands.h"
#include "deploy/hosts/host_options.h"
#include "deploy/hosts/launcher.h"
#include "deploy/hosts/launcher_options.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/launch.h"
#include "deploy/launch/preflight.h"
#include "deploy/report/run_folder.h"
#include "deploy/system/folder.h"
#include "deploy/system/folder_lock.h"

#include <jansson.h>

#include <stdio.h>

static enum status parse(int argc, char **argv, struct job *job, struct launcher_options *options,
                         struct host_options *hosts, bool *ret_is_done)
{
    struct option_program program = {
        .name = "ringside run",
        .usage = "ringside run [OPTION ...]",
        .summary =
            "Starts the servers and workers of one job, on this host or on others (-H), shows how "
            "it goes, and\nwrites a run folder.",
        .example = "  ringside run -n 2 --mode ring --model lenet5 --data shapes --epochs 3\n"
                   "  ringside run -H node1:2,node2:2 --mode ring --model cnn --data shapes\n",
        .sets = {job_option_set(job), launcher_option_set(options), host_option_set(hosts),
                 security_option_set(&options->security)},
        .set_count = 4,
    };
    enum status status = options_parse(&program, argc, argv, ret_is_done);
    if (status != STATUS_OK || *ret_is_done) {
        return status;
    }
    status = host_options_fill(hosts, options_was_given(&program, "workers"), &job->workers);
    if (status != STATUS_OK) {
        return status;
    }
    char error[OPTION_ERROR_BYTES];
    const struct job asked = *job;
    const struct job_list jobs = {job, 1, sizeof(*job)};
    status = job_resolve(job, error, sizeof(error));
    if (status == STATUS_OK) {
        status = job_check_effects(&program, &asked, &jobs, error, sizeof(error));
    }
    if (status != STATUS_OK) {
        log_error("%s", error);
    }
    return status == STATUS_OK ? handover_check(&options->security, job) : status;
}

/* The line that a person looks for. */
static void print_closing(const char *folder)
{
    struct run_folder run;
    if (run_folder_open(folder, &run) != STATUS_OK) {
        return;
    }
    char accuracy[32];
    run_folder_value(&run, "test_accuracy", accuracy, sizeof(accuracy));
    if (accuracy[0] != '\0') {
        run_folder_format(&run, "test_accuracy", accuracy, sizeof(accuracy));
        printf("test accuracy %s, ", accuracy);
    }
    printf("run folder %s\n", folder);
    run_folder_close(&run);
}

static enum exit_code run(struct launcher *launcher, const struct job *job,
                          const struct launcher_options *options, const struct host_options *hosts,
                          const struct security *security)
{
    static struct preflight preflight;
    preflight_begin(&preflight, launcher, options, hosts);
    preflight_try(&preflight, job);
    enum status status = preflight_end(&preflight);
    if (status == STATUS_OK) {
        status = folder_make(options->out, "logs");
    }
    if (status != STATUS_OK) {
        return exit_code(status);
    }
    struct launch_options launch = {
        .job = job,
        .folder = options->out,
        .port = options->port,
        .security = security,
        .log_level = log_level_choices[options->log_level].name,
        .shows_progress = true,
    };
    enum exit_code code = launch_job(launcher, &launch);
    print_closing(options->out);
    return code;
}

enum exit_code command_run(int argc, char **argv)
{
    static struct job job;
    static struct host_options hosts;
    static struct launcher launcher;
    struct launcher_options options;
    struct security security;
    bool is_done;
    if (parse(argc, argv, &job, &options, &hosts, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    char what[80];
    snprintf(what, sizeof(what), "%s-%s", mode_text(job.mode).text, job.model);
    launcher_default_folder(&options, what);
    launch_block_signals();
    enum status status = security_open(&options.security, &security);
    if (status != STATUS_OK) {
        return exit_code(status);
    }
    struct folder_lock lock;
    status = folder_lock_take(options.out, &lock);
    if (status != STATUS_OK) {
        security_close(&security);
        return exit_code(status);
    }
    enum exit_code code = run(&launcher, &job, &options, &hosts, &security);
    launcher_close(&launcher);
    folder_lock_release(&lock);
    security_close(&security);
    return code;
}
