/* Means and intervals, as text. */
#include "deploy/sweep_table.h"

#include "deploy/folder.h"
#include "deploy/statistics.h"
#include "deploy/table.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LARGE 1e6

struct measure {
    const char *heading, *key;
    double factor;
    int digits;
};

static const struct measure measures[] = {
    {"test accuracy %", "test_accuracy", 100, 2}, {"test loss", "test_loss", 1, 4},
    {"train loss", "train_loss", 1, 4},           {"mean staleness", "staleness.mean", 1, 2},
    {"images/s", "images_per_second", 1, 0},      {"seconds", "seconds", 1, 1},
};
#define MEASURES (sizeof(measures) / sizeof(measures[0]))

/* One combination. */
struct row {
    const char *label;
    size_t planned, failed;
    struct statistics values[MEASURES];
};

static void fill_row(const struct sweep_results *results, size_t group, struct row *row)
{
    static double values[MEASURES][SWEEP_REPEAT_MAX];
    size_t counts[MEASURES] = {0};
    *row = (struct row){0};
    for (size_t i = 0; i < results->plan->count; i++) {
        const struct run_folder *summary = results->summaries[i];
        if (results->plan->runs[i].group != group) {
            continue;
        }
        row->label = results->plan->runs[i].label;
        row->planned++;
        if (summary == NULL || !run_folder_is_completed(summary)) {
            row->failed += summary != NULL;
            continue;
        }
        for (size_t m = 0; m < MEASURES; m++) {
            char text[64];
            run_folder_value(summary, measures[m].key, text, sizeof(text));
            if (text[0] != '\0') {
                values[m][counts[m]++] =
                    measures[m].factor * run_folder_number(summary, measures[m].key);
            }
        }
    }
    for (size_t m = 0; m < MEASURES; m++) {
        row->values[m] = statistics_of(values[m], counts[m]);
    }
}

/* "87.56 +- 0.31"; "-" where there is no value. */
static void format(const struct statistics *statistics, int digits, char *ret_text,
                   size_t text_size)
{
    bool is_large = fabs(statistics->mean) + statistics->half_width >= LARGE;
    if (statistics->count == 0) {
        snprintf(ret_text, text_size, "-");
    } else if (is_large) { // a loss that has diverged
        snprintf(ret_text, text_size, "%.3g +- %.3g", statistics->mean, statistics->half_width);
    } else if (statistics->count == 1) {
        snprintf(ret_text, text_size, "%.*f", digits, statistics->mean);
    } else {
        snprintf(ret_text, text_size, "%.*f +- %.*f", digits, statistics->mean, digits,
                 statistics->half_width);
    }
}

static void write_csv(FILE *file, const void *context)
{
    const struct sweep_results *results = context;
    fprintf(file, "setting,runs,failed");
    for (size_t m = 0; m < MEASURES; m++) {
        fprintf(file, ",%s mean,%s interval", measures[m].heading, measures[m].heading);
    }
    fprintf(file, "\n");
    for (size_t group = 0; group < results->plan->group_count; group++) {
        struct row row;
        fill_row(results, group, &row);
        table_write_csv_value(file, row.label);
        fprintf(file, ",%zu,%zu", row.planned, row.failed);
        for (size_t m = 0; m < MEASURES; m++) {
            if (row.values[m].count > 0) {
                fprintf(file, ",%.9g,%.9g", row.values[m].mean, row.values[m].half_width);
            } else {
                fprintf(file, ",,");
            }
        }
        fprintf(file, "\n");
    }
}

static void write_markdown(FILE *file, const void *context)
{
    const struct sweep_results *results = context;
    fprintf(file, "| setting | runs | failed ");
    for (size_t m = 0; m < MEASURES; m++) {
        fprintf(file, "| %s ", measures[m].heading);
    }
    fprintf(file, "|\n|---|--:|--:");
    for (size_t m = 0; m < MEASURES; m++) {
        fprintf(file, "|--:");
    }
    fprintf(file, "|\n");
    for (size_t group = 0; group < results->plan->group_count; group++) {
        struct row row;
        fill_row(results, group, &row);
        fprintf(file, "| %s | %zu | %zu ", row.label, row.planned, row.failed);
        for (size_t m = 0; m < MEASURES; m++) {
            char text[64];
            format(&row.values[m], measures[m].digits, text, sizeof(text));
            fprintf(file, "| %s ", text);
        }
        fprintf(file, "|\n");
    }
    fprintf(file, "\nMean over the seeds +- half of its 95 %% interval (Student's t).\n");
}

void sweep_table_print(FILE *stream, const struct sweep_results *results)
{
    int width = (int)strlen("setting");
    for (size_t i = 0; i < results->plan->count; i++) {
        int size = (int)strlen(results->plan->runs[i].label);
        width = size > width ? size : width;
    }
    fprintf(stream, "%-*s  runs  failed", width, "setting");
    for (size_t m = 0; m < MEASURES; m++) {
        fprintf(stream, "  %18s", measures[m].heading);
    }
    fprintf(stream, "\n");
    for (size_t group = 0; group < results->plan->group_count; group++) {
        struct row row;
        fill_row(results, group, &row);
        fprintf(stream, "%-*s  %4zu  %6zu", width, row.label, row.planned, row.failed);
        for (size_t m = 0; m < MEASURES; m++) {
            char text[64];
            format(&row.values[m], measures[m].digits, text, sizeof(text));
            fprintf(stream, "  %18s", text);
        }
        fprintf(stream, "\n");
    }
}

enum status sweep_table_write(const char *folder, const struct sweep_results *results)
{
    enum status status = folder_write(folder, "sweep.csv", write_csv, results);
    return status == STATUS_OK ? folder_write(folder, "sweep.md", write_markdown, results) : status;
}
