/* What a sweep found, as tables: for each setting the means over its seeds, with their intervals.
 */
#ifndef DEPLOY_REPORT_SWEEP_TABLE_H
#define DEPLOY_REPORT_SWEEP_TABLE_H

#include "common/base/status.h"
#include "deploy/report/sweep_settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SWEEP_TABLE_CELL_BYTES 320
#define SWEEP_TABLE_NOTE                                                                            \
    "Mean over the seeds ± half of its 95 % interval (Student's t). Runs that diverged or failed " \
    "are left out of the means, runs that did not reach the target out of those to the target."

/* Columns: those that the sweep has something for. NULL behind the last. */
const char *sweep_table_heading(const struct sweep_settings *settings, size_t column);
void sweep_table_cell(const struct sweep_settings *settings, size_t setting, size_t column,
                      char *ret_text, size_t text_size);

/* What is to be said of a row of the table whose accuracies are of fewer images than the test set
 * has. False: nothing. */
bool sweep_table_says_part(const struct sweep_settings *settings, size_t setting,
                           char ret_text[RUN_FOLDER_PART_BYTES]);

/* For the terminal. */
void sweep_table_print(FILE *stream, const struct sweep_settings *settings);

/* FOLDER/sweep.csv and FOLDER/sweep.md. Logs. */
enum status sweep_table_write(const char *folder, const struct sweep_settings *settings);

#endif
