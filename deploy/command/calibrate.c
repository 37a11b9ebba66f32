/* ringside calibrate: what a worker's step and messages cost, from the timelines of runs, in the
 * files that ringside predict reads. */
#include "common/base/log.h"
#include "common/job/job_options.h"
#include "common/options/options.h"
#include "deploy/calibrate/calibration.h"
#include "deploy/calibrate/calibration_files.h"
#include "deploy/command/calibration_jobs.h"
#include "deploy/command/checkpoint_job.h"
#include "deploy/command/commands.h"
#include "deploy/predict/basis/fields.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct calibrate_options {
    char costs[JOB_PATH_BYTES], network[JOB_PATH_BYTES], runs[1024], nic[QUANTITY_BYTES];
    char batches[256];
    double burst_kib;
};

#define FIELD(kind, field) OPTION_FIELD(kind, calibrate_options, field)

static const struct option rows[] = {
    {.name = "costs",
     FIELD(TEXT, costs),
     .fallback = "",
     .metavar = "FILE",
     .help = "file to write, for predict --costs; one that is there is replaced"},
    {.name = "network",
     FIELD(TEXT, network),
     .fallback = "",
     .metavar = "FILE",
     .help = "file to write, for predict --network; one that is there is replaced"},
    {.name = "runs",
     FIELD(TEXT, runs),
     .fallback = "",
     .metavar = "DIR",
     .help = "folder for the jobs' run folders, new or empty; without it they are removed in the "
             "end"},
    {.name = "batches",
     FIELD(TEXT, batches),
     .fallback = "",
     .metavar = "LIST",
     .help = "also measures a worker's step with these numbers of images, separated by commas, for "
             "predict --batch: by a short job of one worker for each"},
    {.name = "nic",
     FIELD(TEXT, nic),
     .fallback = "",
     .metavar = "BANDWIDTH",
     .help = "bandwidth of a host's link, such as \"956 Mbit/s\", if it is known (iperf3), in the "
             "place of what single messages show"},
    {.name = "burst-kib",
     FIELD(REAL, burst_kib),
     .fallback = "0",
     OPTION_RANGE(0, 1e9),
     .metavar = "KIB",
     .help = "what a host's link carries at once where it was idle before (token bucket), if it is "
             "known; no run shows it"},
};

/* What the command works with. Large: on the heap. */
struct work {
    struct calibrate_options options;
    const char *paths[CALIBRATION_RUNS_MAX]; // (path_count) of runs, borrowed
    size_t path_count;
    struct calibration_run *runs[CALIBRATION_RUNS_MAX]; // owned
    struct model_layers model;
    struct calibration_known known;
    struct calibration calibration;
    struct calibration_jobs jobs;
};

/* The model of a run, from a worker, which needs the run's data for that. Logs. */
static enum status describe_model(const struct calibration_run *run, struct model_layers *ret_model)
{
    static const char *const names[] = {"model", "data", "image-size", "classes", "bad-images"};
    char error[OPTION_ERROR_BYTES] = "";
    struct job job;
    if (calibration_run_job(run, names, sizeof(names) / sizeof(names[0]), &job, error) !=
        STATUS_OK) {
        log_error("%s/job.json: %s", run->folder.path, error);
        return STATUS_INVALID;
    }
    json_t *description = checkpoint_job_describe(&job);
    enum status status =
        description != NULL ? model_layers_read(description, ret_model) : STATUS_INVALID;
    json_decref(description);
    if (status != STATUS_OK) {
        log_error("the sizes of the layers of %s are unknown: a worker tells them, and needs the "
                  "data of the run for that (%s)",
                  job.model, job.data);
    }
    return status;
}

