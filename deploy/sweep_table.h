/* What a sweep found: for each combination the mean over its seeds, with its interval. */
#ifndef DEPLOY_SWEEP_TABLE_H
#define DEPLOY_SWEEP_TABLE_H

#include "common/status.h"
#include "deploy/run_folder.h"
#include "deploy/sweep_plan.h"

#include <stddef.h>
#include <stdio.h>

/* summaries[i] is that of run i of the plan, or NULL if it has none (not run yet, or failed before
 * it had one). Runs that failed are counted, and left out of the means. */
struct sweep_results {
    const struct sweep_plan *plan;
    struct run_folder *const *summaries; // (plan->count)
};

/* For the terminal. */
void sweep_table_print(FILE *stream, const struct sweep_results *results);

/* FOLDER/sweep.csv and FOLDER/sweep.md. Logs. */
enum status sweep_table_write(const char *folder, const struct sweep_results *results);

#endif
