/* Follows the files of a run folder. */
#include "deploy/watch/run_reader.h"

#include "common/base/log.h"
#include "common/job/job.h"

#include <jansson.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 65536

static void path_of(const struct run_reader *reader, const char *name, char ret_path[PATH_MAX])
{
    snprintf(ret_path, PATH_MAX, "%.4000s/%s", reader->folder, name);
}

static json_t *load(const struct run_reader *reader, const char *name)
{
    char path[PATH_MAX];
    path_of(reader, name, path);
    return json_load_file(path, 0, NULL);
}

/* Numbers of a JSON object; 0 for what is none, or too small. */
static double real_of(const json_t *tree, const char *key)
{
    return json_number_value(json_object_get(tree, key));
}

static uint64_t whole_of(const json_t *tree, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(tree, key));
    return value > 0 ? (uint64_t)value : 0;
}

/* Copies a text up to the character `end`, cut to the field. */
static void copy_text(char *field, size_t size, const json_t *tree, const char *key,
                      const char *end)
{
    const char *text = json_string_value(json_object_get(tree, key));
    if (text != NULL) {
        snprintf(field, size, "%.*s", (int)strcspn(text, end), text);
    }
}
#define COPY_TEXT(field, tree, key, end) copy_text(field, sizeof(field), tree, key, end)

enum status run_reader_open(const char *folder, struct run_reader *ret_reader)
{
    struct run_reader reader = {.folder = folder};
    char job[PATH_MAX], logs[PATH_MAX];
    path_of(&reader, "job.json", job);
    path_of(&reader, "logs", logs);
    if (access(job, R_OK) != 0 && access(logs, R_OK) != 0) {
        log_error("%s is not the folder of a run: it has neither a job.json nor logs", folder);
        return STATUS_INVALID;
    }
    *ret_reader = reader;
    return STATUS_OK;
}

void run_reader_close(struct run_reader *reader)
{
    char path[PATH_MAX];
    path_of(reader, "metrics.jsonl", path);
    damaged_lines_warn(&reader->damaged, path);
    live_state_finish(&reader->state);
}

static void count_members(const json_t *job, struct live_state *state)
{
    const json_t *members = json_object_get(job, "members");
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *member = json_array_get(members, i);
        const char *role = json_string_value(json_object_get(member, "role"));
        state->processes += role != NULL && strcmp(role, "worker") == 0;
        COPY_TEXT(state->device, member, "device", "");
    }
}

static uint64_t total_steps(const json_t *job, const json_t *options)
{
    uint64_t batch = whole_of(options, "global-batch"), steps = whole_of(options, "steps");
    uint64_t per_epoch = batch > 0 ? whole_of(job, "train_samples") / batch : 0, all;
    if (steps > 0) {
        return steps == JOB_STEPS_OPEN ? 0 : steps;
    }
    return __builtin_mul_overflow(per_epoch, whole_of(options, "epochs"), &all) ? UINT64_MAX : all;
}

/* Fills in what does not change. */
static enum status read_job(struct run_reader *reader)
{
    json_t *job = load(reader, "job.json");
    const json_t *options = json_object_get(job, "options");
    struct live_state *state = &reader->state;
    uint64_t workers = whole_of(options, "workers");
    enum status status = STATUS_OK;
    if (job == NULL) {
        return STATUS_OK; // it is written when training begins
    }
    if (workers == 0 || workers > LIVE_RANKS_MAX) {
        log_error("%s/job.json is damaged: it has no number of workers up to %d", reader->folder,
                  LIVE_RANKS_MAX);
        status = STATUS_MALFORMED;
        goto end;
    }
    // Those who are shown the state have room for as many ranks as it had at first.
    if (state->workers != 0 && state->workers != workers) {
        log_error("%s has another job now, of %u workers and not of %u: watch it anew",
                  reader->folder, (unsigned)workers, state->workers);
        status = STATUS_MALFORMED;
        goto end;
    }
    status = live_state_init(state, (uint32_t)workers);
    if (status != STATUS_OK) {
        goto end;
    }
    COPY_TEXT(state->version, job, "version", "");
    COPY_TEXT(state->mode, options, "mode", "");
    COPY_TEXT(state->model, options, "model", "");
    COPY_TEXT(state->dataset, options, "data", ":");
    COPY_TEXT(state->device, options, "device", "");
    COPY_TEXT(state->optimizer, options, "optimizer", "");
    if (strcmp(state->optimizer, "auto") == 0) {
        snprintf(state->optimizer, sizeof(state->optimizer), JOB_OPTIMIZER_OF_PROGRAM);
    }
    snprintf(state->outcome, sizeof(state->outcome), "training");
    count_members(job, state);
    state->servers = (uint32_t)whole_of(options, "servers");
    state->parameters = whole_of(job, "parameters");
    state->global_batch = whole_of(options, "global-batch");
    state->total_steps = total_steps(job, options);
    state->shape = strncmp(state->mode, "ps-", 3) == 0 ? LIVE_STAR
                   : workers > 1                       ? LIVE_RING
                                                       : LIVE_ALONE;
end:
    json_decref(job);
    return status;
}