static enum status read_runs(struct work *work)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < work->path_count && status == STATUS_OK; i++) {
        work->runs[i] = calloc(1, sizeof(*work->runs[i]));
        status = work->runs[i] != NULL ? calibration_run_read(work->paths[i], work->runs[i])
                                       : STATUS_NO_MEMORY;
        if (status == STATUS_OK && work->jobs.is_temporary) {
            // A folder that will not be there says nothing to anybody.
            snprintf(work->runs[i]->name, sizeof(work->runs[i]->name), "a job of %s",
                     work->runs[i]->folder.label);
        }
    }
    return status;
}

static enum status write_files(const struct work *work)
{
    const struct calibrate_options *options = &work->options;
    bool has_network = options->network[0] != '\0';
    if (has_network && !work->calibration.has_network) {
        log_error("%s cannot be written: no run has messages between processes; calibrate from one "
                  "with --transport tcp and 2 workers, or leave out --network",
                  options->network);
        return STATUS_INVALID;
    }
    enum status status = calibration_write_costs(&work->calibration, options->costs);
    if (status == STATUS_OK && has_network) {
        status = calibration_write_network(&work->calibration, options->network);
    }
    if (status == STATUS_OK) {
        calibration_print(stdout, &work->calibration, options->costs,
                          has_network ? options->network : NULL);
    }
    return status;
}

/* From run folders to files. */
static enum status calibrate(struct work *work)
{
    enum status status = read_runs(work);
    if (status == STATUS_OK) {
        status = describe_model(work->runs[0], &work->model);
    }
    if (status == STATUS_OK) {
        status = calibration_make(work->runs, work->path_count, &work->model, &work->known,
                                  &work->calibration);
    }
    return status == STATUS_OK ? write_files(work) : status;
}

/* Why a job ended early was said by the launcher. */
static enum exit_code run_jobs(struct work *work)
{
    enum exit_code code = calibration_jobs_run(&work->jobs, work->options.runs);
    if (code != EXIT_COMPLETED) {
        return code;
    }
    assert(work->jobs.count <= CALIBRATION_RUNS_MAX);
    for (size_t i = 0; i < work->jobs.count; i++) {
        work->paths[work->path_count++] = work->jobs.folders[i];
    }
    return exit_code(calibrate(work));
}

