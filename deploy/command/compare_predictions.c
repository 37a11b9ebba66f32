/* Predicts jobs that the model knows, and says why of the others. */
#include "deploy/command/compare_predictions.h"

#include "common/base/log.h"
#include "common/job/job_choices.h"
#include "common/job/job_options.h"
#include "deploy/command/compare_calibration.h"
#include "deploy/predict/basis/basis.h"
#include "deploy/predict/basis/cost_batches.h"
#include "deploy/predict/prediction.h"
#include "deploy/predict/study/study.h"
#include "deploy/report/run_folder.h"
#include "deploy/system/folder.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNTED_STEPS 60

#define FILES_MAX 4 // pairs that a comparison calibrates

/* Costs and a network. */
struct compare_files {
    char costs_file[JOB_PATH_BYTES], network_file[JOB_PATH_BYTES];
    enum transport_kind transport; // of the jobs for which they were calibrated
    struct cost_batches batches;   // costs
    struct network network;
    double parameters; // of the costs
};

struct compare_predictions {
    struct compare_prediction_options options;
    struct compare_files *files[FILES_MAX]; // (file_count) owned; one, if files were named
    size_t file_count;
    struct compare_words words; // for calibrations, unless files were named
};

/* Options whose effect on time is not in the model, with the value that has none. */
static const struct {
    const char *option, *value;
} plain[] = {{"switch", "none"}, {"fault", "none"}};

static bool has_files(const struct compare_predictions *predictions)
{
    return predictions->options.costs[0] != '\0';
}

/* Where jobs run on this host, and their costs were measured on another. */
static void warn_of_host(const struct compare_prediction_options *options,
                         const struct costs *costs)
{
    char own[256] = "";
    const char *measured = costs->conditions.hosts;
    bool is_known = !options->has_hosts && gethostname(own, sizeof(own) - 1) == 0;
    if (is_known && measured[0] != '\0' && strcmp(own, measured) != 0) {
        log_warn("%s was measured on %s, and the jobs run on %s: predictions are of the former",
                 options->costs, measured, own);
    }
}

/* Costs of the file's own batch. */
static const struct costs *own_costs(const struct compare_files *files)
{
    return &files->batches.list[files->batches.own];
}

/* Reads both files. Logs. */
static enum status add_files(struct compare_predictions *predictions, const char *costs,
                             const char *network, enum transport_kind transport)
{
    struct compare_files *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return STATUS_NO_MEMORY;
    }
    made->transport = transport;
    snprintf(made->costs_file, sizeof(made->costs_file), "%s", costs);
    snprintf(made->network_file, sizeof(made->network_file), "%s", network);
    enum status status = cost_batches_read(costs, &made->batches);
    if (status == STATUS_OK) {
        status = network_read(network, &made->network);
    }
    if (status != STATUS_OK) {
        cost_batches_finish(&made->batches);
        free(made);
        return status;
    }
    const struct costs *own = own_costs(made);
    for (uint32_t i = 0; i < own->layer_count; i++) {
        made->parameters += (double)own->layers[i].parameters;
    }
    predictions->files[predictions->file_count++] = made;
    return STATUS_OK;
}

enum status compare_predictions_open(const struct compare_prediction_options *options,
                                     const struct option_program *program,
                                     struct compare_predictions **ret_predictions)
{
    *ret_predictions = NULL;
    bool has_costs = options->costs[0] != '\0', has_network = options->network[0] != '\0';
    if (!options->is_asked) {
        if (has_costs || has_network) {
            log_error("--%s has no effect without --predict; add that, or leave it out",
                      has_costs ? "costs" : "network");
            return STATUS_INVALID;
        }
        return STATUS_OK;
    }
    if (has_costs != has_network) {
        log_error(
            "--predict needs --%s, too: name a file, or leave out both, and compare calibrates",
            has_costs ? "network" : "costs");
        return STATUS_INVALID;
    }
    struct compare_predictions *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return STATUS_NO_MEMORY;
    }
    made->options = *options;
    enum status status = has_costs
                             ? add_files(made, options->costs, options->network, TRANSPORT_AUTO)
                             : compare_words_take(program, &made->words);
    if (status != STATUS_OK) {
        compare_predictions_close(made);
        return status;
    }
    if (has_costs) {
        warn_of_host(options, own_costs(made->files[0]));
    }
    *ret_predictions = made;
    return STATUS_OK;
}

