/* Reads summary.json, or writes it for a coordinator that could not. */
#include "deploy/launch/last_summary.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/job/job_modes.h"
#include "common/job/job_options.h"
#include "common/job/job_text.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4200
#define LINE_BYTES 4096 // of metrics.jsonl

/* What the metrics say. */
struct progress {
    long long steps; // steps that every worker has reported; -1: not known
    double seconds;  // of the last report
};

static void path_of(const char *folder, const char *name, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%.4096s/%s", folder, name);
}

/* Reads the last step of each worker, and the time of the last report. The last line may be cut. */
static void read_metrics(FILE *file, uint32_t workers, long long *steps, double *ret_seconds)
{
    char line[LINE_BYTES];
    while (fgets(line, sizeof(line), file) != NULL) {
        json_t *entry = json_loads(line, 0, NULL);
        long long rank = json_integer_value(json_object_get(entry, "rank"));
        if (entry != NULL && rank >= 0 && rank < workers) {
            steps[rank] = json_integer_value(json_object_get(entry, "step"));
            *ret_seconds = json_number_value(json_object_get(entry, "seconds"));
        }
        json_decref(entry);
    }
}

static struct progress read_progress(const char *folder, uint32_t workers)
{
    char path[PATH_BYTES];
    struct progress progress = {.steps = -1};
    path_of(folder, "metrics.jsonl", path);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return progress;
    }
    long long *steps = calloc(workers, sizeof(*steps));
    if (steps != NULL) {
        read_metrics(file, workers, steps, &progress.seconds);
        progress.steps = steps[0];
    }
    for (uint32_t i = 1; steps != NULL && i < workers; i++) {
        progress.steps = steps[i] < progress.steps ? steps[i] : progress.steps;
    }
    free(steps);
    fclose(file);
    return progress;
}

/* What the job has gone through: see docs/RUN-FOLDER.md. The last line may be cut. */
static void read_restarts(const char *folder, json_int_t *ret_restarts, json_int_t *ret_lost)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    *ret_restarts = *ret_lost = 0;
    path_of(folder, "restarts.jsonl", path);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        json_t *entry = json_loads(line, 0, NULL);
        json_int_t restarts = json_integer_value(json_object_get(entry, "restarts"));
        json_int_t lost = json_integer_value(json_object_get(entry, "workers_lost"));
        *ret_restarts = restarts > *ret_restarts ? restarts : *ret_restarts;
        *ret_lost = lost > *ret_lost ? lost : *ret_lost;
        json_decref(entry);
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* job.json has what only the members knew, once all have joined. NULL: it is not there. */
static json_t *read_record(const char *folder)
{
    char path[PATH_BYTES];
    path_of(folder, "job.json", path);
    return json_load_file(path, 0, NULL);
}

static json_t *read_parameters(const json_t *record)
{
    json_t *parameters = json_incref(json_object_get(record, "parameters"));
    return parameters != NULL ? parameters : json_null();
}

/* Takes the optimizer that a program of its own has said, or that it makes the updates itself. */
static void take_optimizer(const json_t *record, struct job *job)
{
    const json_t *options = json_object_get(record, "options");
    const char *name = json_string_value(json_object_get(options, "optimizer"));
    char text[JOB_OPTIMIZER_TEXT_BYTES] = "", why[OPTION_ERROR_BYTES];
    size_t used = 0;
    bool makes_updates = name != NULL && strcmp(name, "auto") == 0;
    if (!job_is_external(job) || name == NULL ||
        (!makes_updates && job->optimizer != OPTIMIZER_AUTO)) {
        return;
    }
    for (size_t i = 0; !makes_updates && i < job_option_count; i++) {
        const char *row = job_options[i].name;
        const json_t *value = json_object_get(options, row);
        if (job_option_is_of_optimizer(row) && used < sizeof(text)) {
            used += (size_t)(json_is_string(value)
                                 ? snprintf(text + used, sizeof(text) - used, "%s=%s\n", row,
                                            json_string_value(value))
                                 : snprintf(text + used, sizeof(text) - used, "%s=%.17g\n", row,
                                            json_number_value(value)));
        }
    }
    // What is no optimizer leaves the job as it is.
    (void)job_take_optimizer(job, makes_updates ? JOB_OPTIMIZER_OWN : text, why, sizeof(why));
}

/* The mean batch of a worker, as in every summary. */
static json_t *batch_json(const struct job *job)
{
    return job->global_batch % job->workers == 0
               ? json_integer(job->global_batch / job->workers)
               : json_real((double)job->global_batch / (double)job->workers);
}

/* Of a program that had not said its optimizer, or makes the updates itself. */
static json_t *rate_json(const struct job *job, double rate)
{
    return job->optimizer == OPTIMIZER_AUTO ? json_null() : json_real(rate);
}

