/* Writes report.html of predictions. */
#include "deploy/page/prediction_report.h"

#include "deploy/page/figure_parts.h"
#include "deploy/page/html.h"
#include "deploy/plot/prediction_plots.h"
#include "deploy/predict/advise/winners.h"
#include "deploy/predict/basis/fields.h"
#include "deploy/predict/study/study_batches.h"
#include "deploy/predict/study/study_target.h"
#include "deploy/system/folder.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct page {
    const char *folder;
    const struct prediction_report *report;
    const struct winners *winners;
    json_t *figures; // owned
};

/* ==========================================================================================
 * Tables
 * ========================================================================================== */

static void write_cell(FILE *file, const char *text)
{
    fprintf(file, "<td>");
    html_escape(file, text);
    fprintf(file, "</td>");
}

static void write_row(FILE *file, const struct study *study, const struct study_point *point,
                      const char *what_if)
{
    char target[STUDY_TARGET_BYTES];
    const struct prediction *made = &point->made;
    fprintf(file, "<tr>");
    if (study->what_if_count > 0) {
        write_cell(file, what_if);
    }
    write_cell(file, study_design_text(point->design).text);
    if (point->is_too_large) {
        fprintf(file, "<td>%u</td><td colspan=\"%d\">%s</td></tr>\n", point->workers,
                study->convergence != NULL ? 9 : 8, STUDY_TOO_LARGE);
        return;
    }
    fprintf(file,
            "<td>%u</td><td>%.1f</td><td>%.2f</td><td>%.1f</td><td>%.3f</td><td>%.3f</td>"
            "<td>%.3f</td><td>%.3f</td>",
            point->workers, made->images_per_s, point->speed_up, 100 * point->efficiency,
            1e3 * made->step_s, 1e3 * made->compute_s, 1e3 * made->wait_s,
            staleness_mean(&made->staleness));
    if (study->convergence != NULL) {
        study_target_cell(study, point, target);
        write_cell(file, target + strspn(target, " "));
    }
    fprintf(file, "<td>%s (-%.1f %%)</td></tr>\n", point->limiter, 100 * point->limiter_gain);
}

/* Each point with its changes below it. */
static void write_points(FILE *file, const struct study *study)
{
    fprintf(file,
            "<div class=\"scroll\"><table><thead><tr>%s<th>design</th><th>workers</th>"
            "<th>images/s</th><th>speed-up</th><th>efficiency %%</th><th>step ms</th>"
            "<th>computing</th><th>waiting</th><th>staleness</th>%s<th>limiter</th></tr></thead>"
            "<tbody>\n",
            study->what_if_count > 0 ? "<th>what if</th>" : "",
            study->convergence != NULL ? "<th>to target</th>" : "");
    for (size_t i = 0; i < study->point_count; i++) {
        for (size_t change = 0; change <= study->what_if_count; change++) {
            write_row(file, study, &study->points[change * study->point_count + i],
                      change > 0 ? study->what_ifs[change - 1].text : "unchanged");
        }
    }
    fprintf(file, "</tbody></table></div>\n<p class=\"note\">The limiter is the cost without which "
                  "a step would be shortest, and by how much.</p>\n");
}

/* What a function prints: a paragraph for each line, an item for each that begins with a dash. */
static void write_printed(FILE *file, const struct page *page,
                          void (*print)(const struct page *page, FILE *stream))
{
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    bool is_list = false;
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL) {
        return;
    }
    print(page, memory);
    if (fclose(memory) != 0) {
        free(text);
        return;
    }
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        bool is_item = strncmp(line, "- ", 2) == 0;
        if (is_item != is_list) {
            fprintf(file, is_item ? "<ul>\n" : "</ul>\n");
            is_list = is_item;
        }
        fprintf(file, is_item ? "<li>" : "<p>");
        html_escape(file, is_item ? line + 2 : line);
        fprintf(file, is_item ? "</li>\n" : "</p>\n");
    }
    fprintf(file, is_list ? "</ul>\n" : "");
    free(text);
}

