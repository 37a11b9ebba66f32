/* Draws a bar of links for each run, and folds their numbers away below it. */
#include "deploy/page/html_critical.h"

#include "deploy/page/html.h"

#include <jansson.h>

#include <math.h>
#include <string.h>

#define LETTER_WIDTH 7.5   // pixels, as rows are
#define NARROW_ROW   680.0 // the narrowest one with names, as page.css says
#define WIDE_ROW     1200.0
#define LEAST_SHARE  0.005 // that is drawn by itself
#define LEAST_CHANGE 0.5   // percent; a smaller one is within rounding

/* A colour for what is done, the same in all rows, and one of letters that can be read on it. */
static const struct kind {
    const char *what, *colour, *ink;
} kinds[] = {
    {"forward", "#56B4E9", "#000"},
    {"backward", "#0072B2", "#fff"},
    {"optimizer", "#009E73", "#000"},
    {"planned delay", "#D55E00", "#000"},
    {"exchange", "#E69F00", "#000"},
    {"input", "#F0E442", "#000"},
    {"handling of messages", "#CC79A7", "#000"},
    {"sum and update", "#7F5FA8", "#fff"},
    {"copying", "#8C6D31", "#fff"},
    {"link", "#D62728", "#fff"},
    {"other work", "#888888", "#000"}, // and what has no row
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *found = json_string_value(json_object_get(object, key));
    return found != NULL ? found : "";
}

static size_t kind_of(const json_t *share)
{
    size_t kind = 0;
    while (kind + 1 < KINDS && strcmp(kinds[kind].what, text(share, "what")) != 0) {
        kind++;
    }
    return kind;
}

/* ==========================================================================================
 * The row
 * ========================================================================================== */

/* A box of a row: where it begins and how wide it is, as shares of all. */
static void begin_box(FILE *page, double start, double part, size_t kind)
{
    fprintf(page,
            "<rect x=\"%.2f%%\" width=\"%.2f%%\" height=\"28\" fill=\"%s\" stroke=\"#fff\" "
            "stroke-width=\"0.5\">",
            100 * start, 100 * part, kinds[kind].colour);
}

/* The name of a box is written on it where there is room; on narrower screens the style hides it.
 */
static void write_link(FILE *page, const json_t *share, double start)
{
    size_t kind = kind_of(share);
    double part = number(share, "share");
    const char *name = text(share, "name");
    begin_box(page, start, part, kind);
    fprintf(page, "<title>");
    html_escape(page, name);
    fprintf(page, ": %.3f ms a step, %.1f %%</title></rect>\n", number(share, "ms_per_step"),
            100 * part);
    double room = ((double)strlen(name) + 2) * LETTER_WIDTH;
    if (room <= part * WIDE_ROW) {
        fprintf(page, "<text %sx=\"%.2f%%\" dx=\"6\" y=\"19\" font-size=\"13\" fill=\"%s\">",
                room <= part * NARROW_ROW ? "" : "class=\"wide\" ", 100 * start, kinds[kind].ink);
        html_escape(page, name);
        fprintf(page, "</text>\n");
    }
}

/* Adds the kinds that it has drawn. */
static void write_row(FILE *page, const json_t *path, bool *is_used)
{
    size_t i;
    json_t *share;
    double start = 0;
    fprintf(page, "<svg class=\"row\" width=\"100%%\" height=\"28\" role=\"img\" aria-label=\"");
    html_escape(page, text(path, "limiter"));
    fprintf(page, "\">\n");
    json_array_foreach(json_object_get(path, "shares"), i, share)
    {
        if (number(share, "share") >= LEAST_SHARE) {
            write_link(page, share, start);
            start += number(share, "share");
            is_used[kind_of(share)] = true;
        }
    }
    if (start > 0 && start < 1 - LEAST_SHARE / 2) {
        begin_box(page, start, 1 - start, KINDS - 1);
        fprintf(page, "<title>all other links: %.1f %%</title></rect>\n", 100 * (1 - start));
        is_used[KINDS - 1] = true;
    }
    fprintf(page, "</svg>\n");
}

