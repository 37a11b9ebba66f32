/* Writes what faults have cost. */
#include "deploy/page/html_faults.h"

#include "deploy/page/html.h"
#include "deploy/report/fault_costs.h"

#include <stdbool.h>

static void begin_table(FILE *page)
{
    fprintf(
        page,
        "<p class=\"note\">To go on: from each loss, as it was noticed, until all trained "
        "again. Before: until the first loss. During: steps that were made again, in the time from "
        "each loss until the job was as far as before; where nobody was lost, between the last "
        "measurement before the first fault and the first one behind the steps that it disturbed. "
        "After: since training went on after the last loss. Moved: what members fetched to go on "
        "from. More, and bits: against the same job without either.</p>\n<div "
        "class=\"scroll\"><table><thead><tr>");
    for (size_t k = 0; k < FAULT_COLUMNS; k++) {
        fprintf(page, "<th>%s</th>", fault_cost_headings[k]);
    }
    fprintf(page, "</tr></thead><tbody>\n");
}

/* What came to nothing of what a row's name says. */
static void write_unmet(FILE *page, const struct run_folder *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *sentence;
        for (size_t k = 0; (sentence = run_folder_unmet_fault(&runs[i], k)) != NULL; k++) {
            fprintf(page, "<p class=\"note\">");
            html_escape(page, runs[i].label);
            fprintf(page, ": ");
            html_escape(page, sentence);
            fprintf(page, "</p>\n");
        }
    }
}

void html_faults(FILE *page, const struct run_folder *runs, size_t count)
{
    bool has_head = false;
    char cells[FAULT_COLUMNS][FAULT_CELL_BYTES];
    for (size_t i = 0; i < count; i++) {
        struct fault_cost cost;
        if (!fault_cost_find(runs, count, i, &cost)) {
            continue;
        }
        if (!has_head) {
            begin_table(page);
            has_head = true;
        }
        fault_cost_format(&runs[i], &cost, cells);
        fprintf(page, "<tr><td>");
        html_escape(page, runs[i].label); // whole
        fprintf(page, "</td>");
        for (size_t k = 1; k < FAULT_COLUMNS; k++) {
            fprintf(page, "<td>");
            html_escape(page, cells[k]);
            fprintf(page, "</td>");
        }
        fprintf(page, "</tr>\n");
    }
    if (has_head) {
        fprintf(page, "</tbody></table></div>\n");
    }
    write_unmet(page, runs, count);
}
