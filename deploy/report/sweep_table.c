/* Prints the table of a sweep, and writes it as CSV and Markdown. */
#include "deploy/report/sweep_table.h"

#include "deploy/report/table.h"
#include "deploy/system/folder.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LARGE       1e6
#define COLUMNS_MAX 32

enum column_kind {
    COLUMN_LABEL,
    COLUMN_RUNS,
    COLUMN_DIVERGED,
    COLUMN_FAILED,
    COLUMN_REACHED,
    COLUMN_RELATIVE
};

/* Either of a kind of its own, or a measure. */
struct column {
    bool is_measure;
    enum column_kind kind;
    enum sweep_measure measure;
};

/* The columns that the settings have something for. */
static size_t list_columns(const struct sweep_settings *settings, struct column *columns)
{
    bool has_target = false, has_diverged = false;
    size_t count = 0;
    for (size_t i = 0; i < settings->count; i++) {
        has_target = has_target || settings->list[i].has_target;
        has_diverged = has_diverged || settings->list[i].diverged > 0;
    }
    columns[count++] = (struct column){.kind = COLUMN_LABEL};
    columns[count++] = (struct column){.kind = COLUMN_RUNS};
    if (has_diverged) {
        columns[count++] = (struct column){.kind = COLUMN_DIVERGED};
    }
    columns[count++] = (struct column){.kind = COLUMN_FAILED};
    if (has_target) {
        columns[count++] = (struct column){.kind = COLUMN_REACHED};
    }
    for (enum sweep_measure m = 0; m < MEASURE_COUNT; m++) {
        if (sweep_settings_have(settings, m)) {
            columns[count++] = (struct column){.is_measure = true, .measure = m};
        }
        if (m == MEASURE_TARGET_STEPS && sweep_settings_have(settings, m)) {
            columns[count++] = (struct column){.kind = COLUMN_RELATIVE};
        }
    }
    return count;
}

const char *sweep_table_heading(const struct sweep_settings *settings, size_t column)
{
    static const char *const names[] = {
        [COLUMN_LABEL] = "setting", [COLUMN_RUNS] = "runs",       [COLUMN_DIVERGED] = "diverged",
        [COLUMN_FAILED] = "failed", [COLUMN_REACHED] = "reached", [COLUMN_RELATIVE] = "relative",
    };
    struct column columns[COLUMNS_MAX];
    if (column >= list_columns(settings, columns)) {
        return NULL;
    }
    return columns[column].is_measure ? sweep_measures[columns[column].measure].heading
                                      : names[columns[column].kind];
}

/* The first and the last step at which a run diverged; 0 if none did. */
static void range_of_steps(const struct sweep_setting *setting, double *ret_first, double *ret_last)
{
    *ret_first = *ret_last = setting->diverged > 0 ? setting->diverged_steps[0] : 0;
    for (size_t i = 1; i < setting->diverged; i++) {
        *ret_first = fmin(*ret_first, setting->diverged_steps[i]);
        *ret_last = fmax(*ret_last, setting->diverged_steps[i]);
    }
}

/* "2 at step 57 to 80" */
static void format_diverged(const struct sweep_setting *setting, char *ret_text, size_t text_size)
{
    double first, last;
    range_of_steps(setting, &first, &last);
    if (setting->diverged == 0) {
        snprintf(ret_text, text_size, "0");
    } else if (first < last) {
        snprintf(ret_text, text_size, "%zu at step %.0f to %.0f", setting->diverged, first, last);
    } else {
        snprintf(ret_text, text_size, "%zu at step %.0f", setting->diverged, first);
    }
}

/* "87.56 ± 0.31"; "-" where there is no value. */
static void format(const struct statistics *statistics, int digits, char *ret_text,
                   size_t text_size)
{
    bool is_large = fabs(statistics->mean) + statistics->half_width >= LARGE;
    if (statistics->count == 0) {
        snprintf(ret_text, text_size, "-");
    } else if (is_large) { // a loss that has diverged
        snprintf(ret_text, text_size, "%.3g", statistics->mean);
    } else if (statistics->count == 1) {
        snprintf(ret_text, text_size, "%.*f", digits, statistics->mean);
    } else {
        snprintf(ret_text, text_size, "%.*f ± %.*f", digits, statistics->mean, digits,
                 statistics->half_width);
    }
}

void sweep_table_cell(const struct sweep_settings *settings, size_t setting, size_t column,
                      char *ret_text, size_t text_size)
{
    struct column columns[COLUMNS_MAX];
    const struct sweep_setting *row = &settings->list[settings->rows[setting]];
    size_t count = list_columns(settings, columns);
    snprintf(ret_text, text_size, "-");
    if (column >= count) {
        return;
    }
    if (columns[column].is_measure) {
        enum sweep_measure measure = columns[column].measure;
        format(&row->measures[measure], sweep_measures[measure].digits, ret_text, text_size);
        return;
    }
    switch (columns[column].kind) {
    case COLUMN_LABEL:
        snprintf(ret_text, text_size, "%s", row->label);
        break;
    case COLUMN_RUNS:
        if (row->completed + row->diverged + row->failed < row->planned) {
            snprintf(ret_text, text_size, "%zu of %zu",
                     row->completed + row->diverged + row->failed, row->planned);
        } else {
            snprintf(ret_text, text_size, "%zu", row->planned);
        }
        break;
    case COLUMN_DIVERGED:
        format_diverged(row, ret_text, text_size);
        break;
    case COLUMN_FAILED:
        snprintf(ret_text, text_size, "%zu", row->failed);
        break;
    case COLUMN_REACHED:
        snprintf(ret_text, text_size, "%zu of %zu", row->reached, row->planned);
        break;
    case COLUMN_RELATIVE:
        format(&row->relative_steps, 2, ret_text, text_size);
        break;
    }
}

