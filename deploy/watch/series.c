/* Reads what the runs of a folder have come to. */
#include "deploy/watch/series.h"

#include "common/base/folder_lock.h"
#include "deploy/sweep/run_words.h"
#include "deploy/sweep/sweep_file.h"

#include <jansson.h>

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const series_states[SERIES_STATE_COUNT] = {
    [SERIES_WAITING] = "waiting",   [SERIES_RUNNING] = "running", [SERIES_COMPLETED] = "completed",
    [SERIES_DIVERGED] = "diverged", [SERIES_FAILED] = "failed",
};

static bool has_file(const char *folder, const char *run, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.3800s/%.128s/%s", folder, run, name);
    return access(path, F_OK) == 0;
}

static bool is_run(const char *folder, const char *name)
{
    return name[0] != '.' && (has_file(folder, name, "job.json") || has_file(folder, name, "logs"));
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Names of all runs that have begun, sorted; the caller frees them. */
static size_t list_runs(const char *folder, struct dirent ***ret_entries)
{
    int found = scandir(folder, ret_entries, is_visible, alphasort);
    size_t count = 0;
    for (int i = 0; i < found; i++) {
        struct dirent *entry = (*ret_entries)[i];
        if (is_run(folder, entry->d_name) &&
            strlen(entry->d_name) < sizeof(((struct series_run *)0)->name)) {
            (*ret_entries)[count++] = entry;
        } else {
            free(entry);
        }
    }
    if (found < 0) {
        *ret_entries = NULL;
    }
    return count;
}

static void free_list(struct dirent **entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
}

bool series_is_there(const char *folder)
{
    struct dirent **entries;
    if (has_file(folder, ".", "job.json") || has_file(folder, ".", "logs")) {
        return false;
    }
    if (sweep_file_is_there(folder)) {
        return true;
    }
    size_t count = list_runs(folder, &entries);
    free_list(entries, count);
    return count > 0;
}

static enum status read_plan(struct series *series)
{
    char command[COMMAND_TEXT_BYTES], words[RUN_WORDS_BYTES];
    struct sweep_plan plan;
    enum status status = sweep_file_read(series->folder, &plan, command);
    if (status != STATUS_OK) {
        return status;
    }
    series->runs = calloc(plan.count + 1, sizeof(*series->runs));
    for (size_t i = 0; series->runs != NULL && i < plan.count; i++) {
        struct series_run *run = &series->runs[i];
        snprintf(run->name, sizeof(run->name), "%s", plan.runs[i].name);
        run_words_of_label(plan.runs[i].label, NULL, words);
        snprintf(run->label, sizeof(run->label), "%s%sseed %llu", words,
                 words[0] != '\0' ? ", " : "", (unsigned long long)plan.runs[i].job.seed);
    }
    series->count = series->runs != NULL ? plan.count : 0;
    series->has_plan = true;
    sweep_plan_free(&plan);
    return series->runs != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Of a comparison: runs that have begun since the last look come behind those that are known. */
static enum status find_runs(struct series *series)
{
    struct dirent **entries;
    size_t count = list_runs(series->folder, &entries);
    struct series_run *runs = calloc(count + 1, sizeof(*runs));
    for (size_t i = 0; runs != NULL && i < count; i++) {
        snprintf(runs[i].name, sizeof(runs[i].name), "%.127s", entries[i]->d_name);
        snprintf(runs[i].label, sizeof(runs[i].label), "%.127s", entries[i]->d_name);
        for (size_t k = 0; k < series->count; k++) {
            runs[i] = strcmp(series->runs[k].name, runs[i].name) == 0 ? series->runs[k] : runs[i];
        }
    }
    free_list(entries, count);
    if (runs == NULL) {
        return STATUS_NO_MEMORY;
    }
    free(series->runs);
    series->runs = runs;
    series->count = count;
    return STATUS_OK;
}

enum status series_open(const char *folder, struct series *ret_series)
{
    struct series series = {.folder = folder, .current_run = SIZE_MAX};
    enum status status = sweep_file_is_there(folder) ? read_plan(&series) : find_runs(&series);
    if (status == STATUS_OK) {
        *ret_series = series;
    }
    return status;
}

static void leave_current(struct series *series)
{
    run_reader_close(&series->current);
    series->current = (struct run_reader){0};
    series->current_run = SIZE_MAX;
}

void series_close(struct series *series)
{
    leave_current(series);
    free(series->runs);
    series->runs = NULL;
}

static json_t *load(const struct series *series, const struct series_run *run, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.3800s/%s/%s", series->folder, run->name, name);
    return json_load_file(path, 0, NULL);
}

/* The last accuracy that is known. */
static void take_accuracy(struct series_run *run, const json_t *epochs)
{
    for (size_t i = 0; i < json_array_size(epochs); i++) {
        const json_t *value = json_object_get(json_array_get(epochs, i), "test_accuracy");
        run->has_accuracy = run->has_accuracy || json_is_number(value);
        run->accuracy = json_is_number(value) ? json_number_value(value) : run->accuracy;
    }
}

/* Reads how a run has ended. */
static void take_end(const struct series *series, struct series_run *run)
{
    json_t *summary = load(series, run, "summary.json"),
           *details = load(series, run, "details.json");
    const char *outcome = json_string_value(json_object_get(summary, "outcome"));
    const json_t *diverged = json_object_get(details, "diverged_step");
    run->state = outcome != NULL && strcmp(outcome, "completed") == 0 ? SERIES_COMPLETED
                 : json_is_integer(diverged)                          ? SERIES_DIVERGED
                                                                      : SERIES_FAILED;
    run->step = (uint64_t)json_integer_value(
        run->state == SERIES_DIVERGED ? diverged : json_object_get(summary, "steps"));
    run->seconds = json_number_value(json_object_get(summary, "seconds"));
    run->images_per_second = json_number_value(json_object_get(summary, "images_per_second"));
    run->has_accuracy = false;
    take_accuracy(run, json_object_get(summary, "epochs"));
    json_decref(summary);
    json_decref(details);
}

/* The state of one run, by the files that are there. */
static bool look_at(const struct series *series, struct series_run *run)
{
    enum series_state before = run->state;
    if (has_file(series->folder, run->name, "summary.json")) {
        if (before == SERIES_WAITING || before == SERIES_RUNNING) {
            take_end(series, run);
        }
        return run->state != before;
    }
    // One that ended without a summary was killed with its coordinator and its launcher.
    run->state = !is_run(series->folder, run->name) ? SERIES_WAITING
                 : series->is_running               ? SERIES_RUNNING
                                                    : SERIES_FAILED;
    return run->state != before;
}

/* What the run that runs has reported. */
static enum status follow_current(struct series *series, size_t index, bool *ret_is_new)
{
    struct series_run *run = &series->runs[index];
    if (series->current_run != index) {
        leave_current(series);
        snprintf(series->current_folder, sizeof(series->current_folder), "%.3800s/%s",
                 series->folder, run->name);
        enum status status = run_reader_open(series->current_folder, &series->current);
        if (status != STATUS_OK) {
            return status;
        }
        series->current_run = index;
    }
    enum status status = run_reader_update(&series->current, ret_is_new);
    const struct live_state *state = &series->current.state;
    run->step = state->step;
    run->total_steps = state->total_steps;
    run->loss = state->loss;
    run->images_per_second = state->images_per_second;
    run->seconds = state->seconds;
    return status == STATUS_END_OF_DATA ? STATUS_OK : status;
}

enum status series_update(struct series *series, bool *ret_is_new)
{
    bool was_running = series->is_running, is_new = false;
    size_t count = series->count, running = SIZE_MAX;
    series->is_running = folder_lock_is_held(series->folder);
    if (!series->has_plan) {
        enum status status = find_runs(series);
        if (status != STATUS_OK) {
            return status;
        }
    }
    is_new = count != series->count || was_running != series->is_running;
    for (size_t i = 0; i < series->count; i++) {
        is_new |= look_at(series, &series->runs[i]);
        running = series->runs[i].state == SERIES_RUNNING ? i : running;
    }
    *ret_is_new = is_new;
    if (running == SIZE_MAX) {
        leave_current(series);
        return STATUS_OK;
    }
    enum status status = follow_current(series, running, &is_new);
    *ret_is_new |= is_new;
    return status;
}

size_t series_count(const struct series *series, enum series_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < series->count; i++) {
        count += series->runs[i].state == state;
    }
    return count;
}

double series_eta(const struct series *series)
{
    double ended_s = 0, rest_s = 0;
    size_t ended = 0;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_run *run = &series->runs[i];
        bool has_ended = run->state == SERIES_COMPLETED || run->state == SERIES_DIVERGED;
        ended_s += has_ended ? run->seconds : 0;
        ended += has_ended;
    }
    double mean_s = ended > 0 ? ended_s / (double)ended : -1;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_run *run = &series->runs[i];
        bool has_pace =
            run->state == SERIES_RUNNING && run->step > 0 && run->total_steps > run->step;
        if (run->state != SERIES_RUNNING && run->state != SERIES_WAITING) {
            continue;
        }
        if (has_pace) {
            rest_s += run->seconds / (double)run->step * (double)(run->total_steps - run->step);
        } else if (mean_s < 0) {
            return -1;
        } else {
            rest_s += mean_s;
        }
    }
    return rest_s;
}
