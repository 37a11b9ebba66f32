/* ringside compare: the same job in several modes, one after the other. */
#include "common/base/log.h"
#include "common/job/faults.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "common/job/job_modes.h"
#include "common/job/job_options.h"
#include "common/options/log_level.h"
#include "deploy/command/commands.h"
#include "deploy/command/compare_predictions.h"
#include "deploy/command/series_mirror.h"
#include "deploy/command/session.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/launch.h"
#include "deploy/launch/own_program.h"
#include "deploy/page/report.h"
#include "deploy/sweep/grid.h"
#include "deploy/sweep/rounds.h"
#include "deploy/sweep/sweep_plan.h"
#include "deploy/system/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 256

// Of --input-gap where --repeat does not say: the fewest whose spread says something.
#define INPUT_GAP_ROUNDS 3

// grid_take_lists reads it.
static const struct option own_rows[] = {
    {.name = "modes",
     .type = OPTION_TEXT,
     .fallback = "local,ps-sync,ring",
     .metavar = "LIST",
     .help = "the designs to compare, separated by commas"},
};

/* What is asked of a comparison as a whole. */
struct comparison_options {
    uint32_t repeat; // rounds; 0: as many as are usual
    bool has_input_gap;
    struct compare_prediction_options predictions;
};

#define FIELD(kind, field) OPTION_FIELD(kind, comparison_options, field)

static const struct option round_rows[] = {
    {.name = "input-gap",
     FIELD(FLAG, has_input_gap),
     .fallback = "false",
     .help = "run each job on synthetic data of the same shape and classes, too, in turn, and say "
             "how far its real input falls behind, in percent of images per second"},
    {.name = "repeat",
     FIELD(U32, repeat),
     .fallback = "0",
     OPTION_RANGE(0, SWEEP_REPEAT_MAX),
     .metavar = "ROUNDS",
     .help = "run all jobs so many times, in turn, each round with the next seed, from --seed on; "
             "0: once, with --input-gap three times"},
    {.name = "predict",
     FIELD(FLAG, predictions.is_asked),
     .fallback = "false",
     .help = "predict each job before it runs (ringside predict), and show the prediction beside "
             "what was measured; without --costs and --network, calibrate first"},
    {.name = "costs",
     FIELD(TEXT, predictions.costs),
     .fallback = "",
     .metavar = "FILE",
     .help = "of --predict: what a worker's step costs, as ringside calibrate measures it"},
    {.name = "network",
     FIELD(TEXT, predictions.network),
     .fallback = "",
     .metavar = "FILE",
     .help = "of --predict: the hosts and their links; of one host, it need not have a place for "
             "every worker"},
};

/* The runs of one comparison. */
struct comparison {
    struct session session;
    struct comparison_options options;
    struct grid_cell cells[GRID_CELLS_MAX];
    size_t cell_count;
    struct report report;
    struct compare_predictions *predictions; // owned; NULL: none are asked for
};

/* Whether the job has a rank or shard that a fault names: local has rank 0 alone. */
static bool may_strike(const struct job *job)
{
    const struct faults faults = faults_of(job);
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        if (fault->place == FAULT_AT_RANK ? fault->number < job->workers : job_has_servers(job)) {
            return true;
        }
    }
    return false;
}

/* A run without faults for each one that has some, to compare it with. Where the grid is full there
 * are fewer. Runs that no fault strikes are as if they had none. */
static void add_undisturbed(struct comparison *comparison)
{
    size_t count = comparison->cell_count;
    for (size_t i = 0; i < count; i++) {
        struct grid_cell *cell = &comparison->cells[i];
        struct grid_cell undisturbed = *cell;
        snprintf(undisturbed.job.faults, sizeof(undisturbed.job.faults), "none");
        snprintf(undisturbed.name, sizeof(undisturbed.name), "%.50s-no-fault", cell->name);
        if (!may_strike(&cell->job)) {
            cell->job = undisturbed.job;
        } else if (comparison->cell_count < GRID_CELLS_MAX) {
            comparison->cells[comparison->cell_count++] = undisturbed;
        }
    }
}

static struct job_list jobs_of(const struct comparison *comparison)
{
    return (struct job_list){&comparison->cells[0].job, comparison->cell_count,
                             sizeof(comparison->cells[0])};
}

/* Crosses the lists with the job, which becomes one of the program if there is one. */
static enum status make_cells(struct comparison *comparison, const struct option_program *program,
                              struct job *job, const struct grid_lists *lists,
                              char error[OPTION_ERROR_BYTES])
{
    const struct job asked = *job;
    enum status status =
        session_take_program(&comparison->session, program, job, error, OPTION_ERROR_BYTES);
    if (status != STATUS_OK) {
        return status;
    }
    status = grid_make_cells(job, lists, comparison->cells, &comparison->cell_count, error);
    if (status != STATUS_OK) {
        return status;
    }
    const struct job_list jobs = jobs_of(comparison);
    return job_check_effects(program, &asked, &jobs, error, OPTION_ERROR_BYTES);
}

