/* Writes report.html of a sweep. */
#include "deploy/page/sweep_report.h"

#include "common/base/log.h"
#include "common/job/job_options.h"
#include "deploy/page/html.h"
#include "deploy/page/page_table.h"
#include "deploy/page/sections.h"
#include "deploy/plot/sweep_plots.h"
#include "deploy/report/fault_costs.h"
#include "deploy/report/input_gap.h"
#include "deploy/report/run_groups.h"
#include "deploy/report/sweep_rates.h"
#include "deploy/report/sweep_table.h"
#include "deploy/sweep/sweep_file.h"
#include "deploy/system/folder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES (FOLDER_PATH_MAX + 256)

struct page {
    const char *folder, *command;
    const struct sweep_results *results;
    const struct sweep_settings *settings;
    const struct run_groups *groups;
};

/* The batch of a worker follows from it. */
static bool has_global_batch(const struct sweep_plan *plan)
{
    for (size_t i = 1; i < plan->count; i++) {
        if (plan->runs[i].job.global_batch != plan->runs[0].job.global_batch) {
            return false;
        }
    }
    return plan->count > 0 && plan->runs[0].job.global_batch > 0;
}

/* Options that all runs have in common, as far as they matter to most. */
static void write_lead(const struct sweep_plan *plan, char *ret_lead, size_t lead_size)
{
    static const char *const names[] = {
        "mode",         "model",       "data",   "workers",         "batch",
        "global-batch", "epochs",      "steps",  "optimizer",       "lr",
        "order",        "limit-train", "remedy", "target-accuracy", "device"};
    int used =
        snprintf(ret_lead, lead_size, "%zu settings, %zu runs", plan->group_count, plan->count);
    for (size_t i = 0; i < job_option_count; i++) {
        char first[OPTION_VALUE_BYTES], other[OPTION_VALUE_BYTES], words[RUN_WORDS_BYTES];
        bool matters = false, is_common = true;
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            matters = matters || strcmp(names[k], job_options[i].name) == 0;
        }
        matters = matters && (strcmp(job_options[i].name, "batch") != 0 || !has_global_batch(plan));
        option_format(&job_options[i], &plan->runs[0].job, first, sizeof(first));
        for (size_t k = 1; k < plan->count && matters && is_common; k++) {
            option_format(&job_options[i], &plan->runs[k].job, other, sizeof(other));
            is_common = strcmp(first, other) == 0;
        }
        if (matters && is_common && strcmp(first, "0") != 0 && strcmp(first, "none") != 0 &&
            strcmp(first, "free") != 0 && strcmp(first, "auto") != 0 && (size_t)used < lead_size) {
            run_words_of_option(job_options[i].name, first, words);
            used += snprintf(ret_lead + used, lead_size - (size_t)used, " · %s", words);
        }
    }
}

static void write_table(FILE *file, const void *context)
{
    const struct page *page = context;
    const struct sweep_settings *settings = page->settings;
    char cell[SWEEP_TABLE_CELL_BYTES], words[RUN_WORDS_BYTES];
    fprintf(file, "<div class=\"scroll\"><table><thead><tr>");
    for (size_t k = 0; sweep_table_heading(settings, k) != NULL; k++) {
        fprintf(file, "<th>%s</th>", sweep_table_heading(settings, k));
    }
    fprintf(file, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < settings->count; i++) {
        fprintf(file, "<tr>");
        for (size_t k = 0; sweep_table_heading(settings, k) != NULL; k++) {
            sweep_table_cell(settings, i, k, cell, sizeof(cell));
            if (k == 0) {
                run_words_of_label(settings->list[settings->rows[i]].label, NULL, words);
                snprintf(cell, sizeof(cell), "%s", words);
            }
            fprintf(file, "<td>");
            html_escape(file, cell);
            fprintf(file, "</td>");
        }
        fprintf(file, "</tr>\n");
    }
    fprintf(file, "</tbody></table></div>\n<p class=\"note\">%s</p>\n", SWEEP_TABLE_NOTE);
    for (size_t i = 0; i < settings->count; i++) {
        if (sweep_table_says_part(settings, i, cell)) {
            run_words_of_label(settings->list[settings->rows[i]].label, NULL, words);
            html_note(file, words, cell);
        }
    }
}

