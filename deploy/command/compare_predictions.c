/* Predicts jobs that the model knows, and says why of the others. */
#include "deploy/command/compare_predictions.h"

#include "common/base/log.h"
#include "common/job/job_options.h"
#include "deploy/predict/basis/basis.h"
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

struct compare_predictions {
    struct compare_prediction_options options;
    struct costs costs;
    struct network network;
    double parameters; // of the costs
};

/* Options whose effect on time is not in the model, with the value that has none. */
static const struct {
    const char *option, *value;
} plain[] = {{"switch", "none"}, {"fault", "none"}};

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

enum status compare_predictions_open(const struct compare_prediction_options *options,
                                     struct compare_predictions **ret_predictions)
{
    *ret_predictions = NULL;
    if (!options->is_asked) {
        bool has_file = options->costs[0] != '\0' || options->network[0] != '\0';
        if (has_file) {
            log_error("--%s has no effect without --predict; add that, or leave it out",
                      options->costs[0] != '\0' ? "costs" : "network");
        }
        return has_file ? STATUS_INVALID : STATUS_OK;
    }
    if (options->costs[0] == '\0' || options->network[0] == '\0') {
        log_error("--predict needs --%s: name a file; ringside calibrate measures one",
                  options->costs[0] == '\0' ? "costs" : "network");
        return STATUS_INVALID;
    }
    struct compare_predictions *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return STATUS_NO_MEMORY;
    }
    made->options = *options;
    enum status status = costs_read(options->costs, &made->costs);
    if (status == STATUS_OK) {
        status = network_read(options->network, &made->network);
    }
    for (uint32_t i = 0; i < made->costs.layer_count; i++) {
        made->parameters += (double)made->costs.layers[i].parameters;
    }
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    warn_of_host(options, &made->costs);
    *ret_predictions = made;
    return STATUS_OK;
}

void compare_predictions_close(struct compare_predictions *predictions)
{
    if (predictions != NULL) {
        network_finish(&predictions->network);
        free(predictions);
    }
}

/* Writes why the model does not know a job; an empty text: it does. */
static void find_gap(const struct compare_predictions *predictions, const struct job *job,
                     char *ret_why, size_t why_size)
{
    char value[OPTION_VALUE_BYTES];
    const struct conditions *measured = &predictions->costs.conditions;
    uint32_t batch = job->global_batch / job->workers;
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
    } else if (measured->model[0] != '\0' && strcmp(measured->model, job->model) != 0) {
        snprintf(ret_why, why_size, "the costs are of %.64s, and not of %.64s", measured->model,
                 job->model);
    } else if (batch != predictions->costs.batch || job->global_batch % job->workers != 0) {
        snprintf(ret_why, why_size, "the costs are of %u images a step, and not of %.4g",
                 predictions->costs.batch, (double)job->global_batch / job->workers);
    } else if (job->mode.kind != MODE_LOCAL) {
        (void)conditions_clash(measured, &predictions->network.conditions, job->transport,
                               predictions->network.host_count == 1, ret_why, why_size);
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
    find_gap(predictions, job, ret_prediction->why, sizeof(ret_prediction->why));
    if (ret_prediction->why[0] != '\0') {
        return;
    }
    snprintf(ret_prediction->why, sizeof(ret_prediction->why),
             "it could not be predicted: see the "
             "log of compare");
    struct basis *basis = basis_create(job, &predictions->costs, &predictions->network);
    if (basis == NULL) {
        return;
    }
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
static json_t *prediction_json(const struct compare_predictions *predictions,
                               const struct compare_prediction *prediction, const char *folder)
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
    if (images_per_s > 0 && parameters > 0 && parameters != predictions->parameters) {
        images_per_s = 0;
        snprintf(why, sizeof(why), "the costs are of a model with %.0f parameters, and not %.0f",
                 predictions->parameters, parameters);
    }
    json_t *object = json_pack("{s:s, s:s}", "costs", predictions->options.costs, "network",
                               predictions->options.network);
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
    json_t *object = prediction_json(predictions, prediction, folder);
    enum status status = object != NULL
                             ? folder_write(folder, "prediction.json", write_json, object)
                             : STATUS_NO_MEMORY;
    json_decref(object);
    return status;
}
