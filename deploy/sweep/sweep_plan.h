/* What a sweep runs: axes crossed, each combination with several seeds. */
#ifndef DEPLOY_SWEEP_SWEEP_PLAN_H
#define DEPLOY_SWEEP_SWEEP_PLAN_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/sweep/grid.h"
#include "deploy/system/command_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWEEP_AXES_MAX   8
#define SWEEP_RUNS_MAX   4096
#define SWEEP_REPEAT_MAX 100

/* From the command line. Texts are borrowed from it. */
struct sweep_arguments {
    struct grid_axis axes[SWEEP_AXES_MAX];
    char names[SWEEP_AXES_MAX][64];
    bool is_of_file[SWEEP_AXES_MAX]; // an axis of the experiment file
    size_t axis_count;
    uint32_t repeat;
};

struct sweep_run {
    struct job job;  // resolved
    char name[96];   // of its folder: "007-ps-async-seeded-constant-4-seed2"
    char label[256]; // "mode=ps-async order=seeded:constant:4": without the seed
    size_t group;    // runs that differ in the seed alone share it, from 0
};

struct sweep_plan {
    struct sweep_run *runs; // owned
    size_t count, group_count;
    char program[COMMAND_TEXT_BYTES]; // of the user's own, which all runs are of; "": none
    char losses[COMMAND_TEXT_BYTES];  // "--mirror FOLDER --restarts 3", which no job has; "": none
};

/* Takes --grid NAME=VALUES (repeatable) and --repeat R out of the arguments; what is left is a
 * command line for options_parse. ret_argv has room for argc + 1. STATUS_INVALID with a sentence.
 */
enum status sweep_take_arguments(int argc, char **argv, struct sweep_arguments *ret_arguments,
                                 int *ret_argc, char **ret_argv,
                                 char ret_error[OPTION_ERROR_BYTES]);

/* All combinations; one that contradicts itself (an order in ring) is left out, and said on
 * standard output; equal ones are there once. STATUS_INVALID with a sentence if none is left, or
 * too many. */
enum status sweep_make_plan(const struct job *job, const struct sweep_arguments *arguments,
                            struct sweep_plan *ret_plan, char ret_error[OPTION_ERROR_BYTES]);
void sweep_plan_free(struct sweep_plan *plan);

#endif