void compare_predictions_close(struct compare_predictions *predictions)
{
    for (size_t i = 0; predictions != NULL && i < predictions->file_count; i++) {
        network_finish(&predictions->files[i]->network);
        cost_batches_finish(&predictions->files[i]->batches);
        free(predictions->files[i]);
    }
    if (predictions != NULL) {
        compare_words_finish(&predictions->words);
        free(predictions);
    }
}

/* Images of a worker's step; 0: it is of no whole number. */
static uint32_t batch_of(const struct job *job)
{
    return job->global_batch % job->workers == 0 ? job->global_batch / job->workers : 0;
}

/* Those that were named, or calibrated for such a job. NULL: there are none. */
static const struct compare_files *find_files(const struct compare_predictions *predictions,
                                              const struct job *job)
{
    for (size_t i = 0; i < predictions->file_count; i++) {
        const struct compare_files *files = predictions->files[i];
        bool is_local = job->mode.kind == MODE_LOCAL;
        if (has_files(predictions) || (own_costs(files)->batch == batch_of(job) &&
                                       (is_local || files->transport == job->transport))) {
            return files;
        }
    }
    return NULL;
}

enum status compare_predictions_calibrate(struct compare_predictions *predictions,
                                          const struct job *job, const char *folder)
{
    if (predictions == NULL || has_files(predictions) || find_files(predictions, job) != NULL ||
        predictions->file_count == FILES_MAX || batch_of(job) == 0 || job_is_external(job)) {
        return STATUS_OK;
    }
    char costs[JOB_PATH_BYTES], network[JOB_PATH_BYTES];
    const char *transport = transport_choices[job->transport].name;
    snprintf(costs, sizeof(costs), "%s/costs-%u-%s.json", folder, batch_of(job), transport);
    snprintf(network, sizeof(network), "%s/network-%u-%s.json", folder, batch_of(job), transport);
    enum status status =
        compare_calibration_run(&predictions->words, batch_of(job), job->transport, costs, network);
    return status == STATUS_OK ? add_files(predictions, costs, network, job->transport) : status;
}

/* Writes why files are not of such a job. Leaves the text as it is if they are. */
static void find_clash(const struct compare_files *files, const struct job *job, bool has_keys,
                       char *ret_why, size_t why_size)
{
    const struct conditions *measured = &own_costs(files)->conditions;
    if (measured->model[0] != '\0' && strcmp(measured->model, job->model) != 0) {
        snprintf(ret_why, why_size, "the costs are of %.64s, and not of %.64s", measured->model,
                 job->model);
    } else if (batch_of(job) != own_costs(files)->batch &&
               (batch_of(job) == 0 || files->batches.count < 2)) {
        snprintf(ret_why, why_size, "the costs are of %u images a step, and not of %.4g",
                 own_costs(files)->batch, (double)job->global_batch / job->workers);
    } else if (job->mode.kind != MODE_LOCAL) {
        const struct conditions_job own = {
            job->transport, files->network.host_count == 1, job->compress.kind != CODEC_NONE,
            has_keys ? security_choices[job->security].name : CONDITIONS_NO_KEYS};
        (void)conditions_clash(measured, &files->network.conditions, &own, ret_why, why_size);
    }
}

/* Writes why the model does not know a job; an empty text: it does. */
static void find_gap(const struct compare_files *files, const struct job *job, bool has_keys,
                     char *ret_why, size_t why_size)
{
    char value[OPTION_VALUE_BYTES];
    ret_why[0] = '\0';
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        for (size_t k = 0; k < job_option_count; k++) {
            if (strcmp(job_options[k].name, plain[i].option) != 0) {
                continue;
            }
            option_format(&job_options[k], job, value, sizeof(value));
            if (strcmp(value, plain[i].value) != 0) {
                snprintf(ret_why, why_size, "--%s is not in the model", plain[i].option);
            }
        }
    }
    if (ret_why[0] != '\0') {
        return;
    }
    if (job_is_external(job)) {
        snprintf(ret_why, why_size, "the layers of a program of one's own are not known");
    } else if (job->processes != 0 && job->processes != job->workers) {
        snprintf(ret_why, why_size, "--processes is not in the model");
    } else if (job->mode.kind != MODE_LOCAL && job->bucket_mb <= 0) {
        snprintf(ret_why, why_size, "--bucket-mb auto is not in the model");
    } else if (job->mode.kind == MODE_RING && job->all_reduce == ALL_REDUCE_CHOICE_NCCL) {
        snprintf(ret_why, why_size, "NCCL is not in the model");
    } else if (files == NULL) {
        snprintf(
            ret_why, why_size,
            "nothing was calibrated for %.4g images a step over %s: compare calibrates at most "
            "%d combinations, so name files, or compare fewer",
            (double)job->global_batch / job->workers, transport_choices[job->transport].name,
            FILES_MAX);
    } else {
        find_clash(files, job, has_keys, ret_why, why_size);
    }
}

