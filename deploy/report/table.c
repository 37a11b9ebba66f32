/* Prints and writes tables of runs. */
#include "deploy/report/table.h"

#include "common/job/mode.h"
#include "deploy/report/input_gap.h"
#include "deploy/report/run_classes.h"
#include "deploy/report/straggler_find.h"
#include "deploy/system/folder.h"

#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 2048

struct column {
    const char *heading, *key;
    bool tells_apart; // shown only where runs of a table differ in it
};

// A key that no file has: the share of input_wait.
#define INPUT_WAIT "input_wait"

#define PREDICTED "prediction.images_per_second"

static const struct column columns[] = {
    {"mode", "mode"},
    {"workers", "workers"},
    {"servers", "servers"},
    {"transport", "transport"},
    {"data", "dataset", .tells_apart = true},
    {"seed", "seed", .tells_apart = true},
    {"images/s", "images_per_second"},
    {"ratio", NULL}, // to the first run
    {"predicted", PREDICTED},
    {"error", "prediction.error_percent"},
    {"test accuracy", "test_accuracy"},
    {"best accuracy", "best_accuracy"},
    {"compute ms", "ms_per_step.compute"},
    {"exchange ms", "ms_per_step.exchange_wait"},
    {"input ms", "ms_per_step.input_wait"},
    {"input wait", INPUT_WAIT},
    {"loader threads", "loader_threads"},
    {"wire ms", "ms_per_step.wire"},
    {"copy ms", "ms_per_step.copy"},
    {"lost", "workers_lost"},
    {"parameters", "params_digest"},
    {"outcome", "outcome"},
};

// Every key of summary.json, as the contract lists them; then some of details.json.
static const char *const keys[] = {"version",
                                   "mode",
                                   "workers",
                                   "servers",
                                   "model",
                                   "parameters",
                                   "dataset",
                                   "device",
                                   "transport",
                                   "seed",
                                   "batch_per_worker",
                                   "global_batch",
                                   "optimizer",
                                   "lr",
                                   "lr_effective",
                                   "steps",
                                   "seconds",
                                   "images_per_second",
                                   "train_loss",
                                   "test_loss",
                                   "test_accuracy",
                                   "ms_per_step.compute",
                                   "ms_per_step.exchange_wait",
                                   "ms_per_step.input_wait",
                                   "ms_per_step.total",
                                   "bytes_per_step.worker_sent",
                                   "bytes_per_step.worker_received",
                                   "bytes_per_step.server_sent",
                                   "bytes_per_step.server_received",
                                   "staleness.mean",
                                   "staleness.max",
                                   "staleness.histogram",
                                   "params_digest",
                                   "bits_of",
                                   "workers_lost",
                                   "restarts",
                                   "outcome",
                                   "reason",
                                   "epochs",
                                   "best_accuracy",
                                   "best_epoch",
                                   "images_dropped",
                                   "diverged_step",
                                   "loader_threads"};

// Where compare predicted some runs.
static const char *const prediction_keys[] = {PREDICTED, "prediction.error_percent",
                                              "prediction.why"};

const char *table_heading(size_t index)
{
    return index < sizeof(columns) / sizeof(columns[0]) ? columns[index].heading : NULL;
}

bool table_shows(const struct run_folder *run, size_t index)
{
    const struct column *column = &columns[index];
    if (column->tells_apart) {
        return false;
    }
    return column->key == NULL || strncmp(column->key, "prediction.", strlen("prediction.")) != 0 ||
           run->prediction != NULL;
}

static bool is_different(const struct run_folder *runs, size_t count, const char *key)
{
    char first[CELL_BYTES], other[CELL_BYTES];
    run_folder_format(&runs[0], key, first, sizeof(first));
    for (size_t i = 1; i < count; i++) {
        run_folder_format(&runs[i], key, other, sizeof(other));
        if (strcmp(first, other) != 0) {
            return true;
        }
    }
    return false;
}