static bool is_unsynchronised(const struct live_state *state)
{
    return strncmp(state->mode, "ps-async", 8) == 0 || strncmp(state->mode, "ps-ssp", 6) == 0;
}

/* What follows from all ranks. */
static void sum_up(struct live_state *state)
{
    uint64_t step = live_step_of_all(state, is_unsynchronised(state));
    double loss = 0, rate = 0;
    uint32_t reported = 0;
    state->slowest = 0;
    for (uint32_t i = 0; i < state->workers; i++) {
        const struct live_rank *rank = &state->ranks[i];
        // One that is left out computes no image, and has no loss.
        reported += rank->steps > 0 && (rank->loss != 0 || rank->images_per_second > 0);
        loss += rank->loss;
        rate += rank->images_per_second;
        state->slowest =
            rank->compute_ms > state->ranks[state->slowest].compute_ms ? i : state->slowest;
    }
    loss /= reported > 0 ? reported : 1;
    state->loss = loss;
    state->images_per_second = rate;
    if (step > state->step) {
        state->step = step;
        const struct live_point point = {
            .step = step, .seconds = state->seconds, .value = {loss, rate}};
        live_add_point(&state->progress, &point);
    }
}

static void take_line(struct live_state *state, const json_t *line)
{
    const json_t *at = json_object_get(line, "rank"), *ms = json_object_get(line, "ms");
    json_int_t index = json_integer_value(at);
    if (!json_is_integer(at) || index < 0 || index >= (json_int_t)state->workers) {
        return;
    }
    struct live_rank *rank = &state->ranks[index];
    uint64_t steps = whole_of(line, "steps");
    const json_t *staleness = json_object_get(line, "staleness"),
                 *rate = json_object_get(line, "lr");
    rank->step = whole_of(line, "step");
    rank->loss = real_of(line, "loss");
    rank->images_per_second = real_of(line, "images_per_second");
    rank->compute_ms = real_of(ms, "compute");
    rank->exchange_wait_ms = real_of(ms, "exchange_wait");
    rank->input_wait_ms = real_of(ms, "input_wait");
    if (json_is_number(rate)) { // else a copy has not kept it
        rank->rate = state->rate = json_number_value(rate);
    }
    if (json_is_number(staleness)) {
        double value = json_number_value(staleness);
        rank->staleness = value > 0 ? value : 0;
        live_add_staleness(&state->staleness, rank->staleness, steps);
    }
    rank->steps += steps;
    rank->bytes_sent += whole_of(line, "bytes_sent");
    rank->bytes_received += whole_of(line, "bytes_received");
    state->epoch = whole_of(line, "epoch");
    state->seconds = real_of(line, "seconds");
    sum_up(state);
}

/* Reads whole lines; one that is being written comes next time. */
static bool read_lines(struct run_reader *reader, FILE *file)
{
    char line[LINE_BYTES];
    bool is_new = false;
    while (fgets(line, sizeof(line), file) != NULL) {
        size_t size = strlen(line);
        if (size == 0 || line[size - 1] != '\n') {
            break;
        }
        reader->read_to += (off_t)size;
        json_t *tree = json_loadb(line, size, 0, NULL);
        reader->line++;
        if (!json_is_object(tree)) {
            damaged_lines_note(&reader->damaged, reader->line);
        }
        take_line(&reader->state, tree);
        json_decref(tree);
        is_new = true;
    }
    return is_new;
}

/* The file is another one, or shorter, when a job goes on from a checkpoint: it is read anew. */
static enum status read_metrics(struct run_reader *reader, bool *ret_is_new)
{
    char path[PATH_MAX];
    struct stat about;
    path_of(reader, "metrics.jsonl", path);
    FILE *file = fopen(path, "re");
    if (file == NULL || fstat(fileno(file), &about) != 0) {
        if (file != NULL) {
            fclose(file);
        }
        return STATUS_OK; // nothing is reported yet
    }
    enum status status = STATUS_OK;
    if (reader->read_to > 0 &&
        (about.st_ino != reader->metrics_file || about.st_size < reader->read_to)) {
        live_state_finish(&reader->state);
        reader->read_to = 0;
        reader->line = 0;
        reader->damaged = (struct damaged_lines){0};
        status = read_job(reader);
    }
    reader->metrics_file = about.st_ino;
    if (status == STATUS_OK && reader->state.ranks != NULL &&
        fseeko(file, reader->read_to, SEEK_SET) == 0) {
        *ret_is_new = read_lines(reader, file);
    }
    fclose(file);
    return status;
}