/* The places that a job needs on the only host. */
static void make_places(struct network *network, uint32_t workers)
{
    if (network->host_count == 1 && network->hosts[0].workers < workers) {
        network->hosts[0].workers = workers;
    }
}

void compare_predictions_make(const struct compare_predictions *predictions, const struct job *job,
                              struct compare_prediction *ret_prediction)
{
    const struct prediction_extent extent = {STUDY_WARM_STEPS, COUNTED_STEPS, PREDICTION_WORK_MAX,
                                             PREDICTION_ERROR_MAX};
    struct prediction made;
    *ret_prediction = (struct compare_prediction){.images_per_s = 0};
    if (predictions == NULL) {
        return;
    }
    const struct compare_files *files = find_files(predictions, job);
    ret_prediction->files = files;
    find_gap(files, job, predictions->options.has_keys, ret_prediction->why,
             sizeof(ret_prediction->why));
    if (ret_prediction->why[0] != '\0') {
        return;
    }
    snprintf(ret_prediction->why, sizeof(ret_prediction->why),
             "it could not be predicted: see the "
             "log of compare");
    struct basis *basis = basis_create(job, own_costs(files), &files->network);
    if (basis == NULL) {
        return;
    }
    (void)cost_batches_find(&files->batches, batch_of(job), &basis->costs);
    cost_batches_warn(files->costs_file, &basis->costs);
    make_places(&basis->network, job->workers);
    if (job->mode.kind == MODE_LOCAL) { // one worker that exchanges nothing
        basis->job.mode.kind = MODE_RING;
    }
    if (prediction_make(&basis->job, &basis->costs, &basis->network, &extent, &made) == STATUS_OK) {
        ret_prediction->images_per_s = made.images_per_s;
    }
    basis_destroy(basis);
}

static void write_json(FILE *file, const void *context)
{
    json_dumpf(context, file, JSON_INDENT(2));
    fprintf(file, "\n");
}

/* As prediction.json has it. NULL: no memory. */
static json_t *prediction_json(const struct compare_prediction *prediction, const char *folder)
{
    struct run_folder run;
    char why[sizeof(prediction->why)];
    double images_per_s = prediction->images_per_s, measured = 0, parameters = 0;
    snprintf(why, sizeof(why), "%s", prediction->why);
    if (run_folder_open(folder, &run) == STATUS_OK) {
        measured = run_folder_number(&run, "images_per_second");
        parameters = run_folder_number(&run, "parameters");
        run_folder_close(&run);
    }
    const struct compare_files *files = prediction->files;
    if (images_per_s > 0 && parameters > 0 && parameters != files->parameters) {
        images_per_s = 0;
        snprintf(why, sizeof(why), "the costs are of a model with %.0f parameters, and not %.0f",
                 files->parameters, parameters);
    }
    json_t *object = json_object();
    if (files != NULL) {
        json_object_set_new(object, "costs", json_string(files->costs_file));
        json_object_set_new(object, "network", json_string(files->network_file));
    }
    if (images_per_s <= 0) {
        json_object_set_new(object, "why", json_string(why));
        return object;
    }
    json_object_set_new(object, "images_per_second", json_real(images_per_s));
    if (measured > 0) {
        json_object_set_new(object, "error_percent",
                            json_real(100 * (images_per_s / measured - 1)));
    }
    return object;
}

enum status compare_predictions_write(const struct compare_predictions *predictions,
                                      const struct compare_prediction *prediction,
                                      const char *folder)
{
    if (predictions == NULL || !run_folder_has_summary(folder)) {
        return STATUS_OK;
    }
    json_t *object = prediction_json(prediction, folder);
    enum status status = object != NULL
                             ? folder_write(folder, "prediction.json", write_json, object)
                             : STATUS_NO_MEMORY;
    json_decref(object);
    return status;
}
