/* What a sweep ends with: table, plots, and one page with all of it. */
#ifndef DEPLOY_PAGE_SWEEP_REPORT_H
#define DEPLOY_PAGE_SWEEP_REPORT_H

#include "common/base/status.h"
#include "deploy/report/sweep_settings.h"

/* Writes sweep.csv, sweep.md, plots and report.html into a folder, and the table to standard
 * output. Logs. */
enum status sweep_report_write(const char *folder, const struct sweep_results *results,
                               const char *command);

/* The same from the folder of a sweep (sweep.txt and its run folders), into `out`. */
enum status sweep_report_read(const char *folder, const char *out);

/* Reads what a run has left; NULL if it has left nothing. run_folder_close and free. */
struct run_folder *sweep_read_run(const char *folder, const char *name);

#endif