static bool is_shown(const struct run_folder *runs, size_t count, size_t index)
{
    if (columns[index].tells_apart && count > 1) {
        return is_different(runs, count, columns[index].key);
    }
    for (size_t i = 0; i < count; i++) {
        if (table_shows(&runs[i], index)) {
            return true;
        }
    }
    return false;
}

static bool has_predictions(const struct run_folder *runs, size_t count)
{
    size_t run = 0;
    while (run < count && runs[run].prediction == NULL) {
        run++;
    }
    return run < count;
}

/* "2", "1 to 2", "2 (auto)": of a process. */
static void format_loaders(const struct run_folder *run, char *ret_text, size_t text_size)
{
    const json_t *options = json_object_get(run->job, "options");
    const char *given = json_string_value(json_object_get(options, "loader-threads"));
    const char *mark = given != NULL && strcmp(given, "auto") == 0 ? " (auto)" : "";
    unsigned fewest, most;
    if (!run_folder_loaders(run, &fewest, &most)) {
        snprintf(ret_text, text_size, "-");
    } else if (fewest == most) {
        snprintf(ret_text, text_size, "%u%s", most, mark);
    } else {
        snprintf(ret_text, text_size, "%u to %u%s", fewest, most, mark);
    }
}

void table_cell(const struct run_folder *runs, size_t run, size_t index, char *ret_text,
                size_t text_size)
{
    const struct column *column = &columns[index];
    if (column->key == NULL) {
        double first = run_folder_number(&runs[0], "images_per_second");
        double rate = run_folder_number(&runs[run], "images_per_second");
        snprintf(ret_text, text_size, first > 0 && rate > 0 ? "%.2f" : "-", rate / first);
        return;
    }
    if (strcmp(column->key, "outcome") == 0) {
        run_folder_outcome(&runs[run], ret_text, text_size);
        return;
    }
    if (strcmp(column->key, INPUT_WAIT) == 0) {
        double percent = 0;
        bool is_known = run_folder_input_wait(&runs[run], &percent);
        snprintf(ret_text, text_size, is_known ? "%.1f %%" : "-", percent);
        return;
    }
    if (strcmp(column->key, "loader_threads") == 0) {
        format_loaders(&runs[run], ret_text, text_size);
        return;
    }
    run_folder_format(&runs[run], column->key, ret_text, text_size);
    if (strcmp(column->key, PREDICTED) == 0 && strcmp(ret_text, "-") == 0) {
        run_folder_format(&runs[run], "prediction.why", ret_text, text_size);
    }
    if (strcmp(column->key, "params_digest") == 0 && strlen(ret_text) > 12) {
        ret_text[12] = '\0';
    }
}

void table_write_csv_value(FILE *stream, const char *value)
{
    bool needs_quotes = strpbrk(value, ",\"\r\n") != NULL;
    if (!needs_quotes) {
        fputs(value, stream);
        return;
    }
    fputc('"', stream);
    for (; *value != '\0'; value++) {
        fputs(*value == '"' ? "\"" : "", stream);
        fputc(*value, stream);
    }
    fputc('"', stream);
}

/* Keys of a CSV: those that it always has, and those of predictions. */
static const char *csv_key(size_t index, bool has_predictions)
{
    const size_t key_count = sizeof(keys) / sizeof(keys[0]);
    const size_t more = sizeof(prediction_keys) / sizeof(prediction_keys[0]);
    return index < key_count                             ? keys[index]
           : has_predictions && index < key_count + more ? prediction_keys[index - key_count]
                                                         : NULL;
}

static void write_csv(FILE *file, const struct run_folder *runs, size_t count)
{
    bool predicted = has_predictions(runs, count);
    for (size_t k = 0; csv_key(k, predicted) != NULL; k++) {
        fprintf(file, "%s%s", k > 0 ? "," : "", csv_key(k, predicted));
    }
    fprintf(file, "\n");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; csv_key(k, predicted) != NULL; k++) {
            char *value = run_folder_text(&runs[i], csv_key(k, predicted));
            fputs(k > 0 ? "," : "", file);
            table_write_csv_value(file, value != NULL ? value : "");
            free(value);
        }
        fprintf(file, "\n");
    }
}

