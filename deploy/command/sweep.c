/* ringside sweep: a grid of jobs, each with several seeds.
 *
 * FOLDER/sweep.txt says what the sweep is. The same command again goes on where it stopped: runs
 * that were completed or have diverged are kept, all others run anew. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "common/job/job_options.h"
#include "common/options/log_level.h"
#include "deploy/command/commands.h"
#include "deploy/command/series_mirror.h"
#include "deploy/command/session.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/launch.h"
#include "deploy/launch/own_program.h"
#include "deploy/page/sweep_report.h"
#include "deploy/sweep/experiment.h"
#include "deploy/sweep/sweep_file.h"
#include "deploy/sweep/sweep_plan.h"
#include "deploy/system/command_text.h"
#include "deploy/system/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 256
#define PATH_BYTES    (LAUNCH_PATH_MAX + 128)

// experiment_expand and sweep_take_arguments read them.
static const struct option own_rows[] = {
    {.name = "experiment",
     .type = OPTION_TEXT,
     .metavar = "FILE",
     .help = "INI file with sections [job], [grid] and [sweep]; the command line overrides it"},
    {.name = "grid",
     .type = OPTION_LIST,
     .metavar = "NAME=VALUES",
     .help = "an option and its values; repeat it for each axis: --grid workers=1,2,4"},
    {.name = "repeat",
     .type = OPTION_U32,
     .fallback = "1",
     .min = 1,
     .max = SWEEP_REPEAT_MAX,
     .metavar = "SEEDS",
     .help = "jobs of each combination, with consecutive seeds"},
};

struct sweep {
    struct session session;
    struct sweep_arguments arguments;
    struct sweep_plan plan;
    struct run_folder **summaries; // (plan.count), owned; NULL: not run
    char command[COMMAND_TEXT_BYTES];
};

static struct job_list jobs_of(const struct sweep *sweep)
{
    const struct sweep_plan *plan = &sweep->plan;
    return (struct job_list){&plan->runs[0].job, plan->count, sizeof(plan->runs[0])};
}

/* Refuses options, axes included, that have no effect in any run. */
static enum status check_effects(const struct sweep *sweep, const struct option_program *program,
                                 const struct job *asked, char error[OPTION_ERROR_BYTES])
{
    const struct job_list jobs = jobs_of(sweep);
    enum status status = job_check_effects(program, asked, &jobs, error, OPTION_ERROR_BYTES);
    for (size_t i = 0; i < sweep->arguments.axis_count && status == STATUS_OK; i++) {
        char name[sizeof(sweep->arguments.names[0])];
        for (const char *at = sweep->arguments.names[i]; *at != '\0' && status == STATUS_OK;) {
            size_t size = strcspn(at, "+");
            snprintf(name, sizeof(name), "%.*s", (int)size, at);
            status = job_check_effect(name, &jobs, error, OPTION_ERROR_BYTES);
            at += size + (at[size] == '+');
        }
    }
    return status;
}

