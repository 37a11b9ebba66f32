/* Writes one report of several run folders. */
#include "deploy/page/report.h"

#include "common/base/log.h"
#include "deploy/page/page_table.h"
#include "deploy/page/sections.h"
#include "deploy/plot/plots.h"
#include "deploy/report/fault_costs.h"
#include "deploy/report/input_gap.h"
#include "deploy/report/run_classes.h"
#include "deploy/report/run_groups.h"
#include "deploy/report/table.h"
#include "deploy/system/folder.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Settings that are common to all runs. */
static void write_lead(const struct report *report, char *ret_lead, size_t lead_size)
{
    static const char *const keys[][2] = {{"mode", "mode"},
                                          {"model", "model"},
                                          {"parameters", "parameters"},
                                          {"dataset", "dataset"},
                                          {"global_batch", "global batch"},
                                          {"optimizer", "optimizer"},
                                          {"lr", "rate"},
                                          {"steps", "steps"},
                                          {"seed", "seed"},
                                          {"device", "device"}};
    int used =
        snprintf(ret_lead, lead_size, "%zu run%s", report->count, report->count == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char first[64], other[64];
        bool is_common = true;
        run_folder_value(&report->runs[0], keys[i][0], first, sizeof(first));
        for (size_t k = 1; k < report->count && is_common; k++) {
            run_folder_value(&report->runs[k], keys[i][0], other, sizeof(other));
            is_common = strcmp(first, other) == 0;
        }
        if (strcmp(keys[i][0], "dataset") == 0) {
            first[strcspn(first, ":")] = '\0'; // without its folder
        }
        if (is_common && first[0] != '\0' && (size_t)used < lead_size) {
            used +=
                snprintf(ret_lead + used, lead_size - (size_t)used, " · %s %s", keys[i][1], first);
        }
    }
}

static void write_page_table(FILE *page, const void *context)
{
    page_table_write(page, context);
}

static void write_page_details(FILE *page, const void *context)
{
    page_table_write_full(page, context);
}

static enum status write_page(const struct report *report, const struct run_groups *groups,
                              const char *folder)
{
    char lead[1024];
    write_lead(report, lead, sizeof(lead));
    const struct report_page page = {.title = "Ringside report",
                                     .lead = lead,
                                     .folder = folder,
                                     .command = report->command,
                                     .groups = groups,
                                     .plots = plots,
                                     .write_table = write_page_table,
                                     .write_details = write_page_details,
                                     .context = groups};
    return sections_write(&page);
}

enum status report_write_page(const struct report *report, const char *folder)
{
    struct run_groups groups;
    enum status status = run_groups_of(report->runs, report->count, &groups);
    if (status != STATUS_OK) {
        return status;
    }
    status = write_page(report, &groups, folder);
    run_groups_finish(&groups);
    return status;
}

static enum status write_files(const struct report *report, const char *folder)
{
    struct run_groups groups;
    enum status status = table_write(folder, report->runs, report->count);
    if (status != STATUS_OK) {
        return status;
    }
    status = run_groups_of(report->runs, report->count, &groups);
    if (status != STATUS_OK) {
        return status;
    }
    status = plots_write(folder, &groups);
    if (status == STATUS_OK) {
        status = write_page(report, &groups, folder);
    }
    run_groups_finish(&groups);
    return status;
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
    run_classes_print(stdout, report->runs, report->count);
    table_print_verdicts(stdout, report->runs, report->count);
    fault_costs_print(stdout, report->runs, report->count);
    enum status gap_status = input_gaps_report(report->runs, report->count, folder);
    status = status == STATUS_OK ? gap_status : status;
    if (status == STATUS_OK) {
        printf("report: %s/report.html\n", folder);
    }
    fflush(stdout);
    return status;
}
