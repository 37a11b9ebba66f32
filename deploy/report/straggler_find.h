/* Finds the worker that was slow in a run, by its metrics. */
#ifndef DEPLOY_REPORT_STRAGGLER_FIND_H
#define DEPLOY_REPORT_STRAGGLER_FIND_H

#include "deploy/report/run_folder.h"

#include <stdbool.h>
#include <stdint.h>

struct straggler_found {
    uint32_t rank;
    double ratio; // of its computing time per step to the median of the other workers
};

// Steps of each worker below which differences may be chance.
#define STRAGGLER_STEPS_MIN 20

/* The slowest worker, if it takes at least a third longer than the others. False if there is none,
 * if there are fewer than two workers, if they made too few steps to tell, or if a process carried
 * more ranks than another one, as after a loss. */
bool straggler_find(const struct run_folder *run, struct straggler_found *ret_found);

#endif