/* The largest rates, where the sweep has several and they differ in staleness. */
static void write_rates(FILE *file, const struct sweep_results *results)
{
    struct sweep_rate rates[SWEEP_RATES_MAX];
    char words[RUN_WORDS_BYTES];
    size_t count = sweep_rates_of(results, rates);
    if (count == 0 || rates[count - 1].staleness <= rates[0].staleness) {
        return;
    }
    fprintf(file, "<h3>The largest rate that training survived</h3>\n<div class=\"scroll\"><table>"
                  "<thead><tr><th>setting</th><th>mean staleness</th><th>largest rate</th>"
                  "<th>relative</th><th>theory</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "<tr><td>");
        run_words_of_label(rates[i].label, NULL, words);
        html_escape(file, words);
        fprintf(file, "</td><td>%.2f</td><td>%.3g ± %.2g</td><td>1/%.1f</td><td>1/%.1f</td></tr>\n",
                rates[i].staleness, rates[i].rate.mean, rates[i].rate.half_width,
                rates[i].relative > 0 ? 1 / rates[i].relative : 0, 1 / rates[i].theory);
    }
    fprintf(file,
            "</tbody></table></div>\n<p class=\"note\">Of the rates that were tried, the "
            "largest one with at least half of the best accuracy of the sweep: mean over the "
            "seeds ± half of its 95 %% interval. By theory a rate may be 2 sin(π / (4 τ + 2)) "
            "over the largest curvature, about as 1 / (2 τ + 1).</p>\n");
}

static void write_details(FILE *file, const void *context)
{
    const struct page *page = context;
    write_rates(file, page->results);
    page_table_write_full(file, page->groups);
}

static enum status write_page(const struct page *page)
{
    char lead[2048];
    write_lead(page->results->plan, lead, sizeof(lead));
    const struct report_page shown = {.title = "Ringside sweep",
                                      .lead = lead,
                                      .folder = page->folder,
                                      .command = page->command,
                                      .groups = page->groups,
                                      .plots = sweep_plots,
                                      .write_table = write_table,
                                      .write_details = write_details,
                                      .context = page};
    return sections_write(&shown);
}

static enum status write_files(const struct page *page)
{
    struct run_groups groups;
    enum status status = sweep_table_write(page->folder, page->settings);
    if (status != STATUS_OK) {
        return status;
    }
    status = run_groups_of_sweep(page->results, &groups);
    if (status != STATUS_OK) {
        return status;
    }
    struct page whole = *page;
    whole.groups = &groups;
    status = sweep_plots_write(page->folder, page->settings, &groups);
    if (status == STATUS_OK) {
        status = write_page(&whole);
    }
    run_groups_finish(&groups);
    return status;
}

/* Where a sweep has the same jobs without faults, or on synthetic data, too. */
static enum status report_comparisons(const struct page *page)
{
    struct run_groups groups;
    size_t count;
    enum status status = run_groups_of_sweep(page->results, &groups);
    if (status != STATUS_OK) {
        return status;
    }
    struct run_folder *runs = run_groups_copy_runs(&groups, &count);
    if (runs != NULL) {
        fault_costs_print(stdout, runs, count);
    }
    status = runs != NULL ? input_gaps_report(runs, count, page->folder) : STATUS_NO_MEMORY;
    free(runs);
    run_groups_finish(&groups);
    return status;
}

enum status sweep_report_write(const char *folder, const struct sweep_results *results,
                               const char *command)
{
    struct sweep_settings settings;
    enum status status = sweep_settings_of(results, &settings);
    if (status != STATUS_OK) {
        return status;
    }
    const struct page page = {folder, command, results, &settings, NULL};
    status = write_files(&page);
    printf("\n");
    sweep_table_print(stdout, &settings);
    printf("\n");
    enum status comparison_status = report_comparisons(&page);
    status = status == STATUS_OK ? comparison_status : status;
    if (status == STATUS_OK) {
        printf("report: %s/report.html\n", folder);
    }
    fflush(stdout);
    sweep_settings_free(&settings);
    return status;
}

struct run_folder *sweep_read_run(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%.4000s/%s", folder, name);
    struct run_folder *run = run_folder_has_summary(path) ? calloc(1, sizeof(*run)) : NULL;
    if (run != NULL && run_folder_open(path, run) != STATUS_OK) {
        free(run);
        return NULL;
    }
    return run;
}

enum status sweep_report_read(const char *folder, const char *out)
{
    char command[COMMAND_TEXT_BYTES];
    struct sweep_plan plan;
    enum status status = sweep_file_read(folder, &plan, command);
    if (status != STATUS_OK) {
        return status;
    }
    struct run_folder **runs = calloc(plan.count, sizeof(struct run_folder *));
    for (size_t i = 0; runs != NULL && i < plan.count; i++) {
        runs[i] = sweep_read_run(folder, plan.runs[i].name);
    }
    const struct sweep_results results = {&plan, runs};
    status = runs != NULL ? sweep_report_write(out, &results, command) : STATUS_NO_MEMORY;
    for (size_t i = 0; runs != NULL && i < plan.count; i++) {
        if (runs[i] != NULL) {
            run_folder_close(runs[i]);
            free(runs[i]);
        }
    }
    free(runs);
    sweep_plan_free(&plan);
    return status;
}