static void write_gaps(FILE *file, const struct run_folder *runs, size_t count)
{
    struct input_gaps gaps;
    if (input_gaps_of(runs, count, &gaps) == STATUS_OK) { // the report fails for want of memory
        input_gaps_print_markdown(file, &gaps);
        input_gaps_finish(&gaps);
    }
}

static void write_markdown(FILE *file, const struct run_folder *runs, size_t count)
{
    char cell[CELL_BYTES];
    for (size_t k = 0; table_heading(k) != NULL; k++) {
        if (is_shown(runs, count, k)) {
            fprintf(file, "| %s ", table_heading(k));
        }
    }
    fprintf(file, "|\n");
    for (size_t k = 0; table_heading(k) != NULL; k++) {
        if (is_shown(runs, count, k)) {
            fprintf(file, "|---");
        }
    }
    fprintf(file, "|\n");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; table_heading(k) != NULL; k++) {
            if (is_shown(runs, count, k)) {
                table_cell(runs, i, k, cell, sizeof(cell));
                fprintf(file, "| %s ", cell);
            }
        }
        fprintf(file, "|\n");
    }
    fprintf(file, "\n");
    write_gaps(file, runs, count);
    run_classes_print(file, runs, count);
    table_print_verdicts(file, runs, count);
}

/* Runs as one context. */
struct runs {
    const struct run_folder *folders;
    size_t count;
};

static void write_csv_file(FILE *file, const void *context)
{
    const struct runs *runs = context;
    write_csv(file, runs->folders, runs->count);
}

static void write_markdown_file(FILE *file, const void *context)
{
    const struct runs *runs = context;
    write_markdown(file, runs->folders, runs->count);
}

enum status table_write(const char *folder, const struct run_folder *runs, size_t count)
{
    const struct runs all = {runs, count};
    enum status status = folder_write(folder, "table.csv", write_csv_file, &all);
    return status == STATUS_OK ? folder_write(folder, "table.md", write_markdown_file, &all)
                               : status;
}

void table_print(FILE *stream, const struct run_folder *runs, size_t count)
{
    char cell[CELL_BYTES];
    int widths[sizeof(columns) / sizeof(columns[0])] = {0};
    for (size_t k = 0; table_heading(k) != NULL; k++) {
        if (!is_shown(runs, count, k)) {
            continue;
        }
        widths[k] = (int)strlen(table_heading(k));
        for (size_t i = 0; i < count; i++) {
            table_cell(runs, i, k, cell, sizeof(cell));
            widths[k] = (int)strlen(cell) > widths[k] ? (int)strlen(cell) : widths[k];
        }
        fprintf(stream, "%-*s  ", widths[k], table_heading(k));
    }
    fprintf(stream, "\n");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; table_heading(k) != NULL; k++) {
            if (widths[k] > 0) {
                table_cell(runs, i, k, cell, sizeof(cell));
                fprintf(stream, "%-*s  ", widths[k], cell);
            }
        }
        fprintf(stream, "\n");
    }
}

/* Whether the design alone determines the resulting bits: not where updates race or late gradients
 * are dropped. */
static bool is_synchronous(const struct run_folder *run)
{
    struct mode parsed;
    const json_t *options = json_object_get(run->job, "options");
    const char *mode = json_string_value(json_object_get(run->summary, "mode"));
    const char *switches = json_string_value(json_object_get(options, "switch"));
    if (json_integer_value(json_object_get(options, "backup")) > 0 ||
        (switches != NULL && (strstr(switches, "ps-async") || strstr(switches, "ps-ssp")))) {
        return false;
    }
    return mode != NULL &&
           (mode_parse(mode, &parsed) != STATUS_OK || !mode_updates_on_push(parsed.kind));
}