static json_t *summary_json(const char *folder, const struct job *given, const char *reason)
{
    struct job resolved = *given;
    const struct job *job = &resolved;
    json_t *record = read_record(folder);
    take_optimizer(record, &resolved);
    struct progress progress = read_progress(folder, job->workers);
    bool has_progress = progress.steps >= 0;
    json_t *steps = has_progress ? json_integer(progress.steps) : json_null();
    json_t *seconds = has_progress ? json_real(progress.seconds) : json_null();
    json_t *summary = json_pack(
        "{s:s, s:s, s:i, s:i, s:s, s:o, s:s, s:s, s:s, s:I, s:o, s:i, s:s, s:o, s:o, s:o, s:o, "
        "s:n}",
        "version", RINGSIDE_VERSION, "mode", mode_text(job->mode).text, "workers",
        (int)job->workers, "servers", (int)job->servers, "model", job->model, "parameters",
        read_parameters(record), "dataset", job->data, "device", job->device, "transport",
        transport_choices[job->transport].name, "seed", (json_int_t)job->seed, "batch_per_worker",
        batch_json(job), "global_batch", (int)job->global_batch, "optimizer",
        job_optimizer_text(job), "lr", rate_json(job, job->lr), "lr_effective",
        rate_json(job, job_schedule(job, 0).base_rate), "steps", steps, "seconds", seconds,
        "images_per_second");
    json_decref(record);
    json_int_t restarts, lost;
    read_restarts(folder, &restarts, &lost);
    json_t *rest =
        json_pack("{s:[], s:n, s:n, s:{s:n, s:n, s:n, s:n}, s:{s:n, s:n, s:n, s:n}, "
                  "s:{s:n, s:n, s:[]}, s:n, s:s, s:o, s:I, s:s, s:s}",
                  "epochs", "best_accuracy", "best_epoch", "ms_per_step", "compute",
                  "exchange_wait", "input_wait", "total", "bytes_per_step", "worker_sent",
                  "worker_received", "server_sent", "server_received", "staleness", "mean", "max",
                  "histogram", "params_digest", "bits_of", job_has_nccl(job) ? "nccl" : "ringside",
                  "workers_lost", lost > 0 ? json_integer(lost) : json_null(), "restarts", restarts,
                  "outcome", "failed", "reason", reason);
    if (rest == NULL || json_object_update(summary, rest) != 0) {
        json_decref(summary);
        summary = NULL;
    }
    json_decref(rest);
    return summary;
}

/* Reads which member a failed job failed because of. */
static void read_member(const char *folder, struct last_summary *summary)
{
    char path[PATH_BYTES];
    path_of(folder, "details.json", path);
    json_t *details = json_load_file(path, 0, NULL);
    const json_t *member = json_object_get(details, "failed_member");
    const char *role = json_string_value(json_object_get(member, "role"));
    json_int_t index = json_integer_value(json_object_get(member, "index"));
    summary->has_member = role != NULL && index >= 0 && index < JOB_WORKERS_MAX;
    summary->is_worker = role != NULL && strcmp(role, "worker") == 0;
    summary->index = summary->has_member ? (uint32_t)index : 0;
    json_decref(details);
}

bool last_summary_has_worker(const char *folder, uint32_t number)
{
    char path[PATH_BYTES];
    path_of(folder, "details.json", path);
    json_t *details = json_load_file(path, 0, NULL);
    const json_t *finishers = json_object_get(details, "finishers");
    bool has = !json_is_array(finishers); // nothing is known
    for (size_t i = 0; i < json_array_size(finishers); i++) {
        has = has || json_integer_value(json_array_get(finishers, i)) == (json_int_t)number;
    }
    json_decref(details);
    return has;
}

enum status last_summary_read(const char *folder, struct last_summary *ret_summary)
{
    char path[PATH_BYTES];
    path_of(folder, "summary.json", path);
    json_t *summary = json_load_file(path, 0, NULL);
    const char *outcome = json_string_value(json_object_get(summary, "outcome"));
    const char *reason = json_string_value(json_object_get(summary, "reason"));
    enum status status = outcome != NULL && reason != NULL ? STATUS_OK : STATUS_IO;
    if (status == STATUS_OK) {
        ret_summary->is_completed = strcmp(outcome, "completed") == 0;
        snprintf(ret_summary->reason, sizeof(ret_summary->reason), "%s", reason);
        read_member(folder, ret_summary);
    }
    json_decref(summary);
    return status;
}

uint64_t last_summary_stamp(const char *folder)
{
    char path[PATH_BYTES];
    struct stat facts;
    path_of(folder, "summary.json", path);
    if (stat(path, &facts) != 0) {
        return 0;
    }
    uint64_t ns = (uint64_t)facts.st_mtim.tv_sec * 1000000000 + (uint64_t)facts.st_mtim.tv_nsec;
    return ns ^ ((uint64_t)facts.st_ino << 20);
}

enum status last_summary_reserve(const char *folder)
{
    char path[PATH_BYTES];
    path_of(folder, JOB_RESERVE_NAME, path);
    if (new_file_fill(path, JOB_RESERVE_BYTES) != STATUS_OK) {
        log_error("cannot write %s: %m", path);
        return STATUS_IO;
    }
    return STATUS_OK;
}

void last_summary_tidy(const char *folder)
{
    static const char *const names[] = {JOB_RESERVE_NAME, "job.json.part", "details.json.part",
                                        "summary.json.part"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        path_of(folder, names[i], path);
        unlink(path);
    }
}

/* Takes the summary. */
static void put(const char *folder, json_t *summary)
{
    char path[PATH_BYTES], draft[PATH_BYTES];
    path_of(folder, "summary.json", path);
    path_of(folder, "summary.json.part", draft);
    if (summary == NULL ||
        json_dump_file(summary, draft, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0 ||
        rename(draft, path) != 0) {
        log_error("cannot write %s: %m", path);
        unlink(draft);
    }
    json_decref(summary);
}

void last_summary_write(const char *folder, const struct job *job, const char *reason)
{
    struct last_summary there;
    if (last_summary_read(folder, &there) != STATUS_OK) {
        put(folder, summary_json(folder, job, reason));
    }
}

void last_summary_fail(const char *folder, const char *reason)
{
    char path[PATH_BYTES];
    path_of(folder, "summary.json", path);
    json_t *summary = json_load_file(path, 0, NULL);
    json_object_set_new(summary, "outcome", json_string("failed"));
    json_object_set_new(summary, "reason", json_string(reason));
    put(folder, summary);
}
