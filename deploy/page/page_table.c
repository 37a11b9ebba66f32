/* Chooses columns by what differs. */
#include "deploy/page/page_table.h"

#include "deploy/page/html.h"
#include "deploy/report/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define CELL_BYTES 512

/* A mean of the settings. */
struct column {
    const char *heading;
    size_t offset; // in struct run_group
    int digits;
    const char *unit;
    bool shows_none; // even where no setting has any of it
};

#define RATE       0
#define ACCURACY   1
#define BEST       2
#define INPUT_WAIT 6
#define PREDICTED  9

static const struct column columns[] = {
    [RATE] = {"images/s", offsetof(struct run_group, rate), 0, ""},
    [ACCURACY] = {"test accuracy", offsetof(struct run_group, accuracy), 2, " %"},
    [BEST] = {"best accuracy", offsetof(struct run_group, best), 2, " %"},
    {"computing ms", offsetof(struct run_group, compute_ms), 2, ""},
    {"exchange wait ms", offsetof(struct run_group, exchange_ms), 2, ""},
    {"input wait ms", offsetof(struct run_group, input_ms), 2, ""},
    [INPUT_WAIT] = {"input wait", offsetof(struct run_group, input_wait), 1, " %",
                    .shows_none = true},
    {"loader threads", offsetof(struct run_group, loaders), 0, ""},
    {"mean staleness", offsetof(struct run_group, staleness), 2, ""},
    [PREDICTED] = {"predicted images/s", offsetof(struct run_group, predicted), 0, "",
                   .shows_none = true},
    {"error", offsetof(struct run_group, prediction_error), 1, " %", .shows_none = true},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static const struct statistics *value_of(const struct run_group *group, size_t column)
{
    return (const struct statistics *)(const void *)((const char *)group + columns[column].offset);
}

/* Whether the last evaluation of some run was not its best one. */
static bool has_been_better(const struct run_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        if (group->best.count > 0 && group->best.mean >= group->accuracy.mean + 0.005) {
            return true;
        }
    }
    return false;
}

/* Whether any setting has a value that its digits show. */
static bool is_shown(const struct run_groups *groups, size_t column)
{
    if (column == BEST && !has_been_better(groups)) {
        return false;
    }
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        const struct statistics *value = value_of(group, column);
        if (column == PREDICTED && group->count > 0 && group->runs[0]->prediction != NULL) {
            return true; // why there is none
        }
        if (value->count > 0 && (value->mean >= 0.005 || columns[column].shows_none)) {
            return true;
        }
    }
    return false;
}

static int digits_of(const struct statistics *value, size_t column)
{
    return column == RATE || column == PREDICTED ? run_folder_rate_digits(value->mean)
                                                 : columns[column].digits;
}

static void write_value(FILE *page, const struct run_group *group, size_t column)
{
    const struct statistics *value = value_of(group, column);
    int digits = digits_of(value, column);
    if (value->count == 0 && column == PREDICTED && group->count > 0) {
        char why[CELL_BYTES];
        run_folder_format(group->runs[0], "prediction.why", why, sizeof(why));
        fprintf(page, "<td>");
        html_escape(page, why);
        fprintf(page, "</td>");
    } else if (value->count == 0) {
        fprintf(page, "<td>-</td>");
    } else if (value->count == 1) {
        fprintf(page, "<td>%.*f%s</td>", digits, value->mean, columns[column].unit);
    } else {
        fprintf(page, "<td>%.*f ± %.*f%s</td>", digits, value->mean, digits, value->half_width,
                columns[column].unit);
    }
}

/* "2 completed, 1 diverged" */
static void write_runs(FILE *page, const struct run_group *group)
{
    const struct {
        const char *word;
        size_t count;
    } ends[] = {{"completed", group->completed},
                {"diverged", group->diverged},
                {"failed", group->failed},
                {"missing", group->planned - group->count}};
    const char *separator = "";
    fprintf(page, "<td>");
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (ends[i].count > 0) {
            fprintf(page, "%s%zu %s", separator, ends[i].count, ends[i].word);
            separator = ", ";
        }
    }
    fprintf(page, "</td>");
}

