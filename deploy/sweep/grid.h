/* The runs of a comparison: lists of modes, workers, servers and transports, crossed. Pure. */
#ifndef DEPLOY_SWEEP_GRID_H
#define DEPLOY_SWEEP_GRID_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/job/job_text.h"

#include <stdbool.h>
#include <stddef.h>

#define GRID_CELLS_MAX  256
#define GRID_TEXT_BYTES 256

struct grid_lists {
    char modes[GRID_TEXT_BYTES], workers[GRID_TEXT_BYTES], servers[GRID_TEXT_BYTES],
        transports[GRID_TEXT_BYTES]; // "1,2,4"; "" for what the job says
};

struct grid_cell {
    struct job job; // resolved
    char name[64];  // of its folder: "ps-sync-n4-s2-tcp"
};

/* An option of the job, and the values that it takes in turn; or several options that change
 * together: "optimizer+lr" with "sgd+0.1,adam+0.001". */
struct grid_axis {
    const char *name;
    const char *values; // "1,2,4", or "a,b|c" where values hold commas; "": what the job says
};

size_t grid_value_count(const struct grid_axis *axis); // at least 1
void grid_value(const struct grid_axis *axis, size_t index, char ret_value[GRID_TEXT_BYTES]);

/* "optimizer=sgd lr=0.1": what an axis chooses, as text. Cut at text_size. */
void grid_label(const struct grid_axis *axis, size_t index, char *ret_text, size_t text_size);

/* Whether each value of each axis can be right in some job. STATUS_INVALID with a sentence. */
enum status grid_check_values(const struct job *job, const struct grid_axis *axes,
                              size_t axis_count, char ret_error[OPTION_ERROR_BYTES]);

/* Sets what combination `number` of the axes chooses (the last axis changes fastest), and resolves
 * the job. STATUS_INVALID with a sentence. */
enum status grid_choose(struct job *job, const struct grid_axis *axes, size_t axis_count,
                        size_t number, char ret_error[OPTION_ERROR_BYTES]);

/* Two resolved jobs are the same run if they read the same. */
bool grid_is_same_run(const struct job *a, const struct job *b);

/* What a probe of a job's data, model and device depends on, as text: all options of the job except
 * those known not to matter to it. So a new option matters by default. Jobs with equal texts need
 * only one probe. */
enum status grid_describe_probe(const struct job *job, char ret_text[JOB_TEXT_BYTES]);

/* Takes the lists out of the arguments: --modes, and --workers, --servers, --transport (or their
 * letters) where their value has a comma. What is left is a command line for options_parse.
 * ret_argv has room for argc + 1. STATUS_INVALID with a sentence. */
enum status grid_take_lists(int argc, char **argv, struct grid_lists *ret_lists, int *ret_argc,
                            char **ret_argv, char ret_error[OPTION_ERROR_BYTES]);

/* Every combination, resolved; those that would be the same run are there once (servers matter to
 * ps modes alone; local is one worker on the global batch). ret_cells has GRID_CELLS_MAX. */
enum status grid_make_cells(const struct job *job, const struct grid_lists *lists,
                            struct grid_cell *ret_cells, size_t *ret_count,
                            char ret_error[OPTION_ERROR_BYTES]);

#endif
