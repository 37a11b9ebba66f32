/* Writes the page: settings, table, verdicts, plots, how to reproduce. */
#include "deploy/report/html.h"

#include "deploy/report/fault_costs.h"
#include "deploy/report/html_shards.h"
#include "deploy/report/plots.h"
#include "deploy/report/table.h"
#include "deploy/system/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CELL_BYTES 512

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";

static const char look[] =
    ":root { color-scheme: light dark; --line: #8884; --soft: #8881; }\n"
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 "
    "1rem; }\n"
    "h1 { margin-bottom: 0; } .lead { margin-top: .2rem; opacity: .8; }\n"
    ".scroll { overflow-x: auto; }\n"
    "table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n"
    "th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid "
    "var(--line); white-space: nowrap; }\n"
    "figure { margin: 2rem 0; } figure svg { width: 100%; height: auto; background: white; "
    "border-radius: 6px; }\n"
    "figcaption { opacity: .8; }\n"
    "pre { background: var(--soft); padding: .8rem; border-radius: 6px; overflow-x: auto; }\n"
    ".verdict { border-left: 4px solid #009E73; padding-left: .8rem; }\n"
    "</style></head><body>\n";

void html_escape(FILE *stream, const char *text)
{
    for (; *text != '\0'; text++) {
        const char *entity = *text == '&'   ? "&amp;"
                             : *text == '<' ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '"' ? "&quot;"
                                            : NULL;
        if (entity != NULL) {
            fputs(entity, stream);
        } else {
            fputc(*text, stream);
        }
    }
}

/* Settings that are common to all runs, from the first. */
static void write_lead(FILE *page, const struct report *report)
{
    static const char *const keys[] = {"model",        "parameters", "dataset",
                                       "global_batch", "optimizer",  "lr",
                                       "steps",        "seed",       "device"};
    char value[CELL_BYTES];
    fprintf(page, "<h1>Ringside report</h1>\n<p class=\"lead\">%zu run%s", report->count,
            report->count == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        run_folder_value(&report->runs[0], keys[i], value, sizeof(value));
        if (value[0] != '\0') {
            fprintf(page, " &middot; %s ", keys[i]);
            html_escape(page, value);
        }
    }
    fprintf(page, "</p>\n");
}

static void write_table(FILE *page, const struct report *report)
{
    char cell[CELL_BYTES];
    fprintf(page, "<div class=\"scroll\"><table><thead><tr>");
    for (size_t k = 0; table_heading(k) != NULL; k++) {
        fprintf(page, "<th>%s</th>", table_heading(k));
    }
    fprintf(page, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < report->count; i++) {
        fprintf(page, "<tr>");
        for (size_t k = 0; table_heading(k) != NULL; k++) {
            table_cell(report->runs, i, k, cell, sizeof(cell));
            fprintf(page, "<td>");
            html_escape(page, cell);
            fprintf(page, "</td>");
        }
        fprintf(page, "</tr>\n");
    }
    fprintf(page, "</tbody></table></div>\n");
}

void html_ending(FILE *page, const char *name, const struct run_folder *run)
{
    char reason[CELL_BYTES];
    unsigned long long step;
    run_folder_value(run, "reason", reason, sizeof(reason));
    fprintf(page, "<p><strong>");
    html_escape(page, name);
    if (run_folder_has_diverged(run, &step)) {
        fprintf(page, "</strong> diverged at step %llu: ", step);
    } else {
        fprintf(page, "</strong> did not complete: ");
    }
    html_escape(page, reason);
    fprintf(page, "</p>\n");
}

static void write_verdicts(FILE *page, const struct report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL) {
        return;
    }
    table_print_verdicts(memory, report->runs, report->count);
    fclose(memory);
    for (char *line = text, *end; line != NULL && (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        fprintf(page, "<p class=\"verdict\">");
        html_escape(page, line);
        fprintf(page, "</p>\n");
    }
    free(text);
    for (size_t i = 0; i < report->count; i++) {
        if (!run_folder_is_completed(&report->runs[i])) {
            html_ending(page, report->runs[i].label, &report->runs[i]);
        }
    }
}

/* The SVG without its XML prolog. */
void html_plot(FILE *page, const char *folder, const struct plot *plot)
{
    char path[RUN_FOLDER_PATH_MAX + 64], line[8192];
    snprintf(path, sizeof(path), "%.4000s/%s.svg", folder, plot->name);
    FILE *svg = fopen(path, "re");
    if (svg == NULL) {
        return;
    }
    bool is_inside = false;
    fprintf(page, "<figure>\n");
    while (fgets(line, sizeof(line), svg) != NULL) {
        is_inside = is_inside || strncmp(line, "<svg", 4) == 0;
        if (is_inside) {
            fputs(line, page);
        }
    }
    fclose(svg);
    fprintf(page, "<figcaption>%s</figcaption>\n</figure>\n", plot->caption);
}

static void write_machine(FILE *page)
{
    char line[512], model[256] = "unknown processor";
    struct utsname name;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(model, sizeof(model), "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    uname(&name);
    fprintf(page, "<p>ringside %s, ", RINGSIDE_VERSION);
    html_escape(page, model);
    fprintf(page, ", %ld cores, %s %s.</p>\n", sysconf(_SC_NPROCESSORS_ONLN), name.sysname,
            name.release);
}

void html_begin(FILE *page, const char *title)
{
    fputs(head, page);
    fprintf(page, "<title>%s</title>\n<style>\n", title);
    fputs(look, page);
}

void html_end(FILE *page, const char *command)
{
    fprintf(page, "<h2>Reproduce</h2>\n");
    if (command[0] != '\0') {
        fprintf(page, "<pre>");
        html_escape(page, command);
        fprintf(page, "</pre>\n");
    }
    write_machine(page);
    fprintf(page, "</body></html>\n");
}

struct page {
    const char *folder;
    const struct report *report;
};

static void write_page(FILE *file, const void *context)
{
    const struct page *page = context;
    html_begin(file, "Ringside report");
    write_lead(file, page->report);
    write_table(file, page->report);
    write_verdicts(file, page->report);
    for (const struct plot *plot = plots; plot->name != NULL; plot++) {
        html_plot(file, page->folder, plot);
    }
    fault_costs_html(file, page->report->runs, page->report->count);
    html_shards(file, page->report->runs, page->report->count);
    html_end(file, page->report->command);
}

enum status html_write(const char *folder, const struct report *report)
{
    const struct page page = {folder, report};
    return folder_write(folder, "report.html", write_page, &page);
}
