/* Several run folders as one report: tables, plots, HTML. */
#ifndef DEPLOY_REPORT_H
#define DEPLOY_REPORT_H

#include "common/status.h"
#include "deploy/run_folder.h"

#include <stddef.h>

#define REPORT_RUNS_MAX      512
#define REPORT_COMMAND_BYTES 4096

struct report {
    struct run_folder *runs; // owned
    size_t count;
    char command[REPORT_COMMAND_BYTES]; // that reproduces it; "" if it is not known
};

/* Zeroed is empty. Logs what cannot be read. */
enum status report_add(struct report *report, const char *run_folder);
void report_finish(struct report *report);

/* An argument as a shell takes it whole: bare if nothing in it means anything, otherwise in single
 * quotes. Cut at text_size, which is at least 8. */
void report_quote(const char *argument, char *ret_text, size_t text_size);

/* "ringside compare ..." from the arguments, quoted. */
void report_set_command(struct report *report, int argc, char **argv);

/* Writes table.csv, table.md, plots and report.html into a folder, and the table to standard
 * output. Without gnuplot there are no plots, and a line says so. */
enum status report_write(const struct report *report, const char *folder);

#endif