/* Whether the run's sums were NCCL's: in an order of its own, so its bits say nothing of ours. */
static bool has_bits_of_nccl(const struct run_folder *run)
{
    char whose[CELL_BYTES];
    run_folder_value(run, "bits_of", whose, sizeof(whose));
    return strcmp(whose, "nccl") == 0;
}

bool table_is_comparable(const struct run_folder *a, const struct run_folder *b)
{
    static const char *const same[] = {"workers",   "model",        "dataset",      "seed",
                                       "steps",     "global_batch", "lr_effective", "lr",
                                       "optimizer", "device"};
    char value_a[CELL_BYTES], value_b[CELL_BYTES];
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        run_folder_value(a, same[i], value_a, sizeof(value_a));
        run_folder_value(b, same[i], value_b, sizeof(value_b));
        if (strcmp(value_a, value_b) != 0) {
            return false;
        }
    }
    return run_folder_is_completed(a) && run_folder_is_completed(b) && is_synchronous(a) &&
           is_synchronous(b) && !has_bits_of_nccl(a) && !has_bits_of_nccl(b);
}

/* " (data=D, seed=S)": of what tells runs of the table apart. */
static void print_apart(FILE *stream, const struct run_folder *runs, size_t count, size_t run)
{
    char text[CELL_BYTES];
    const char *separator = " (";
    for (size_t k = 0; table_heading(k) != NULL; k++) {
        if (columns[k].tells_apart && is_shown(runs, count, k)) {
            table_cell(runs, run, k, text, sizeof(text));
            fprintf(stream, "%s%s=%s", separator, columns[k].heading, text);
            separator = ", ";
        }
    }
    fprintf(stream, "%s", separator[0] == ',' ? ")" : "");
}

/* The verdict on the runs that are comparable with run `first`, if it is the first of them. */
static void print_verdict(FILE *stream, const struct run_folder *runs, size_t count, size_t first)
{
    char digest[CELL_BYTES], other[CELL_BYTES];
    size_t alike = 1;
    for (size_t i = 0; i < first; i++) {
        if (table_is_comparable(&runs[i], &runs[first])) {
            return;
        }
    }
    run_folder_value(&runs[first], "params_digest", digest, sizeof(digest));
    for (size_t i = first + 1; i < count; i++) {
        if (!table_is_comparable(&runs[first], &runs[i])) {
            continue;
        }
        run_folder_value(&runs[i], "params_digest", other, sizeof(other));
        if (strcmp(digest, other) != 0) {
            fprintf(stream, "different bits: %s ends with %.12s, %s with %.12s\n",
                    runs[first].label, digest, runs[i].label, other);
            return;
        }
        alike++;
    }
    if (alike > 1) {
        fprintf(stream, "same bits: %zu runs with N = %.0f", alike,
                run_folder_number(&runs[first], "workers"));
        print_apart(stream, runs, count, first);
        fprintf(stream, " end with the same parameters (%.12s)\n", digest);
    }
}

/* The worker that held a synchronous design up, or would have. */
static void print_straggler(FILE *stream, const struct run_folder *run)
{
    struct straggler_found found;
    if (straggler_find(run, &found)) {
        fprintf(stream, "%s: worker %u is the straggler, %.1f times as slow as the other%s\n",
                run->label, found.rank, found.ratio,
                run_folder_number(run, "workers") < 3 ? "" : "s");
    }
}

void table_print_verdicts(FILE *stream, const struct run_folder *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (run_folder_is_completed(&runs[i]) && has_bits_of_nccl(&runs[i])) {
            fprintf(stream, "%s: the bits are NCCL's, and were compared with no other run's\n",
                    runs[i].label);
        }
        if (run_folder_is_completed(&runs[i])) {
            print_verdict(stream, runs, count, i);
        }
        print_straggler(stream, &runs[i]);
    }
}