/* How to read what the table shows. */
static void write_notes(FILE *page, const struct run_groups *groups, bool has_repeats)
{
    if (is_shown(groups, INPUT_WAIT)) {
        fprintf(page, "<p class=\"note\">Input wait: the share of its steps' time that a worker "
                      "waited for its next batch. What reading ahead takes from computing, on the "
                      "same cores, is not in it; <code>ringside compare --input-gap</code> "
                      "measures both. Loader threads: those of a worker process that read, decode "
                      "and change images, at the end of a run.</p>\n");
    }
    fprintf(page, "%s",
            has_repeats ? "<p class=\"note\">Mean over the completed runs ± half of its 95 % "
                          "interval (Student's t).</p>\n"
                        : "");
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        char text[RUN_FOLDER_PART_BYTES];
        if (group->part_tested > 0) {
            run_folder_say_part(group->part_tested, group->completed, text);
            html_note(page, group->label, text);
        }
    }
}

void page_table_write(FILE *page, const struct run_groups *groups)
{
    bool has_repeats = false, has_ends = false;
    double first = groups->list[0].rate.mean;
    for (size_t i = 0; i < groups->count; i++) {
        has_repeats = has_repeats || groups->list[i].completed > 1;
        has_ends = has_ends || groups->list[i].completed != groups->list[i].planned;
    }
    fprintf(page, "<div class=\"scroll\"><table><thead><tr><th>setting</th>%s",
            has_repeats || has_ends ? "<th>runs</th>" : "");
    for (size_t k = 0; k < COLUMNS; k++) {
        if (is_shown(groups, k)) {
            fprintf(page, "<th>%s</th>%s", columns[k].heading,
                    k == 0 && groups->count > 1 ? "<th>ratio</th>" : "");
        }
    }
    fprintf(page, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        fprintf(page, "<tr><td>");
        html_escape(page, group->label);
        fprintf(page, "</td>");
        if (has_repeats || has_ends) {
            write_runs(page, group);
        }
        for (size_t k = 0; k < COLUMNS; k++) {
            if (!is_shown(groups, k)) {
                continue;
            }
            write_value(page, group, k);
            if (k == 0 && groups->count > 1) {
                fprintf(page, first > 0 && group->rate.mean > 0 ? "<td>%.2f</td>" : "<td>-</td>",
                        group->rate.mean / first);
            }
        }
        fprintf(page, "</tr>\n");
    }
    fprintf(page, "</tbody></table></div>\n");
    write_notes(page, groups, has_repeats);
}

/* Without the ratio, which is one to the first run of a table. */
static bool is_of_runs(size_t column)
{
    return strcmp(table_heading(column), "ratio") != 0;
}

/* Whether any run has something in a column. */
static bool has_column(const struct run_groups *groups, size_t column)
{
    for (size_t i = 0; i < groups->count; i++) {
        for (size_t r = 0; r < groups->list[i].count; r++) {
            if (table_shows(groups->list[i].runs[r], column)) {
                return true;
            }
        }
    }
    return false;
}

static void write_run(FILE *page, const struct run_groups *groups, const struct run_folder *run)
{
    char cell[CELL_BYTES];
    fprintf(page, "<tr><td>");
    html_escape(page, run->path);
    fprintf(page, "</td><td>%.0f</td>", run_folder_number(run, "seed"));
    for (size_t k = 0; table_heading(k) != NULL; k++) {
        if (is_of_runs(k) && has_column(groups, k)) {
            table_cell(run, 0, k, cell, sizeof(cell));
            fprintf(page, "<td>");
            html_escape(page, cell);
            fprintf(page, "</td>");
        }
    }
    fprintf(page, "</tr>\n");
}

void page_table_write_full(FILE *page, const struct run_groups *groups)
{
    if (groups->run_count == 1) {
        fprintf(page, "<details><summary>All columns</summary>\n");
    } else {
        fprintf(page, "<details><summary>All %zu runs, all columns</summary>\n", groups->run_count);
    }
    fprintf(page, "<div class=\"scroll full\"><table><thead><tr><th>folder</th><th>seed</th>");
    for (size_t k = 0; table_heading(k) != NULL; k++) {
        if (is_of_runs(k) && has_column(groups, k)) {
            fprintf(page, "<th>%s</th>", table_heading(k));
        }
    }
    fprintf(page, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < groups->count; i++) {
        for (size_t r = 0; r < groups->list[i].count; r++) {
            write_run(page, groups, groups->list[i].runs[r]);
        }
    }
    fprintf(page, "</tbody></table></div></details>\n");
}