static void print_crossovers(const struct page *page, FILE *stream)
{
    crossover_print(page->report->crossovers, stream);
}

static void print_left_out(const struct page *page, FILE *stream)
{
    study_print_left_out(page->report->study, stream);
}

static void print_unknown(const struct page *page, FILE *stream)
{
    study_target_print_unknown(page->report->study, stream);
}

/* ==========================================================================================
 * Figures
 * ========================================================================================== */

static const struct study_point *point_of(const struct study *study, size_t workers, size_t design)
{
    return &study->points[workers * study->design_count + design];
}

/* [x, y] or [x, y, low, high]; without y where it is not known */
static json_t *make_point(const struct study_point *point, double value, bool is_time)
{
    double low, high;
    if (value <= 0) {
        return json_pack("[f, n]", (double)point->workers); // the line ends here
    }
    if (!prediction_plots_band(point, &low, &high)) {
        return figure_point(point->workers, value);
    }
    return json_pack("[f, f, f, f]", (double)point->workers, value,
                     is_time ? value / high : value * low, is_time ? value / low : value * high);
}

static json_t *make_figure(const struct study *study, bool is_time)
{
    struct run_stroke strokes[STUDY_POINTS_MAX];
    json_t *figure =
        is_time ? figure_lines("to-target", "Time to target", "workers", "time to target (s)", "")
                : figure_lines("efficiency", "Efficiency", "workers", "efficiency (%)", "");
    prediction_plots_strokes(study, strokes);
    for (size_t i = 0; i < study->design_count; i++) {
        json_t *series =
            figure_add_series(figure, study_design_text(study->designs[i]).text, strokes[i]);
        for (size_t w = 0; w < study->worker_count; w++) {
            const struct study_point *point = point_of(study, w, i);
            double value = is_time ? point->target.seconds : 100 * point->efficiency;
            json_array_append_new(json_object_get(series, "points"),
                                  make_point(point, value, is_time));
        }
    }
    if (!is_time) {
        json_t *ideal =
            figure_add_series(figure, "ideal", (struct run_stroke){RUN_COLOURS - 1, RUN_DASHES});
        for (size_t w = 0; w < study->worker_count; w++) {
            json_array_append_new(json_object_get(ideal, "points"),
                                  figure_point(study->workers[w], 100));
        }
    }
    figure_set_limits(figure, 1e30);
    json_object_set_new(figure, "y_min", json_real(0));
    json_object_set_new(figure, "x_is_log", json_boolean(prediction_plots_is_wide(study)));
    return figure;
}

static void write_figure(FILE *file, struct page *page, bool is_time)
{
    const struct study *study = page->report->study;
    const struct plot *plot = &prediction_plots[is_time];
    if (!prediction_plots_has(plot, study)) {
        return;
    }
    json_t *figure = make_figure(study, is_time);
    if (html_has_charts()) {
        fprintf(file, "<figure id=\"%s\"><h3>%s</h3>\n<figcaption>%s</figcaption></figure>\n",
                json_string_value(json_object_get(figure, "id")),
                json_string_value(json_object_get(figure, "title")), plot->caption);
        json_array_append(page->figures, figure);
    } else {
        html_image(file, page->folder, plot->name, plot->caption);
    }
    json_decref(figure);
}

/* ==========================================================================================
 * The map
 * ========================================================================================== */