static void take_evaluations(struct live_state *state, const json_t *details)
{
    const json_t *list = json_object_get(details, "evaluations");
    state->evaluations.count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (!json_is_number(json_object_get(one, "test_accuracy"))) {
            continue;
        }
        state->has_accuracy = true;
        state->accuracy = real_of(one, "test_accuracy");
        state->test_loss = real_of(one, "test_loss");
        const struct live_point point = {.step = whole_of(one, "step"),
                                         .seconds = real_of(one, "seconds"),
                                         .value = {state->accuracy, state->test_loss}};
        live_add_point(&state->evaluations, &point);
    }
}

static void take_recoveries(struct live_state *state, const json_t *details)
{
    const json_t *list = json_object_get(details, "recoveries");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *text = json_string_value(json_object_get(one, "reason"));
        const char *reason = text != NULL ? text : "";
        if (json_is_null(json_object_get(one, "begin_step"))) { // the job has ended before
            live_add_event(state, "lost", "%s", reason);
            continue;
        }
        live_add_event(state, "on", "from step %llu: %s",
                       (unsigned long long)whole_of(one, "begin_step"), reason);
    }
}

/* The end, which summary.json says last. */
static bool read_summary(struct run_reader *reader)
{
    json_t *summary = load(reader, "summary.json"), *details = NULL;
    const char *outcome = json_string_value(json_object_get(summary, "outcome"));
    struct live_state *state = &reader->state;
    bool is_there = outcome != NULL && state->ranks != NULL;
    if (is_there) {
        details = load(reader, "details.json");
        COPY_TEXT(state->outcome, summary, "outcome", "");
        COPY_TEXT(state->reason, summary, "reason", "");
        state->seconds = real_of(summary, "seconds");
        state->step = whole_of(summary, "steps");
        state->workers_lost = (uint32_t)whole_of(summary, "workers_lost");
        state->restarts = (uint32_t)whole_of(summary, "restarts");
        COPY_TEXT(state->all_reduce, details, "all_reduce", "");
        if (real_of(summary, "images_per_second") > 0) { // of the whole job
            state->images_per_second = real_of(summary, "images_per_second");
        }
        take_evaluations(state, details);
        take_recoveries(state, details);
        live_add_event(state, state->outcome, "%s",
                       state->reason[0] != '\0' ? state->reason : "the job is over");
    }
    json_decref(summary);
    json_decref(details);
    return is_there;
}

/* A job that has ended before training has a summary alone. */
static enum status read_early_end(struct run_reader *reader)
{
    json_t *summary = load(reader, "summary.json");
    const char *reason = json_string_value(json_object_get(summary, "reason"));
    const char *outcome = json_string_value(json_object_get(summary, "outcome"));
    bool is_completed = outcome != NULL && strcmp(outcome, "completed") == 0;
    char path[PATH_MAX];
    enum status status = STATUS_OK;
    path_of(reader, "job.json", path);
    if (summary != NULL && access(path, F_OK) == 0) {
        log_error("%s is damaged: it is no JSON", path);
        status = STATUS_MALFORMED;
    } else if (summary != NULL && is_completed) {
        log_error("%s has no job.json: the folder is damaged", reader->folder);
        status = STATUS_MALFORMED;
    } else if (summary != NULL) {
        log_error("%s: the job failed before it trained: %s", reader->folder,
                  reason != NULL ? reason : "see its logs");
        status = STATUS_END_OF_DATA;
    }
    json_decref(summary);
    return status;
}

enum status run_reader_update(struct run_reader *reader, bool *ret_is_new)
{
    bool is_new = false;
    *ret_is_new = false;
    if (reader->state.ranks == NULL) {
        enum status status = read_job(reader);
        if (status != STATUS_OK) {
            return status;
        }
        if (reader->state.ranks == NULL) {
            return read_early_end(reader);
        }
        is_new = true;
    }
    if (strcmp(reader->state.outcome, "training") != 0) {
        *ret_is_new = is_new;
        return STATUS_OK; // it is over
    }
    // The summary comes last: if it is there, so are all lines.
    char path[PATH_MAX];
    path_of(reader, "summary.json", path);
    bool has_ended = access(path, R_OK) == 0, has_lines = false;
    enum status status = read_metrics(reader, &has_lines);
    if (status != STATUS_OK) {
        return status;
    }
    *ret_is_new = (has_ended && read_summary(reader)) || has_lines || is_new;
    return STATUS_OK;
}
