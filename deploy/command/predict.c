/* ringside predict: how fast a job would be, from what its steps cost and how its hosts are
 * connected. */
#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/job_options.h"
#include "common/options/options.h"
#include "deploy/command/commands.h"
#include "deploy/command/predict_options.h"
#include "deploy/command/predict_results.h"
#include "deploy/predict/advise/advice.h"
#include "deploy/predict/basis/cost_batches.h"
#include "deploy/predict/faults/fault_study.h"
#include "deploy/predict/study/study.h"
#include "deploy/predict/study/study_batches.h"
#include "deploy/predict/study/study_lists.h"
#include "deploy/system/command_text.h"
#include "deploy/system/folder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADVICE_MODES "ring,ps-sync,ps-ssp:2,ps-async" // that advice chooses among

/* Refuses options that no point reads. */
static enum status check_effects(const struct option_program *program, const struct study *study,
                                 bool is_advice)
{
    bool has_ring = false, has_servers = false, has_staleness = false, has_sync = false,
         exchanges = study->workers[study->worker_count - 1] > 1;
    for (size_t i = 0; i < study->design_count; i++) {
        enum mode_kind kind = study->designs[i].mode.kind;
        has_ring = has_ring || kind == MODE_RING;
        has_servers = has_servers || mode_has_servers(kind);
        has_staleness = has_staleness || mode_updates_on_push(kind);
        has_sync = has_sync || kind == MODE_PS_SYNC;
        exchanges = exchanges || mode_has_servers(kind);
    }
    for (size_t i = 0; i < study->what_if_count; i++) {
        if (what_if_has_servers(&study->what_ifs[i]) && !has_servers) {
            log_error("--what-if %s: no mode of --mode has servers; leave them out",
                      study->what_ifs[i].text);
            return STATUS_INVALID;
        }
    }
    if (has_staleness && study->job.gradients_per_update > study->workers[0]) {
        log_error("--gradients-per-update %u is more than the %u workers: no update would have as "
                  "many",
                  study->job.gradients_per_update, study->workers[0]);
        return STATUS_INVALID;
    }
    if (has_sync && study->job.backup >= study->workers[0]) {
        log_error("--backup %u of %u workers leaves no gradient for an update: at most %u",
                  study->job.backup, study->workers[0], study->workers[0] - 1);
        return STATUS_INVALID;
    }
    for (size_t i = 0; i < study->what_if_count && is_advice; i++) {
        if (what_if_has_servers(&study->what_ifs[i])) {
            log_error("--what-if %s: --advise searches for the servers; leave them out",
                      study->what_ifs[i].text);
            return STATUS_INVALID;
        }
    }
    const char *idle =
        options_was_given(program, "servers") && !has_servers   ? "servers"
        : options_was_given(program, "all-reduce") && !has_ring ? "all-reduce"
        : options_was_given(program, "transport") && !exchanges ? "transport"
        : options_was_given(program, "compress") && !exchanges  ? "compress"
        : options_was_given(program, "gradients-per-update") && !has_staleness
            ? "gradients-per-update"
        : options_was_given(program, "job-steps") && !options_was_given(program, "fault")
            ? "job-steps"
        : options_was_given(program, "backup") && !has_sync      ? "backup"
        : options_was_given(program, "sync-every") && !exchanges ? "sync-every"
                                                                 : NULL;
    if (idle != NULL) {
        log_error("--%s has no effect in the modes of --mode%s; leave it out", idle,
                  exchanges ? "" : " with one worker");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_options(const struct predict_options *options)
{
    if (options->batch > 0 && options->global_batch > 0) {
        log_error("--batch %u and --global-batch %u contradict each other: with the latter a "
                  "worker's batch is its share; give one of them",
                  options->batch, options->global_batch);
        return STATUS_INVALID;
    }
    if (strcmp(options->faults, "none") != 0 && options->advise) {
        log_error("--fault has no effect with --advise, which searches without faults; leave it "
                  "out");
        return STATUS_INVALID;
    }
    if (options->out[0] != '\0' && options->advise) {
        log_error("--out has no effect with --advise, whose result is text; leave it out");
        return STATUS_INVALID;
    }
    if (options->out[0] != '\0' && options->json) {
        log_error("--out writes predictions.json, which is what --json prints; leave --json out");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_files(const struct predict_options *options)
{
    if (options->costs[0] == '\0' || options->network[0] == '\0') {
        log_error("--%s is missing: name a file (docs/PREDICT-FILES.md says how)",
                  options->costs[0] == '\0' ? "costs" : "network");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status take_places(const struct predict_options *options, const struct network *network,
                               struct study *study)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < network->host_count && places < STUDY_WORKERS_MAX; i++) {
        places += network->hosts[i].workers;
    }
    if (places == 0) {
        log_error("%s has places for no worker; raise \"workers\" of its hosts", options->network);
        return STATUS_INVALID;
    }
    study->workers[0] = places < STUDY_WORKERS_MAX ? places : STUDY_WORKERS_MAX;
    study_cross(study);
    return STATUS_OK;
}

static bool has_faults(const struct predict_options *options)
{
    return strcmp(options->faults, "none") != 0;
}

/* Files that were measured under other conditions than those of the jobs that are predicted. */
static void warn_of_conditions(const struct predict_options *options, const struct costs *costs,
                               const struct network *network)
{
    char why[CONDITIONS_TEXT_BYTES + 64];
    const struct conditions_job job = {options->transport, network->host_count == 1,
                                       options->compress.kind != CODEC_NONE, NULL};
    if (conditions_clash(&costs->conditions, &network->conditions, &job, why, sizeof(why))) {
        log_warn("%s and %s: %s; measure both as the job will run (ringside calibrate)",
                 options->costs, options->network, why);
    }
}

/* Costs of --batch. With --global-batch those of the file: the batches have the others. */
static enum status take_costs(const struct predict_options *options, struct cost_batches *batches,
                              struct costs *ret_costs)
{
    if (options->global_batch == 0) {
        return cost_batches_take(options->costs, options->batch, ret_costs);
    }
    enum status status = cost_batches_read(options->costs, batches);
    if (status == STATUS_OK) {
        cost_batches_find(batches, 0, ret_costs);
    }
    return status;
}

static enum status predict(const struct predict_options *options, struct study *study,
                           struct fault_study *faults, struct costs *costs,
                           struct cost_batches *batches)
{
    struct network network = {0};
    enum status status = take_costs(options, batches, costs);
    if (status == STATUS_OK) {
        status = network_read(options->network, &network);
    }
    if (status != STATUS_OK) {
        return status;
    }
    warn_of_conditions(options, costs, &network);
    struct convergence convergence = {NULL, 0};
    study->costs = costs;
    study->batches = batches;
    study->network = &network;
    if (options->convergence[0] != '\0') {
        status = convergence_read(options->convergence, &convergence);
        study->convergence = &convergence;
    }
    if (status == STATUS_OK && options->takes_places) {
        status = take_places(options, &network, study);
    }
    if (status == STATUS_OK) {
        status = study_check_batches(study);
    }
    bool is_new = options->out[0] != '\0' && access(options->out, F_OK) != 0;
    if (status == STATUS_OK && options->out[0] != '\0') {
        status = folder_make(options->out, NULL);
    }
    if (status == STATUS_OK) {
        status = options->advise ? predict_results_advise(study, options->is_kept, options->json)
                                 : predict_results_make(study, faults, options->json, options->out,
                                                        options->command);
    }
    if (status != STATUS_OK && is_new) {
        folder_remove(options->out); // a part of a report is no result
    }
    if (status == STATUS_OK && !study_is_whole(study)) {
        status = STATUS_NO_MEMORY; // the others are made
    }
    convergence_finish(&convergence);
    network_finish(&network);
    return status;
}

/* What advice takes where the command line does not say it. */
static void fill_advice(const struct option_program *program, struct predict_options *options)
{
    if (!options_was_given(program, "mode")) {
        snprintf(options->modes, sizeof(options->modes), "%s", ADVICE_MODES);
    }
    if (!options_was_given(program, "workers")) {
        options->takes_places = true;
        snprintf(options->workers, sizeof(options->workers), "%d", STUDY_WORKERS_MAX);
    }
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        const char *name = advice_axes[axis].option;
        options->is_kept[axis] = name != NULL && options_was_given(program, name);
    }
}

static void fill_study(const struct predict_options *options, struct study *study)
{
    struct option_set set = job_option_set(&study->job);
    options_reset(&set);
    study->job.bucket_mb = options->bucket_mb;
    study->job.all_reduce = options->all_reduce;
    study->job.transport = options->transport;
    study->job.compress = options->compress;
    study->job.gradients_per_update = options->gradients_per_update;
    study->job.backup = options->backup;
    study->job.sync_every = options->sync_every;
    study->job.global_batch = options->global_batch;
    study->job.seed = options->seed;
    snprintf(study->job.straggler, sizeof(study->job.straggler), "%s", options->straggler);
    study->costs_file = options->costs;
    study->network_file = options->network;
    study->counted = options->steps;
    study->is_approximate = options->approximate;
    study->threads = options->threads;
}

static enum exit_code run(int argc, char **argv, struct study *study, struct fault_study *faults,
                          struct costs *costs)
{
    struct predict_options options = {.advise = false};
    bool is_done = false;
    struct option_program program = {
        .name = "ringside predict",
        .usage = "ringside predict --costs FILE --network FILE [-m LIST] [-n LIST] [OPTION ...]",
        .summary =
            "Predicts how fast a job would be: goes through the steps of all its workers in "
            "virtual time, with\nthe buckets, ring plans and windows of the product, over costs "
            "and a network that you describe.\nBelow the table stands what the model leaves out. "
            "Options of jobs that it does not read are refused.",
        .example = "  ringside predict --costs costs.json --network network.json -n 8,64\n"
                   "  ringside predict --costs costs.json --network network.json --mode ps-sync "
                   "--servers 1,4 -n 16,64 --what-if link=2x --json\n"
                   "  ringside predict --costs costs.json --network network.json --advise\n",
        .sets = {{.title = "Options",
                  .rows = predict_option_rows,
                  .count = predict_option_count,
                  .values = &options}},
        .set_count = 1,
        .takes_arguments_alone = true,
    };
    if (predict_options_check_model(argc, argv) != STATUS_OK ||
        options_parse(&program, argc, argv, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    if (options.advise) {
        fill_advice(&program, &options);
    }
    command_text_write(argc, argv, options.command);
    fill_study(&options, study);
    if (check_files(&options) != STATUS_OK || check_options(&options) != STATUS_OK ||
        study_take_what_ifs(options.what_ifs, study) != STATUS_OK ||
        study_take_lists(options.modes, options.servers, options.workers, study) != STATUS_OK ||
        check_effects(&program, study, options.advise) != STATUS_OK ||
        (has_faults(&options) &&
         fault_study_take(study, options.faults, options.job_steps, faults) != STATUS_OK)) {
        return EXIT_USAGE;
    }
    struct cost_batches batches = {NULL, 0, 0};
    enum status status = predict(&options, study, faults, costs, &batches);
    cost_batches_finish(&batches);
    return exit_code(status);
}

enum exit_code command_predict(int argc, char **argv)
{
    struct study *study = calloc(1, sizeof(*study));
    struct fault_study *faults = calloc(1, sizeof(*faults));
    struct costs *costs = calloc(1, sizeof(*costs));
    enum exit_code code = EXIT_FAILED;
    if (study != NULL && faults != NULL && costs != NULL) {
        code = run(argc, argv, study, faults, costs);
    }
    if (study != NULL) {
        study_finish(study);
    }
    free(costs);
    free(faults);
    free(study);
    return code;
}
