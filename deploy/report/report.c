/* Writes one report of several run folders. */
#include "deploy/report/report.h"

#include "common/base/log.h"
#include "deploy/report/fault_costs.h"
#include "deploy/report/html.h"
#include "deploy/report/plots.h"
#include "deploy/report/table.h"
#include "deploy/system/folder.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status report_add(struct report *report, const char *run_folder)
{
    if (report->runs == NULL) {
        report->runs = calloc(REPORT_RUNS_MAX, sizeof(*report->runs));
    }
    if (report->runs == NULL || report->count == REPORT_RUNS_MAX) {
        log_error("more than %d runs in a report", REPORT_RUNS_MAX);
        return STATUS_NO_MEMORY;
    }
    enum status status = run_folder_open(run_folder, &report->runs[report->count]);
    report->count += status == STATUS_OK;
    return status;
}

void report_finish(struct report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        run_folder_close(&report->runs[i]);
    }
    free(report->runs);
    *report = (struct report){0};
}

static enum status write_files(const struct report *report, const char *folder)
{
    enum status status = table_write(folder, report->runs, report->count);
    if (status != STATUS_OK) {
        return status;
    }
    status = plots_write(folder, report->runs, report->count);
    return status == STATUS_OK ? html_write(folder, report) : status;
}

enum status report_write(const struct report *report, const char *folder)
{
    if (report->count == 0) {
        log_error("there is no run to report");
        return STATUS_INVALID;
    }
    enum status status = write_files(report, folder);
    printf("\n");
    table_print(stdout, report->runs, report->count);
    printf("\n");
    table_print_verdicts(stdout, report->runs, report->count);
    fault_costs_print(stdout, report->runs, report->count);
    if (status == STATUS_OK) {
        printf("report: %s/report.html\n", folder);
    }
    fflush(stdout);
    return status;
}
