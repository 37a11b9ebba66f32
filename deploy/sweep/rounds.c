/* Repeats the runs of a comparison. */
#include "deploy/sweep/rounds.h"

#include "common/job/faults.h"
#include "common/options/names.h"

#include <stdio.h>

/* Of what a job asks that an input gap cannot have; NULL: nothing. */
static const char *find_obstacle(const struct job *job)
{
    if (job_is_external(job)) {
        return "a program of your own brings its data";
    }
    if (names_is_synthetic(job->data)) {
        return "it compares with synthetic data what --data names: name other data";
    }
    if (faults_of(job).count > 0) {
        return "faults disturb what it measures: leave out --fault";
    }
    if (job->target_accuracy > 0) {
        return "noise reaches no --target-accuracy, and both must be as long: leave it out";
    }
    return NULL;
}

enum status rounds_check_input_gap(const struct job *job, char ret_error[OPTION_ERROR_BYTES])
{
    const char *obstacle = find_obstacle(job);
    if (obstacle == NULL) {
        return STATUS_OK;
    }
    snprintf(ret_error, OPTION_ERROR_BYTES, "--input-gap cannot be measured: %s", obstacle);
    return STATUS_INVALID;
}

static enum status check_count(size_t count, uint32_t factor, char ret_error[OPTION_ERROR_BYTES])
{
    if (count * factor <= GRID_CELLS_MAX) {
        return STATUS_OK;
    }
    snprintf(ret_error, OPTION_ERROR_BYTES,
             "%zu times %u runs, and %d are the limit: make the lists, or --repeat, shorter", count,
             factor, GRID_CELLS_MAX);
    return STATUS_INVALID;
}

/* A run that differs in nothing but its input, which costs a copy. */
static enum status make_synthetic(const struct grid_cell *cell, struct grid_cell *ret_cell,
                                  char ret_error[OPTION_ERROR_BYTES])
{
    struct job *job = &ret_cell->job;
    *ret_cell = *cell;
    if (snprintf(job->data, sizeof(job->data), NAMES_SYNTHETIC_PREFIX "%s", cell->job.data) >=
        (int)sizeof(job->data)) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "--data is too long for --input-gap, which puts " NAMES_SYNTHETIC_PREFIX
                 " before it");
        return STATUS_INVALID;
    }
    snprintf(job->augment, sizeof(job->augment), "none");
    snprintf(job->normalize, sizeof(job->normalize), "usual");
    snprintf(ret_cell->name, sizeof(ret_cell->name), "%.50s-synthetic", cell->name);
    return STATUS_OK;
}

enum status rounds_add_synthetic(struct grid_cell *cells, size_t *count,
                                 char ret_error[OPTION_ERROR_BYTES])
{
    enum status status = check_count(*count, 2, ret_error);
    if (status != STATUS_OK) {
        return status;
    }
    for (size_t i = *count; i-- > 0;) { // from the last, so that none is overwritten
        cells[2 * i] = cells[i];
        status = make_synthetic(&cells[2 * i], &cells[2 * i + 1], ret_error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    *count *= 2;
    return STATUS_OK;
}

enum status rounds_repeat(struct grid_cell *cells, size_t *count, uint32_t repeat,
                          char ret_error[OPTION_ERROR_BYTES])
{
    enum status status = check_count(*count, repeat, ret_error);
    if (status != STATUS_OK) {
        return status;
    }
    for (size_t i = *count * repeat; repeat > 1 && i-- > 0;) { // from the last, as above
        const struct grid_cell *cell = &cells[i % *count];
        struct grid_cell repeated = *cell;
        repeated.job.seed += i / *count;
        snprintf(repeated.name, sizeof(repeated.name), "%.40s-seed%llu", cell->name,
                 (unsigned long long)repeated.job.seed);
        cells[i] = repeated;
    }
    *count *= repeat;
    return STATUS_OK;
}