static void write_map_table(FILE *file, const struct page *page)
{
    const struct study *study = page->report->study;
    char text[QUANTITY_BYTES];
    fprintf(file, "<details><summary>The same as a table</summary>\n<div class=\"scroll full\">"
                  "<table><thead><tr><th>bandwidth of the first host</th>");
    for (size_t w = 0; w < study->worker_count; w++) {
        fprintf(file, "<th>%u workers</th>", study->workers[w]);
    }
    fprintf(file, "</tr></thead><tbody>\n");
    for (size_t f = WINNERS_FACTORS; f-- > 0;) {
        quantity_format(winners_bandwidth(study, f), QUANTITY_BANDWIDTH, text);
        fprintf(file, "<tr>");
        write_cell(file, text);
        for (size_t w = 0; w < study->worker_count; w++) {
            const struct winner *winner = &page->winners->cells[w][f];
            bool is_known = winner->design != WINNERS_NONE;
            fprintf(file, "<td>");
            html_escape(file, is_known ? study_design_text(study->designs[winner->design]).text
                                       : "not known");
            if (is_known) {
                fprintf(file, " (%+.1f %%)", 100 * winner->lead);
            }
            fprintf(file, "</td>");
        }
        fprintf(file, "</tr>\n");
    }
    fprintf(file, "</tbody></table></div></details>\n");
}

static void write_map(FILE *file, const struct page *page)
{
    const struct study *study = page->report->study;
    if (study->design_count < 2) {
        return;
    }
    fprintf(file,
            "<h2>Who is the fastest, by bandwidth</h2>\n<p>By %s. All links change by the "
            "same factor.</p>\n",
            study->convergence != NULL ? "time to target" : "images per second");
    html_image(file, page->folder, prediction_plots[2].name, prediction_plots[2].caption);
    write_map_table(file, page);
}

/* ==========================================================================================
 * The page
 * ========================================================================================== */

static void write_lead(FILE *file, const struct study *study)
{
    char lead[2 * JOB_PATH_BYTES + 256];
    snprintf(lead, sizeof(lead), "costs %s · network %s · %u images a step%s · %u hosts · %u steps",
             study->costs_file, study->network_file,
             study_is_strong(study) ? study->job.global_batch : study->costs->batch,
             study_is_strong(study) ? " of all workers together" : "", study->network->host_count,
             study->counted);
    fprintf(file, "<h1>Ringside predictions</h1>\n<p class=\"lead\">");
    html_escape(file, lead);
    fprintf(file, "</p>\n<p class=\"note\">Predicted, not measured.</p>\n");
}

static void write_page(FILE *file, const void *context)
{
    struct page page = *(const struct page *)context;
    const struct study *study = page.report->study;
    html_begin(file, "Ringside predictions");
    write_lead(file, study);
    fprintf(file, "<h2>Result</h2>\n");
    write_points(file, study);
    if (study->convergence != NULL) {
        write_printed(file, &page, print_unknown);
    }
    write_printed(file, &page, print_crossovers);
    fprintf(file, "<h2>Scaling</h2>\n<div class=\"plots\">\n");
    write_figure(file, &page, false);
    if (study->convergence != NULL) {
        write_figure(file, &page, true);
    }
    fprintf(file, "</div>\n");
    write_map(file, &page);
    fprintf(file, "<h2>Limits</h2>\n");
    write_printed(file, &page, print_left_out);
    fprintf(file, "<h2>Environment</h2>\n<p>This command repeats it:</p>\n<pre>");
    html_escape(file, page.report->command);
    fprintf(file, "</pre>\n<p>This page was written by ringside %s.</p>\n", RINGSIDE_VERSION);
    html_end(file, page.figures);
}

static void write_json(FILE *file, const void *context)
{
    const struct page *page = context;
    json_dumpf(page->report->predictions, file, JSON_INDENT(2));
    fprintf(file, "\n");
}

static enum status write_files(const struct page *page)
{
    enum status status = folder_write(page->folder, "predictions.json", write_json, page);
    if (status == STATUS_OK) {
        status = prediction_plots_write(page->folder, page->report->study, page->winners);
    }
    return status == STATUS_OK ? folder_write(page->folder, "report.html", write_page, page)
                               : status;
}

enum status prediction_report_write(const char *folder, const struct prediction_report *report)
{
    struct winners *winners = calloc(1, sizeof(*winners));
    const struct page page = {folder, report, winners, json_array()};
    enum status status = winners != NULL && page.figures != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        status = winners_make(report->study, winners);
    }
    if (status == STATUS_OK) {
        status = write_files(&page);
    }
    json_decref(page.figures);
    free(winners);
    return status;
}