/* More runs beside those of the grid: without faults, on synthetic data, in several rounds. */
static enum status add_runs(struct comparison *comparison, char error[OPTION_ERROR_BYTES])
{
    const struct comparison_options *options = &comparison->options;
    uint32_t usual = 1;
    if (options->has_input_gap) {
        enum status status = rounds_check_input_gap(&comparison->cells[0].job, error);
        if (status == STATUS_OK) {
            status = rounds_add_synthetic(comparison->cells, &comparison->cell_count, error);
        }
        if (status != STATUS_OK) {
            return status;
        }
        usual = INPUT_GAP_ROUNDS;
    }
    add_undisturbed(comparison);
    return rounds_repeat(comparison->cells, &comparison->cell_count,
                         options->repeat > 0 ? options->repeat : usual, error);
}

static enum status make_runs(struct comparison *comparison, const struct option_program *program,
                             struct job *job, const struct grid_lists *lists,
                             char error[OPTION_ERROR_BYTES])
{
    enum status status = make_cells(comparison, program, job, lists, error);
    return status == STATUS_OK ? add_runs(comparison, error) : status;
}

static enum status open_predictions(struct comparison *comparison,
                                    const struct option_program *program)
{
    struct compare_prediction_options *options = &comparison->options.predictions;
    options->has_hosts = host_options_name_hosts(&comparison->session.hosts);
    options->has_keys = !comparison->session.options.security.insecure;
    return compare_predictions_open(options, program, &comparison->predictions);
}

static enum status check_runs(const struct comparison *comparison, const struct job *job)
{
    const struct launcher_options *options = &comparison->session.options;
    const struct job_list jobs = jobs_of(comparison);
    enum status status = series_mirror_check(options, &jobs);
    return status == STATUS_OK ? launch_check(&options->security, job) : status;
}

static enum status parse(int argc, char **argv, struct comparison *comparison, bool *ret_is_done)
{
    struct job job;
    struct grid_lists lists;
    char *rest[ARGUMENTS_MAX], error[OPTION_ERROR_BYTES];
    int rest_count;
    comparison->session.program = own_program_cut(&argc, argv);
    if (argc >= ARGUMENTS_MAX) {
        log_error("too many arguments");
        return STATUS_INVALID;
    }
    struct option_program program = {
        .name = "ringside compare",
        .usage = "ringside compare [--modes LIST] [OPTION ...] [-- PROGRAM [ARGUMENT ...]]",
        .taken_before = {.title = "The comparison",
                         .rows = own_rows,
                         .count = sizeof(own_rows) / sizeof(own_rows[0])},
        .summary = "Runs the same job in several modes, one "
                   "after the other, and\nsets them side by side: table, plots, report. --workers, "
                   "--servers and --transport take lists as\nwell (-n 1,2,4), which are crossed. "
                   "PROGRAM is as of `ringside run`: it trains "
                   "a model of its own,\nin each mode.",
        .example = "  ringside compare -n 4 --modes local,ps-sync,ring --global-batch 128\n"
                   "  ringside compare -n 2 --modes ring,ps-sync,ps-async -- python3 train.py\n"
                   "  ringside compare -n 1,2 --modes ring --data images:/data --input-gap\n"
                   "  ringside compare -n 4 --modes ring,ps-sync --transport tcp --predict\n",
        .sets = {job_option_set(&job),
                 launcher_option_set(&comparison->session.options),
                 launcher_series_option_set(&comparison->session.options),
                 host_option_set(&comparison->session.hosts),
                 security_option_set(&comparison->session.options.security),
                 {.title = "Rounds",
                  .rows = round_rows,
                  .count = sizeof(round_rows) / sizeof(round_rows[0]),
                  .values = &comparison->options}},
        .set_count = 6,
        .takes_program = true,
    };
    enum status status = grid_take_lists(argc, argv, &lists, &rest_count, rest, error);
    if (status != STATUS_OK) {
        goto refuse;
    }
    status = options_parse(&program, rest_count, rest, ret_is_done);
    if (status != STATUS_OK || *ret_is_done) {
        return status;
    }
    if (options_was_given(&program, "mode")) {
        snprintf(error, sizeof(error), "compare takes its modes from --modes: --modes %s",
                 mode_text(job.mode).text);
        status = STATUS_INVALID;
        goto refuse;
    }
    bool has_workers = options_was_given(&program, "workers") || lists.workers[0] != '\0';
    status =
        host_options_fill(&comparison->session.hosts, has_workers, job.processes, &job.workers);
    if (status != STATUS_OK) {
        return status;
    }
    status = open_predictions(comparison, &program);
    if (status != STATUS_OK) {
        return status;
    }
    status = make_runs(comparison, &program, &job, &lists, error);
    if (status != STATUS_OK) {
        goto refuse;
    }
    return check_runs(comparison, &job);
refuse:
    log_error("%s", error);
    return status;
}