/* Refuses axes by which some runs would be of the program, and others not. */
static enum status check_models(const struct sweep *sweep, char error[OPTION_ERROR_BYTES])
{
    bool has_program = sweep->session.program != NULL;
    for (size_t i = 0; i < sweep->plan.count; i++) {
        const struct job *job = &sweep->plan.runs[i].job;
        if (job_is_external(job) != has_program) {
            snprintf(error, OPTION_ERROR_BYTES,
                     has_program
                         ? "--model %s is one of ours, and the runs are of a program of your own: "
                           "leave model out of --grid"
                         : "--model %s is a program of your own, and none is named: add it behind "
                           "`--`, as in `-- python3 train.py`",
                     job->model);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

/* What sweep.txt keeps of options that are not the job's. */
static void describe_losses(const struct launcher_options *options,
                            char ret_text[COMMAND_TEXT_BYTES])
{
    char restarts[16];
    const char *words[5] = {NULL};
    size_t count = 0;
    snprintf(restarts, sizeof(restarts), "%u", options->restarts);
    if (options->mirror[0] != '\0') {
        words[count++] = "--mirror";
        words[count++] = options->mirror;
    }
    if (options->restarts > 0) {
        words[count++] = "--restarts";
        words[count] = restarts;
    }
    (void)command_text_write_line(words, ret_text, COMMAND_TEXT_BYTES); // a path of more is refused
}

/* Expands the job, which becomes one of the program if there is one. */
static enum status plan_runs(struct sweep *sweep, const struct option_program *program,
                             struct job *job, char error[OPTION_ERROR_BYTES])
{
    const struct job asked = *job;
    enum status status =
        session_take_program(&sweep->session, program, job, error, OPTION_ERROR_BYTES);
    if (status != STATUS_OK) {
        return status;
    }
    status = sweep_make_plan(job, &sweep->arguments, &sweep->plan, error);
    if (status != STATUS_OK) {
        return status;
    }
    if (sweep->session.program != NULL) {
        command_text_write_program(sweep->session.program, sweep->plan.program);
    }
    if (strchr(sweep->plan.program, '\n') != NULL) {
        snprintf(error, OPTION_ERROR_BYTES,
                 "an argument behind `--` has several lines, and %s keeps the command on one: put "
                 "them into a file",
                 SWEEP_FILE_NAME);
        return STATUS_INVALID;
    }
    describe_losses(&sweep->session.options, sweep->plan.losses);
    status = check_models(sweep, error);
    return status == STATUS_OK ? check_effects(sweep, program, &asked, error) : status;
}

static enum status parse(int argc, char **argv, struct sweep *sweep, bool *ret_is_done)
{
    struct job job;
    struct experiment experiment;
    char *all[ARGUMENTS_MAX + EXPERIMENT_LINES_MAX + 1];
    char *rest[ARGUMENTS_MAX + EXPERIMENT_LINES_MAX + 1], error[OPTION_ERROR_BYTES];
    int all_count, rest_count;
    sweep->session.program = own_program_cut(&argc, argv);
    if (argc >= ARGUMENTS_MAX) {
        log_error("too many arguments");
        return STATUS_INVALID;
    }
    struct option_program program = {
        .name = "ringside sweep",
        .taken_before = {.title = "The sweep",
                         .rows = own_rows,
                         .count = sizeof(own_rows) / sizeof(own_rows[0])},
        .usage =
            "ringside sweep [--experiment FILE] [--grid NAME=VALUES ...] [--repeat R] [OPTION ...] "
            "[-- PROGRAM ...]",
        .summary =
            "Runs a job with every combination of the values of some of its options, each "
            "with R seeds, and ends in a\ntable and a report: means with their 95 % "
            "intervals. Values are separated by commas, or by bars where\nthey hold commas. "
            "Options that change together are joined: optimizer+lr=sgd+0.1,adam+0.001. The "
            "same\ncommand with the same --out goes on where it stopped. FILE is an INI file "
            "with sections [job], [grid]\nand [sweep] (repeat); options of the command line "
            "win over its own. PROGRAM is as of\n`ringside run`: it trains a model of its own.",
        .example = "  ringside sweep --grid mode=ring,ps-sync,ps-async --grid workers=1,2,4\n"
                   "  ringside sweep --mode ps-async --grid "
                   "order=seeded:constant:0,seeded:constant:4 --repeat 3\n"
                   "  ringside sweep --experiment bench/experiments/staleness.ini\n"
                   "  ringside sweep -n 2 --grid mode=ring,ps-async --repeat 3 -- python3 "
                   "train.py\n",
        .sets = {job_option_set(&job), launcher_option_set(&sweep->session.options),
                 launcher_series_option_set(&sweep->session.options),
                 host_option_set(&sweep->session.hosts),
                 security_option_set(&sweep->session.options.security)},
        .set_count = 5,
        .takes_program = true,
    };
    enum status status = experiment_expand(argc, argv, &experiment, &all_count, all);
    if (status != STATUS_OK) {
        return status;
    }
    status = sweep_take_arguments(all_count, all, &sweep->arguments, &rest_count, rest, error);
    if (status != STATUS_OK) {
        goto refuse;
    }
    status = options_parse(&program, rest_count, rest, ret_is_done);
    if (status != STATUS_OK || *ret_is_done) {
        return status;
    }
    status = host_options_fill(&sweep->session.hosts, options_was_given(&program, "workers"),
                               job.processes, &job.workers);
    if (status != STATUS_OK) {
        return status;
    }
    status = plan_runs(sweep, &program, &job, error);
    if (status != STATUS_OK) {
        goto refuse;
    }
    const struct job_list jobs = jobs_of(sweep);
    status = series_mirror_check(&sweep->session.options, &jobs);
    for (size_t i = 0; i < sweep->plan.count && status == STATUS_OK; i++) {
        status = launch_check(&sweep->session.options.security, &sweep->plan.runs[i].job);
    }
    return status;
refuse:
    log_error("%s", error);
    return status;
}

static void forget_summary(struct sweep *sweep, size_t index)
{
    if (sweep->summaries[index] != NULL) {
        run_folder_close(sweep->summaries[index]);
        free(sweep->summaries[index]);
        sweep->summaries[index] = NULL;
    }
}

static enum exit_code run_one(struct sweep *sweep, size_t index)
{
    const struct sweep_run *run = &sweep->plan.runs[index];
    const struct launcher_options *options = &sweep->session.options;
    char folder[PATH_BYTES], mirror[LAUNCH_MIRROR_BYTES];
    snprintf(folder, sizeof(folder), "%s/%s", options->out, run->name);
    series_mirror_of_run(options, &run->job, run->name, mirror);
    forget_summary(sweep, index);
    enum status status = session_remove_run(&sweep->session, folder, mirror);
    if (status != STATUS_OK) { // of a run without a result
        return session_exit_code(status);
    }
    if (session_make_folder(&sweep->session, folder, FOLDER_LOGS_NAME) != STATUS_OK) {
        return EXIT_FAILED;
    }
    const struct launch_options launch = {
        .job = &run->job,
        .folder = folder,
        .mirror = mirror,
        .port = options->port,
        .restarts = options->restarts,
        .security = &sweep->session.security,
        .log_level = log_level_choices[options->log_level].name,
        .shows_progress = false,
        .program = sweep->session.program,
    };
    enum exit_code code = launch_job(&sweep->session.launcher, &launch);
    sweep->summaries[index] = sweep_read_run(options->out, run->name);
    return code;
}

/* Whether a run need not be repeated: it was completed or diverged, which is a result too. */
static bool is_result(const struct run_folder *summary)
{
    unsigned long long step;
    return summary != NULL &&
           (run_folder_is_completed(summary) || run_folder_has_diverged(summary, &step));
}

/* "[12/45] mode=ring seed 2: 87.31 %, 3.2 s, ETA 2 min" */
static void print_run(const struct sweep *sweep, size_t index, bool is_interrupted, double eta_s)
{
    const struct sweep_run *run = &sweep->plan.runs[index];
    const struct run_folder *summary = sweep->summaries[index];
    char accuracy[RUN_FOLDER_FORMAT_BYTES] = "-", seconds[32] = "-", outcome[64] = "FAILED";
    if (summary != NULL) {
        run_folder_format(summary, "test_accuracy", accuracy, sizeof(accuracy));
        run_folder_format(summary, "seconds", seconds, sizeof(seconds));
    }
    if (is_interrupted) {
        printf("[%zu/%zu] %s seed %llu: interrupted\n", index + 1, sweep->plan.count, run->label,
               (unsigned long long)run->job.seed);
        fflush(stdout);
        return;
    }
    if (is_result(summary)) {
        run_folder_outcome(summary, outcome, sizeof(outcome));
    }
    bool is_plain = strcmp(outcome, "completed") == 0; // nothing else is to be said of it
    printf("[%zu/%zu] %s seed %llu: %s%stest accuracy %s, %s s, ETA %.0f s\n", index + 1,
           sweep->plan.count, run->label, (unsigned long long)run->job.seed,
           is_plain ? "" : outcome, is_plain ? "" : ", ", accuracy, seconds, eta_s);
    fflush(stdout);
}

/* All runs; those that fail are kept and named, and the next one runs. */
static enum exit_code run_all(struct sweep *sweep)
{
    enum exit_code verdict = EXIT_COMPLETED;
    uint64_t started_ms = clock_now_ms();
    size_t done = 0, kept = 0;
    for (size_t i = 0; i < sweep->plan.count; i++) {
        kept += is_result(sweep->summaries[i]);
    }
    if (kept > 0) {
        printf("%zu of %zu runs are there already\n", kept, sweep->plan.count);
    }
    for (size_t i = 0; i < sweep->plan.count; i++) {
        if (sweep->session.launcher.crew.interrupts > 0) {
            return EXIT_INTERRUPTED;
        }
        if (is_result(sweep->summaries[i])) {
            continue;
        }
        enum exit_code code = run_one(sweep, i);
        verdict = code == EXIT_COMPLETED || is_result(sweep->summaries[i]) ? verdict : code;
        done++;
        double each_s = (double)(clock_now_ms() - started_ms) / 1000 / (double)done;
        print_run(sweep, i, code == EXIT_INTERRUPTED,
                  each_s * (double)(sweep->plan.count - kept - done));
        if (code == EXIT_INTERRUPTED && sweep->session.has_disk_failed) {
            return code; // of which the launcher does not know
        }
    }
    return verdict;
}

static enum status open_summaries(struct sweep *sweep)
{
    sweep->summaries = calloc(sweep->plan.count, sizeof(struct run_folder *));
    for (size_t i = 0; sweep->summaries != NULL && i < sweep->plan.count; i++) {
        sweep->summaries[i] = sweep_read_run(sweep->session.options.out, sweep->plan.runs[i].name);
    }
    return sweep->summaries != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Tries all jobs before anything is written; afterwards the sweep's folder says what it is. */
static enum status begin_sweep(struct sweep *sweep)
{
    struct session *session = &sweep->session;
    enum status status = session_begin(session, "sweep", &sweep->plan.runs[0].job);
    if (status != STATUS_OK) {
        return status;
    }
    for (size_t i = 0; i < sweep->plan.count; i++) {
        preflight_try(&session->preflight, &sweep->plan.runs[i].job);
    }
    status = preflight_end(&session->preflight);
    if (status != STATUS_OK) {
        return status;
    }
    status = sweep_file_open(session->options.out, &sweep->plan, sweep->command);
    if (status != STATUS_OK) {
        return status;
    }
    const struct job_list jobs = jobs_of(sweep);
    session_warn_of_restarts(session, &jobs);
    status = open_summaries(sweep);
    return status == STATUS_OK ? session_open_page(session) : status;
}

static enum exit_code run_sweep(struct sweep *sweep)
{
    enum status status = begin_sweep(sweep);
    if (status != STATUS_OK) {
        return session_exit_code(status);
    }
    session_begin_mirrors(&sweep->session);
    enum exit_code code = run_all(sweep);
    session_end_mirrors(&sweep->session);
    const struct sweep_results results = {&sweep->plan, sweep->summaries};
    status = sweep_report_write(sweep->session.options.out, &results, sweep->command);
    return status != STATUS_OK && code == EXIT_COMPLETED ? EXIT_FAILED : code;
}

enum exit_code command_sweep(int argc, char **argv)
{
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    bool is_done = false;
    if (sweep == NULL) {
        return EXIT_FAILED;
    }
    enum exit_code code = EXIT_USAGE;
    command_text_write(argc, argv, sweep->command);
    if (parse(argc, argv, sweep, &is_done) == STATUS_OK) {
        code = is_done ? EXIT_COMPLETED : run_sweep(sweep);
    }
    for (size_t i = 0; sweep->summaries != NULL && i < sweep->plan.count; i++) {
        forget_summary(sweep, i);
    }
    free(sweep->summaries);
    sweep_plan_free(&sweep->plan);
    session_close(&sweep->session);
    free(sweep);
    return code;
}
