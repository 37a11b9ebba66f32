/* Several run folders as one report: tables, plots, HTML. */
#ifndef DEPLOY_PAGE_REPORT_H
#define DEPLOY_PAGE_REPORT_H

#include "common/base/status.h"
#include "deploy/report/run_folder.h"
#include "deploy/system/command_text.h"

#include <stddef.h>

#define REPORT_RUNS_MAX 4096

struct report {
    struct run_folder *runs; // owned
    size_t count;
    char command[COMMAND_TEXT_BYTES]; // that reproduces it; "" if it is not known
};

/* Zeroed is empty. Logs what cannot be read. */
enum status report_add(struct report *report, const char *run_folder);
void report_finish(struct report *report);

/* Writes table.csv, table.md, plots and report.html into a folder, and the table to standard
 * output. Without gnuplot there are no plots, and a line says so. */
enum status report_write(const struct report *report, const char *folder);

/* FOLDER/report.html alone, of at least one run. Logs. */
enum status report_write_page(const struct report *report, const char *folder);

#endif