static enum exit_code run_cell(struct comparison *comparison, size_t index)
{
    const struct grid_cell *cell = &comparison->cells[index];
    const struct launcher_options *options = &comparison->session.options;
    char folder[LAUNCH_PATH_MAX], mirror[LAUNCH_MIRROR_BYTES];
    snprintf(folder, sizeof(folder), "%s/%s", options->out, cell->name);
    series_mirror_of_run(options, &cell->job, cell->name, mirror);
    printf("\n[%zu/%zu] %s\n", index + 1, comparison->cell_count, cell->name);
    fflush(stdout);
    if (session_make_folder(&comparison->session, folder, FOLDER_LOGS_NAME) != STATUS_OK) {
        return EXIT_FAILED;
    }
    struct launch_options launch = {
        .job = &cell->job,
        .folder = folder,
        .mirror = mirror,
        .port = options->port,
        .restarts = options->restarts,
        .security = &comparison->session.security,
        .log_level = log_level_choices[options->log_level].name,
        .shows_progress = true,
        .program = comparison->session.program,
    };
    struct compare_prediction prediction;
    compare_predictions_make(comparison->predictions, &cell->job, &prediction);
    enum exit_code code = launch_job(&comparison->session.launcher, &launch);
    if (compare_predictions_write(comparison->predictions, &prediction, folder) != STATUS_OK ||
        report_add(&comparison->report, folder) != STATUS_OK) {
        return EXIT_FAILED;
    }
    return code;
}

/* All cells; a failed one is kept, and the next one runs. */
static enum exit_code run_all(struct comparison *comparison)
{
    enum exit_code verdict = EXIT_COMPLETED;
    for (size_t i = 0; i < comparison->cell_count; i++) {
        if (comparison->session.launcher.crew.interrupts > 0) {
            return EXIT_INTERRUPTED;
        }
        enum exit_code code = run_cell(comparison, i);
        verdict = code != EXIT_COMPLETED ? code : verdict;
    }
    return verdict;
}

/* Tries every cell before anything is written. */
static enum status begin(struct comparison *comparison)
{
    enum status status = session_begin(&comparison->session, "compare", &comparison->cells[0].job);
    if (status != STATUS_OK) {
        return status;
    }
    for (size_t i = 0; i < comparison->cell_count; i++) {
        preflight_try(&comparison->session.preflight, &comparison->cells[i].job);
    }
    status = session_end_preflight(&comparison->session, NULL);
    if (status == STATUS_OK) {
        const struct job_list jobs = jobs_of(comparison);
        session_warn_of_restarts(&comparison->session, &jobs);
    }
    return status == STATUS_OK ? session_open_page(&comparison->session) : status;
}

/* What predictions need, before the first job runs. */
static enum status calibrate(struct comparison *comparison)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < comparison->cell_count && status == STATUS_OK; i++) {
        status = compare_predictions_calibrate(comparison->predictions, &comparison->cells[i].job,
                                               comparison->session.options.out);
    }
    return status;
}

static enum exit_code run_comparison(struct comparison *comparison)
{
    enum status status = begin(comparison);
    if (status == STATUS_OK) {
        status = calibrate(comparison);
    }
    if (status != STATUS_OK) {
        return session_exit_code(status);
    }
    session_begin_mirrors(&comparison->session);
    enum exit_code code = run_all(comparison);
    session_end_mirrors(&comparison->session);
    status = report_write(&comparison->report, comparison->session.options.out);
    return status != STATUS_OK && code == EXIT_COMPLETED ? EXIT_FAILED : code;
}

enum exit_code command_compare(int argc, char **argv)
{
    struct comparison *comparison = calloc(1, sizeof(*comparison));
    bool is_done = false;
    if (comparison == NULL) {
        return EXIT_FAILED;
    }
    enum exit_code code = EXIT_USAGE;
    command_text_write(argc, argv, comparison->report.command);
    if (parse(argc, argv, comparison, &is_done) == STATUS_OK) {
        code = is_done ? EXIT_COMPLETED : run_comparison(comparison);
    }
    session_close(&comparison->session);
    report_finish(&comparison->report);
    compare_predictions_close(comparison->predictions);
    free(comparison);
    return code;
}