bool sweep_table_says_part(const struct sweep_settings *settings, size_t setting,
                           char ret_text[RUN_FOLDER_PART_BYTES])
{
    const struct sweep_setting *row = &settings->list[settings->rows[setting]];
    if (row->part_tested == 0) {
        return false;
    }
    run_folder_say_part(row->part_tested, row->completed, ret_text);
    return true;
}

/* A line for each setting that has something to be said, with what separates lines before it. */
static void write_parts(FILE *file, const struct sweep_settings *settings, const char *separator)
{
    char text[RUN_FOLDER_PART_BYTES];
    for (size_t i = 0; i < settings->count; i++) {
        if (sweep_table_says_part(settings, i, text)) {
            fprintf(file, "%s%s: %s\n", separator, settings->list[settings->rows[i]].label, text);
        }
    }
}

static void write_csv(FILE *file, const void *context)
{
    const struct sweep_settings *settings = context;
    fprintf(file, "setting,series,runs,completed,failed,reached,diverged,first diverged step,last "
                  "diverged step");
    for (size_t m = 0; m < MEASURE_COUNT; m++) {
        fprintf(file, ",%s mean,%s interval", sweep_measures[m].heading, sweep_measures[m].heading);
    }
    fprintf(file, ",mode,workers,global batch,gradients per update\n");
    for (size_t i = 0; i < settings->count; i++) {
        const struct sweep_setting *row = &settings->list[settings->rows[i]];
        table_write_csv_value(file, row->label);
        fprintf(file, ",");
        table_write_csv_value(file, row->series);
        double first, last;
        range_of_steps(row, &first, &last);
        fprintf(file, ",%zu,%zu,%zu,%zu,%zu", row->planned, row->completed, row->failed,
                row->reached, row->diverged);
        fprintf(file, row->diverged > 0 ? ",%.0f,%.0f" : ",,", first, last);
        for (size_t m = 0; m < MEASURE_COUNT; m++) {
            if (row->measures[m].count > 0) {
                fprintf(file, ",%.9g,%.9g", row->measures[m].mean, row->measures[m].half_width);
            } else {
                fprintf(file, ",,");
            }
        }
        fprintf(file, ",%s,%u,%u,%u\n", mode_text(row->mode).text, row->workers, row->global_batch,
                row->gradients_per_update);
    }
}

static void write_markdown(FILE *file, const void *context)
{
    const struct sweep_settings *settings = context;
    char cell[SWEEP_TABLE_CELL_BYTES];
    size_t columns = 0;
    for (; sweep_table_heading(settings, columns) != NULL; columns++) {
        fprintf(file, "| %s ", sweep_table_heading(settings, columns));
    }
    fprintf(file, "|\n|---");
    for (size_t k = 1; k < columns; k++) {
        fprintf(file, "|--:");
    }
    fprintf(file, "|\n");
    for (size_t i = 0; i < settings->count; i++) {
        for (size_t k = 0; k < columns; k++) {
            sweep_table_cell(settings, i, k, cell, sizeof(cell));
            fprintf(file, "| ");
            for (const char *at = cell; *at != '\0'; at++) {
                fprintf(file, *at == '|' ? "\\|" : "%c", *at);
            }
            fprintf(file, " ");
        }
        fprintf(file, "|\n");
    }
    fprintf(file, "\n%s\n", SWEEP_TABLE_NOTE);
    write_parts(file, settings, "\n");
}

/* Columns of a terminal that a text takes: characters, not bytes. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}

void sweep_table_print(FILE *stream, const struct sweep_settings *settings)
{
    char cell[SWEEP_TABLE_CELL_BYTES];
    int widths[COLUMNS_MAX];
    size_t columns = 0;
    for (; sweep_table_heading(settings, columns) != NULL; columns++) {
        widths[columns] = width_of(sweep_table_heading(settings, columns));
        for (size_t i = 0; i < settings->count; i++) {
            sweep_table_cell(settings, i, columns, cell, sizeof(cell));
            int width = width_of(cell);
            widths[columns] = width > widths[columns] ? width : widths[columns];
        }
    }
    for (size_t k = 0; k < columns; k++) {
        const char *heading = sweep_table_heading(settings, k);
        fprintf(stream, k == 0 ? "%-*s" : "  %*s", widths[k], heading);
    }
    fprintf(stream, "\n");
    for (size_t i = 0; i < settings->count; i++) {
        for (size_t k = 0; k < columns; k++) {
            sweep_table_cell(settings, i, k, cell, sizeof(cell));
            int padding = widths[k] - width_of(cell);
            if (k == 0) {
                fprintf(stream, "%s%*s", cell, padding, "");
            } else {
                fprintf(stream, "  %*s%s", padding, "", cell);
            }
        }
        fprintf(stream, "\n");
    }
    write_parts(stream, settings, "");
}

enum status sweep_table_write(const char *folder, const struct sweep_settings *settings)
{
    enum status status = folder_write(folder, "sweep.csv", write_csv, settings);
    return status == STATUS_OK ? folder_write(folder, "sweep.md", write_markdown, settings)
                               : status;
}