/* What is known of links. */
static enum status take_known(struct work *work)
{
    const struct calibrate_options *options = &work->options;
    work->known.burst_kib = options->burst_kib;
    if (options->nic[0] != '\0' &&
        (!quantity_parse(options->nic, QUANTITY_BANDWIDTH, &work->known.nic) ||
         work->known.nic <= 0)) {
        log_error("--nic %s is no bandwidth; write it with a unit, such as --nic \"25 Gbit/s\"",
                  options->nic);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_options(const struct work *work)
{
    const struct calibrate_options *options = &work->options;
    if (options->costs[0] == '\0') {
        log_error("--costs is missing: name the file to write, such as --costs costs.json");
        return STATUS_INVALID;
    }
    if (work->path_count > 0 && options->runs[0] != '\0') {
        log_error(
            "--runs is for jobs that calibrate runs itself, and runs are named; leave it out");
        return STATUS_INVALID;
    }
    if (work->path_count > 0 && options->batches[0] != '\0') {
        log_error("--batches is for jobs that calibrate runs itself, and runs are named; name runs "
                  "of other batches as well, or leave it out");
        return STATUS_INVALID;
    }
    const char *of_links = options->nic[0] != '\0' ? "--nic" : "--burst-kib";
    if (options->network[0] == '\0' && (options->nic[0] != '\0' || options->burst_kib > 0)) {
        log_error("%s describes links, and no --network names a file to write them to; give "
                  "--network, or leave out %s",
                  of_links, of_links);
        return STATUS_INVALID;
    }
    if (strcmp(options->costs, options->network) == 0) {
        log_error("--costs and --network are both %s: one file holds one of them, so name two",
                  options->costs);
        return STATUS_INVALID;
    }
    enum status status = calibration_check_file(options->costs);
    return status == STATUS_OK && options->network[0] != '\0'
               ? calibration_check_file(options->network)
               : status;
}

/* Takes the run folders, which come first, out of the arguments. */
static enum status take_runs(int *argc, char ***argv, struct work *work)
{
    while (*argc > 1 && (*argv)[1][0] != '-') {
        if (work->path_count == CALIBRATION_RUNS_MAX) {
            log_error("calibrate reads at most %d runs at once", CALIBRATION_RUNS_MAX);
            return STATUS_INVALID;
        }
        work->paths[work->path_count++] = (*argv)[1];
        (*argv)[1] = (*argv)[0]; // the options are those behind it
        (*argc)--;
        (*argv)++;
    }
    return STATUS_OK;
}

static enum status parse(int argc, char **argv, struct work *work, bool *ret_is_done)
{
    struct calibration_jobs *jobs = &work->jobs;
    const struct option_set launcher = launcher_option_set(&jobs->session.options);
    struct option_program program = {
        .name = "ringside calibrate",
        .usage = "ringside calibrate [RUN ...] --costs FILE [--network FILE] [OPTION ...]",
        .summary =
            "Measures what a worker's step and messages cost, and writes it for `ringside "
            "predict`. RUN is the folder of\na run with --timeline, in local, ring or ps-sync. "
            "Several runs have to be of one model, and each shows\nwhat it can; a run of another "
            "batch than most shows only what a step costs with its batch. Without RUN,\ncalibrate "
            "runs short jobs itself, with the options of a job: one worker alone (local, also with "
            "each of\n--batches), ring, ring with small buckets, ps-sync (with --compress also "
            "without codes), local once more,\nand, on one host, ring on the cores of one worker; "
            "where steps are short, these two again with longer ones.\nOn one host with a core for "
            "each worker, it also runs ring, twice, without any exchange before the last step."
            "\nJobs go over tcp unless --transport says otherwise, and have 60 steps unless "
            "--steps does.\nWhat no run shows is named, with what is assumed of it.",
        .example =
            "  ringside calibrate --model cnn --batch 64 --costs costs.json --network net.json\n"
            "  ringside calibrate -H node1,node2 --costs costs.json --network net.json\n"
            "  ringside calibrate runs/local runs/ring --costs costs.json --network net.json\n",
        .sets = {{.title = "Files",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = &work->options}},
        .set_count = 1,
        .takes_arguments_alone = true,
    };
    options_reset(&launcher);
    if (take_runs(&argc, &argv, work) != STATUS_OK) {
        return STATUS_INVALID;
    }
    bool has_jobs = work->path_count == 0;
    if (has_jobs) {
        program.takes_arguments_alone = false;
        program.sets[program.set_count++] = job_option_set(&jobs->job);
        program.sets[program.set_count++] = host_option_set(&jobs->session.hosts);
        program.sets[program.set_count++] = security_option_set(&jobs->session.options.security);
    }
    enum status status = options_parse(&program, argc, argv, ret_is_done);
    if (status != STATUS_OK || *ret_is_done) {
        return status;
    }
    status = check_options(work);
    if (status == STATUS_OK) {
        status = take_known(work);
    }
    if (status == STATUS_OK) {
        status = calibration_jobs_take_batches(work->options.batches, jobs);
    }
    return status == STATUS_OK && has_jobs ? calibration_jobs_make(jobs, &program) : status;
}

enum exit_code command_calibrate(int argc, char **argv)
{
    struct work *work = calloc(1, sizeof(*work));
    bool is_done = false;
    enum exit_code code = EXIT_USAGE;
    if (work == NULL) {
        return EXIT_FAILED;
    }
    if (parse(argc, argv, work, &is_done) == STATUS_OK) {
        code = is_done                 ? EXIT_COMPLETED
               : work->path_count == 0 ? run_jobs(work)
                                       : exit_code(calibrate(work));
    }
    for (size_t i = 0; i < work->path_count; i++) {
        if (work->runs[i] != NULL) {
            calibration_run_finish(work->runs[i]);
            free(work->runs[i]);
        }
    }
    calibration_jobs_finish(&work->jobs);
    free(work);
    return code;
}
