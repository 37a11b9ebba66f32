/* Writes what faults have cost, and draws how fast the runs were. */
#include "deploy/page/html_faults.h"

#include "deploy/page/html.h"
#include "deploy/report/fault_costs.h"
#include "deploy/report/fault_lines.h"

#include <stdbool.h>

#define WIDTH  720.0
#define HEIGHT 240.0
#define MARGIN 48.0

/* Of a picture: the largest values on its axes. */
struct scale {
    double seconds, rate;
};

static void widen(const struct run_folder *run, struct scale *scale)
{
    struct fault_lines lines;
    if (!fault_lines_read(run, &lines)) {
        return;
    }
    for (size_t i = 0; i < lines.count; i++) {
        double rate = run_folder_number(run, "global_batch") * fault_lines_rate(&lines, i);
        scale->rate = rate > scale->rate ? rate : scale->rate;
        scale->seconds =
            lines.list[i].seconds > scale->seconds ? lines.list[i].seconds : scale->seconds;
    }
    fault_lines_finish(&lines);
}

static void draw_run(FILE *page, const struct run_folder *run, const struct scale *scale,
                     size_t index)
{
    static const char *const colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"};
    const char *colour = colours[index % (sizeof(colours) / sizeof(colours[0]))];
    struct fault_lines lines;
    if (!fault_lines_read(run, &lines)) {
        return;
    }
    fprintf(page, "<polyline fill=\"none\" stroke=\"%s\" points=\"", colour);
    for (size_t i = 0; i < lines.count; i++) {
        double rate = run_folder_number(run, "global_batch") * fault_lines_rate(&lines, i);
        fprintf(page, "%.1f,%.1f ", MARGIN + WIDTH * lines.list[i].seconds / scale->seconds,
                MARGIN + HEIGHT * (1 - rate / scale->rate));
    }
    fprintf(page, "\"/>\n<text x=\"%.0f\" y=\"%.0f\" fill=\"%s\">", MARGIN + WIDTH + 8,
            MARGIN + 16 * (double)index, colour);
    html_escape(page, run->label);
    fprintf(page, "</text>\n");
    fault_lines_finish(&lines);
}

/* Images a second over seconds, a line for each run. */
static void draw(FILE *page, const struct run_folder *runs, size_t count)
{
    struct scale scale = {0, 0};
    for (size_t i = 0; i < count; i++) {
        widen(&runs[i], &scale);
    }
    if (scale.seconds <= 0 || scale.rate <= 0) {
        return;
    }
    fprintf(page,
            "<figure>\n<svg viewBox=\"0 0 %.0f %.0f\" font-size=\"13\">\n"
            "<text x=\"0\" y=\"%.0f\">%.0f</text>\n<text x=\"0\" y=\"%.0f\">0</text>\n"
            "<text x=\"%.0f\" y=\"%.0f\">%.1f s</text>\n",
            WIDTH + 2 * MARGIN + 200, HEIGHT + 2 * MARGIN, MARGIN, scale.rate, MARGIN + HEIGHT,
            MARGIN + WIDTH - 40, MARGIN + HEIGHT + 20, scale.seconds);
    for (size_t i = 0; i < count; i++) {
        draw_run(page, &runs[i], &scale, i);
    }
    fprintf(page, "</svg>\n<figcaption>Images a second over the time of each run. After a loss the "
                  "steps are made again that no copy has.</figcaption>\n</figure>\n");
}

static void begin_table(FILE *page)
{
    fprintf(page,
            "<p class=\"note\">To go on: from each loss, as it was noticed, until all trained "
            "again. During: between the last measurement before the first fault and the first one "
            "behind the steps that it disturbed. Moved: what members fetched to go on from. More, "
            "and bits: against the same job without faults.</p>\n<div "
            "class=\"scroll\"><table><thead><tr>");
    for (size_t k = 0; k < FAULT_COLUMNS; k++) {
        fprintf(page, "<th>%s</th>", fault_cost_headings[k]);
    }
    fprintf(page, "</tr></thead><tbody>\n");
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
        fprintf(page, "<tr>");
        for (size_t k = 0; k < FAULT_COLUMNS; k++) {
            fprintf(page, "<td>");
            html_escape(page, cells[k]);
            fprintf(page, "</td>");
        }
        fprintf(page, "</tr>\n");
    }
    if (has_head) {
        fprintf(page, "</tbody></table></div>\n");
        draw(page, runs, count);
    }
}
