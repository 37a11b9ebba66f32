/* ringside compare: the same job in several modes, one after the other. */
#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "common/job/job_options.h"
#include "common/options/log_level.h"
#include "deploy/command/commands.h"
#include "deploy/hosts/host_options.h"
#include "deploy/hosts/launcher.h"
#include "deploy/hosts/launcher_options.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/launch.h"
#include "deploy/launch/preflight.h"
#include "deploy/report/report.h"
#include "deploy/sweep/grid.h"
#include "deploy/system/folder.h"
#include "deploy/system/folder_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 256

// grid_take_lists reads it.
static const struct option own_rows[] = {
    {.name = "modes",
     .type = OPTION_TEXT,
     .fallback = "local,ps-sync,ring",
     .metavar = "LIST",
     .help = "the designs to compare, separated by commas"},
};

/* The runs of one comparison. */
struct comparison {
    struct launcher_options options;
    struct host_options hosts;
    struct launcher launcher;
    struct preflight preflight;
    struct security security;
    struct folder_lock lock;
    struct grid_cell cells[GRID_CELLS_MAX];
    size_t cell_count;
    struct report report;
};

static enum status parse(int argc, char **argv, struct comparison *comparison, bool *ret_is_done)
{
    static struct job job;
    struct grid_lists lists;
    char *rest[ARGUMENTS_MAX], error[OPTION_ERROR_BYTES];
    int rest_count;
    if (argc >= ARGUMENTS_MAX) {
        log_error("too many arguments");
        return STATUS_INVALID;
    }
    struct option_program program = {
        .name = "ringside compare",
        .usage = "ringside compare [--modes LIST] [OPTION ...]",
        .taken_before = {.title = "The comparison",
                         .rows = own_rows,
                         .count = sizeof(own_rows) / sizeof(own_rows[0])},
        .summary = "Runs the same job in several modes, one "
                   "after the other, and\nsets them side by side: table, plots, report. --workers, "
                   "--servers and --transport take lists as\nwell (-n 1,2,4), which are crossed.",
        .example = "  ringside compare -n 4 --modes local,ps-sync,ring --global-batch 128\n",
        .sets = {job_option_set(&job), launcher_option_set(&comparison->options),
                 host_option_set(&comparison->hosts),
                 security_option_set(&comparison->options.security)},
        .set_count = 4,
    };
    enum status status = grid_take_lists(argc, argv, &lists, &rest_count, rest, error);
    if (status == STATUS_OK) {
        status = options_parse(&program, rest_count, rest, ret_is_done);
        if (status != STATUS_OK || *ret_is_done) {
            return status;
        }
        bool has_workers = options_was_given(&program, "workers") || lists.workers[0] != '\0';
        status = host_options_fill(&comparison->hosts, has_workers, &job.workers);
        if (status != STATUS_OK) {
            return status;
        }
        status = grid_make_cells(&job, &lists, comparison->cells, &comparison->cell_count, error);
    }
    if (status == STATUS_OK) {
        const struct job_list jobs = {&comparison->cells[0].job, comparison->cell_count,
                                      sizeof(comparison->cells[0])};
        status = job_check_effects(&program, &job, &jobs, error, sizeof(error));
    }
    if (status != STATUS_OK) {
        log_error("%s", error);
    }
    return status == STATUS_OK ? handover_check(&comparison->options.security, &job) : status;
}

/* Tries every cell before anything is written. */
static enum status try_cells(struct comparison *comparison)
{
    struct preflight *preflight = &comparison->preflight;
    preflight_begin(preflight, &comparison->launcher, &comparison->options, &comparison->hosts);
    for (size_t i = 0; i < comparison->cell_count; i++) {
        preflight_try(preflight, &comparison->cells[i].job);
    }
    return preflight_end(preflight);
}

static enum exit_code run_cell(struct comparison *comparison, size_t index)
{
    const struct grid_cell *cell = &comparison->cells[index];
    char folder[LAUNCH_PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/%s", comparison->options.out, cell->name);
    printf("\n[%zu/%zu] %s\n", index + 1, comparison->cell_count, cell->name);
    fflush(stdout);
    if (folder_make(folder, "logs") != STATUS_OK) {
        return EXIT_FAILED;
    }
    struct launch_options launch = {
        .job = &cell->job,
        .folder = folder,
        .port = comparison->options.port,
        .security = &comparison->security,
        .log_level = log_level_choices[comparison->options.log_level].name,
        .shows_progress = true,
    };
    enum exit_code code = launch_job(&comparison->launcher, &launch);
    if (report_add(&comparison->report, folder) != STATUS_OK) {
        return EXIT_FAILED;
    }
    return code;
}

/* All cells; a failed one is kept, and the next one runs. */
static enum exit_code run_all(struct comparison *comparison)
{
    enum exit_code verdict = EXIT_COMPLETED;
    for (size_t i = 0; i < comparison->cell_count; i++) {
        if (comparison->launcher.crew.interrupts > 0) {
            return EXIT_INTERRUPTED;
        }
        enum exit_code code = run_cell(comparison, i);
        verdict = code != EXIT_COMPLETED ? code : verdict;
    }
    return verdict;
}

enum exit_code command_compare(int argc, char **argv)
{
    struct comparison *comparison = calloc(1, sizeof(*comparison));
    bool is_done = false;
    if (comparison == NULL) {
        return EXIT_FAILED;
    }
    enum exit_code code = EXIT_USAGE;
    if (parse(argc, argv, comparison, &is_done) != STATUS_OK) {
        goto end;
    }
    code = is_done ? EXIT_COMPLETED : EXIT_FAILED;
    if (is_done) {
        goto end;
    }
    launch_block_signals();
    launcher_default_folder(&comparison->options, "compare");
    enum status status = security_open(&comparison->options.security, &comparison->security);
    if (status == STATUS_OK) {
        status = folder_lock_take(comparison->options.out, &comparison->lock);
    }
    if (status == STATUS_OK) {
        status = try_cells(comparison);
    }
    if (status == STATUS_OK) {
        status = folder_make(comparison->options.out, NULL);
    }
    if (status != STATUS_OK) {
        code = exit_code(status);
        goto end;
    }
    code = run_all(comparison);
    command_text_write(argc, argv, comparison->report.command);
    if (report_write(&comparison->report, comparison->options.out) != STATUS_OK &&
        code == EXIT_COMPLETED) {
        code = EXIT_FAILED;
    }
end:
    launcher_close(&comparison->launcher);
    folder_lock_release(&comparison->lock);
    report_finish(&comparison->report);
    security_close(&comparison->security);
    free(comparison);
    return code;
}