static void write_legend(FILE *page, const bool *is_used)
{
    fprintf(page, "<p class=\"kinds\">");
    for (size_t i = 0; i < KINDS; i++) {
        if (is_used[i]) {
            fprintf(page,
                    "<span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect width=\"12\" "
                    "height=\"12\" fill=\"%s\"/></svg> %s</span>\n",
                    kinds[i].colour, kinds[i].what);
        }
    }
    fprintf(page, "</p>\n");
}

/* ==========================================================================================
 * Its numbers
 * ========================================================================================== */

static void write_table(FILE *page, const json_t *path)
{
    size_t i;
    json_t *share;
    fprintf(page, "<details><summary>Who, what, how long</summary>\n<div class=\"scroll full\">"
                  "<table><thead><tr><th>who</th><th>what</th><th>ms a step</th><th>share</th>"
                  "<th>steps limited</th></tr></thead><tbody>\n");
    json_array_foreach(json_object_get(path, "shares"), i, share)
    {
        fprintf(page, "<tr><td>");
        html_escape(page, text(share, "who"));
        fprintf(page, "</td><td>");
        html_escape(page, text(share, "what"));
        fprintf(page, "</td><td>%.3f</td><td>%.1f %%</td><td>%.0f %%</td></tr>\n",
                number(share, "ms_per_step"), 100 * number(share, "share"),
                100 * number(share, "steps_limited"));
    }
    fprintf(page, "</tbody></table></div></details>\n");
}

/* "With no straggler: -31 %." first, then what would change nothing. */
static void write_changes(FILE *page, const json_t *path)
{
    const json_t *changes = json_object_get(path, "what_if"), *change;
    const char *before = " No change";
    size_t i;
    fprintf(page, "<p>%.3f ms a step.", number(path, "ms_per_step"));
    json_array_foreach(changes, i, change)
    {
        double percent = number(change, "percent");
        if (fabs(percent) >= LEAST_CHANGE) {
            fprintf(page, " With ");
            html_escape(page, text(change, "change"));
            fprintf(page, ": %s%.0f %% a step.", percent < 0 ? "−" : "+", fabs(percent));
        }
    }
    json_array_foreach(changes, i, change)
    {
        if (!(fabs(number(change, "percent")) >= LEAST_CHANGE)) {
            fprintf(page, "%s with ", before);
            html_escape(page, text(change, "change"));
            before = ", nor";
        }
    }
    fprintf(page, "%s</p>\n", before[0] == ',' ? "." : "");
}

static void write_run(FILE *page, const struct run_group *group, size_t index, const json_t *path,
                      bool *is_used)
{
    fprintf(page, "<p><strong>");
    html_escape(page, group->label);
    if (group->count > 1) {
        fprintf(page, ", seed %.0f", run_folder_number(group->runs[index], "seed"));
    }
    fprintf(page, "</strong>: ");
    html_escape(page, text(path, "limiter"));
    fprintf(page, ".</p>\n");
    write_row(page, path, is_used);
    write_changes(page, path);
    write_table(page, path);
}

void html_critical(FILE *page, const struct run_groups *groups)
{
    char path[RUN_FOLDER_PATH_MAX + 64];
    bool is_used[KINDS] = {false}, has_any = false;
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        for (size_t k = 0; k < group->count; k++) {
            snprintf(path, sizeof(path), "%s/critical_path.json", group->runs[k]->path);
            json_t *found = json_load_file(path, 0, NULL);
            if (json_is_object(found)) {
                fprintf(page, "%s",
                        has_any ? ""
                                : "<p class=\"note\">What the recorded steps waited for, link by "
                                  "link, of all their time. A box is as wide as its share; what "
                                  "would change is found by running the recorded steps again.</p>"
                                  "\n");
                has_any = true;
                write_run(page, group, k, found, is_used);
            }
            json_decref(found);
        }
    }
    if (has_any) {
        write_legend(page, is_used);
    }
}
