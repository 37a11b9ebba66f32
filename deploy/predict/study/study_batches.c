/* Shares a global batch out, as jobs do. */
#include "deploy/predict/study/study_batches.h"

#include "common/base/log.h"
#include "deploy/predict/basis/cost_batches.h"
#include "deploy/predict/basis/fields.h"

#include <assert.h>
#include <stdlib.h>

bool study_is_strong(const struct study *study)
{
    return study->job.global_batch > 0;
}

uint32_t study_batch(const struct study *study, uint32_t workers)
{
    uint32_t all = study->job.global_batch;
    return all > 0 ? all / workers + (all % workers > 0) : study->costs->batch;
}

double study_mean_batch(const struct study *study, uint32_t workers)
{
    return study_is_strong(study) ? (double)study->job.global_batch / workers : study->costs->batch;
}

void study_find_costs(const struct study *study, uint32_t workers, struct costs *ret_costs)
{
    if (!study_is_strong(study)) {
        *ret_costs = *study->costs;
        return;
    }
    bool is_known = cost_batches_find(study->batches, study_batch(study, workers), ret_costs);
    assert(is_known); // study_check_batches
}

static enum status check_workers(const struct study *study, uint32_t workers, struct costs *costs)
{
    uint32_t all = study->job.global_batch;
    if (all < workers) {
        log_error("--global-batch %u leaves some of %u workers without an image: make it larger, "
                  "or ask for at most %u --workers",
                  all, workers, all);
        return STATUS_INVALID;
    }
    if (all % workers > 0) {
        log_warn("--global-batch %u is not divisible by %u workers: some have %u images, some %u; "
                 "a step takes as long as %u do, and images/s are of those that there are",
                 all, workers, all / workers + 1, all / workers, all / workers + 1);
    }
    study_find_costs(study, workers, costs);
    cost_batches_warn(study->costs_file, costs);
    return STATUS_OK;
}

enum status study_check_batches(const struct study *study)
{
    if (!study_is_strong(study)) {
        return STATUS_OK;
    }
    if (study->batches->count < 2) {
        log_error("--global-batch %u: %s has only times of %u images, and a worker's share depends "
                  "on the number of workers: calibrate with --batches, or write some into the "
                  "file's batches",
                  study->job.global_batch, study->costs_file, study->costs->batch);
        return STATUS_INVALID;
    }
    struct costs *costs = calloc(1, sizeof(*costs));
    enum status status = costs != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; i < study->worker_count && status == STATUS_OK; i++) {
        status = check_workers(study, study->workers[i], costs);
    }
    free(costs);
    return status;
}

static void print_workers(const struct study *study, uint32_t workers, FILE *stream)
{
    char compute[QUANTITY_BYTES];
    uint32_t all = study->job.global_batch;
    struct costs *costs = calloc(1, sizeof(*costs));
    if (costs == NULL) {
        return;
    }
    study_find_costs(study, workers, costs);
    quantity_format(costs_compute_s(costs), QUANTITY_TIME, compute);
    fprintf(stream, "  %u worker%s: %u images%s, computed in %s", workers, workers == 1 ? "" : "s",
            costs->batch, all % workers > 0 ? " at most" : "", compute);
    if (costs->line_from > 0) {
        fprintf(stream, ", %s from %u and %u images",
                costs_are_extrapolated(costs) ? "extrapolated" : "interpolated", costs->line_from,
                costs->line_to);
    }
    fprintf(stream, "\n");
    free(costs);
}

void study_print_batches(const struct study *study, FILE *stream)
{
    if (!study_is_strong(study)) {
        return;
    }
    fprintf(stream, "%u images a step of all workers together; of each:\n",
            study->job.global_batch);
    if (study->workers[0] > 1) {
        print_workers(study, 1, stream); // which speed-up is against
    }
    for (size_t i = 0; i < study->worker_count; i++) {
        print_workers(study, study->workers[i], stream);
    }
}

const char *study_batch_heading(const struct study *study)
{
    return study_is_strong(study) ? "   batch" : "";
}

void study_batch_cell(const struct study *study, uint32_t workers, char ret_text[STUDY_BATCH_BYTES])
{
    ret_text[0] = '\0';
    if (study_is_strong(study)) {
        snprintf(ret_text, STUDY_BATCH_BYTES, " %7u", study_batch(study, workers));
    }
}

static void add_line(const struct costs *costs, json_t *object)
{
    if (costs->line_from > 0) {
        json_object_set_new(
            object, "batch_from",
            json_pack("[I, I]", (json_int_t)costs->line_from, (json_int_t)costs->line_to));
    }
}

void study_batches_add_json(const struct study *study, json_t *object)
{
    if (study_is_strong(study)) {
        json_object_set_new(object, "global_batch", json_integer(study->job.global_batch));
        return;
    }
    json_object_set_new(object, "batch", json_integer(study->costs->batch));
    add_line(study->costs, object);
}

void study_batch_add_json(const struct study *study, uint32_t workers, json_t *object)
{
    struct costs *costs = study_is_strong(study) ? calloc(1, sizeof(*costs)) : NULL;
    if (costs == NULL) {
        return;
    }
    study_find_costs(study, workers, costs);
    json_object_set_new(object, "batch", json_integer(costs->batch));
    add_line(costs, object);
    free(costs);
}

bool study_has_lines(const struct study *study)
{
    struct costs *costs = study_is_strong(study) ? calloc(1, sizeof(*costs)) : NULL;
    bool has_lines = study->costs->line_from > 0;
    for (size_t i = 0; costs != NULL && i < study->worker_count; i++) {
        study_find_costs(study, study->workers[i], costs);
        has_lines = has_lines || costs->line_from > 0;
    }
    free(costs);
    return has_lines;
}
