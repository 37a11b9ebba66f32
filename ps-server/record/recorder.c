/* Writes the files of a run folder: job.json, metrics.jsonl, details.json and summary.json. */
#include "ps-server/record/recorder.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/record/continuation.h"
#include "ps-server/record/job_record.h"
#include "ps-server/record/metrics.h"
#include "ps-server/record/metrics_file.h"
#include "ps-server/record/run_folder.h"
#include "ps-server/record/summary.h"
#include "ps-server/record/tensorboard.h"

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES  4096
#define ERROR_BYTES 512

struct recorder {
    char folder[PATH_BYTES - 64];
    struct metrics metrics;          // what is not a line yet
    struct metrics_file file;        // closed before the first line
    int behind;                      // errno: lines could not be written, and wait; 0: they were
    struct continuation_lines *kept; // (kept_count) of ranks, owned: what lines had when the job
    uint32_t kept_count;             // went on; NULL: that is not known
    struct run_folder place;
    bool has_lost_tensorboard;       // what is missing there is missing for good
    bool has_tensorboard;            // is asked for
    const struct job *job;           // as it was given; borrowed
    const char *program;             // NULL or "": not known; borrowed
    struct tensorboard *tensorboard; // NULL before training
    bool has_gone_on;                // from begin_step, maybe 0, in a folder with results
    uint64_t begin_step;
    bool has_reserve;        // the file JOB_RESERVE_NAME is there
    char error[ERROR_BYTES]; // of the first thing that could not be written
};

static void path_of(const struct recorder *recorder, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", recorder->folder, name);
}

/* Logs, and keeps, what errno says of a file. */
static enum status refuse_file(struct recorder *recorder, const char *path)
{
    char text[ERROR_BYTES];
    int error = errno;
    if (recorder->place.path != NULL && !run_folder_is_in_place(&recorder->place)) {
        snprintf(text, sizeof(text),
                 "cannot write %.200s: somebody has moved or removed the run folder", path);
    } else {
        errno = error;
        snprintf(text, sizeof(text), "cannot write %.400s: %m", path);
    }
    log_error("%s", text);
    if (recorder->error[0] == '\0') {
        memcpy(recorder->error, text, sizeof(text));
    }
    return STATUS_IO;
}

const char *recorder_error(const struct recorder *recorder)
{
    return recorder->error;
}

/* Whether the launcher has set room aside. To make it anew could fail, if the disk is full by now.
 */
static bool is_reserved(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink == 1 &&
           new_file_is_ours(facts.st_uid) && facts.st_size >= JOB_RESERVE_BYTES &&
           facts.st_blocks * 512 >= JOB_RESERVE_BYTES;
}

/* Sets aside room that the summary takes over. So it can still be written on a disk that has become
 * full. */
static enum status reserve(struct recorder *recorder)
{
    char path[PATH_BYTES];
    path_of(recorder, JOB_RESERVE_NAME, path);
    recorder->has_reserve =
        is_reserved(path) || new_file_fill(path, JOB_RESERVE_BYTES) == STATUS_OK;
    return recorder->has_reserve ? STATUS_OK : refuse_file(recorder, path);
}

static void release(struct recorder *recorder)
{
    if (recorder->has_reserve) {
        char path[PATH_BYTES];
        path_of(recorder, JOB_RESERVE_NAME, path);
        unlink(path);
        recorder->has_reserve = false;
    }
}

enum status recorder_create(const struct recorder_options *options, struct recorder **ret_recorder)
{
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    if (recorder == NULL) {
        return STATUS_NO_MEMORY;
    }
    const char *folder = options->folder;
    recorder->file = metrics_file_closed;
    recorder->job = options->job;
    recorder->has_tensorboard = options->has_tensorboard;
    recorder->program = options->program;
    enum status status = STATUS_INVALID;
    if (snprintf(recorder->folder, sizeof(recorder->folder), "%s", folder) >=
        (int)sizeof(recorder->folder)) {
        log_error("the path of the run folder is too long");
        goto fail;
    }
    status = run_folder_open(&recorder->place, recorder->folder);
    if (status != STATUS_OK) {
        goto fail;
    }
    char path[PATH_BYTES];
    path_of(recorder, "summary.json", path);
    if (!options->goes_on && access(path, F_OK) == 0) {
        log_error("%s already holds a run: choose another folder with --out", folder);
        status = STATUS_INVALID;
        goto fail;
    }
    status = reserve(recorder);
    if (status != STATUS_OK) {
        goto fail;
    }
    *ret_recorder = recorder;
    return STATUS_OK;
fail:
    recorder_destroy(recorder);
    return status;
}

void recorder_destroy(struct recorder *recorder)
{
    if (recorder == NULL) {
        return;
    }
    metrics_file_close(&recorder->file);
    free(recorder->kept);
    tensorboard_destroy(recorder->tensorboard);
    metrics_finish(&recorder->metrics);
    release(recorder);
    free(recorder);
}

/* Logs and keeps what could not be written for TensorBoard. */
static enum status check_tensorboard(struct recorder *recorder, enum status status)
{
    return status == STATUS_OK ? status
                               : refuse_file(recorder, tensorboard_path(recorder->tensorboard));
}

/* The same in training, which goes on: nothing more is written there, and the job fails at its
 * end. */
static void excuse_tensorboard(struct recorder *recorder, enum status status)
{
    if (check_tensorboard(recorder, status) != STATUS_OK) {
        log_warn("training goes on; nothing more is written for TensorBoard");
        tensorboard_destroy(recorder->tensorboard);
        recorder->tensorboard = NULL;
        recorder->has_lost_tensorboard = true;
    }
}

static enum status open_tensorboard(struct recorder *recorder, const struct job *job)
{
    if (tensorboard_create(recorder->folder, job, &recorder->tensorboard) != STATUS_OK) {
        return refuse_file(recorder, recorder->folder);
    }
    enum status status = tensorboard_begin(recorder->tensorboard);
    if (status == STATUS_OK && recorder->has_gone_on) {
        status = tensorboard_go_on(recorder->tensorboard, recorder->begin_step);
    }
    return check_tensorboard(recorder, status);
}

void recorder_note_restart(struct recorder *recorder, const struct history_entry *entry)
{
    char path[PATH_BYTES];
    path_of(recorder, HISTORY_FILE, path);
    if (history_add(recorder->folder, entry) != STATUS_OK && !recorder->place.is_moved) {
        log_error("cannot write %s: %m; training goes on, and a coordinator that has to take over "
                  "does not know of this",
                  path);
    }
}

enum status recorder_remove_results(struct recorder *recorder)
{
    char path[PATH_BYTES];
    path_of(recorder, "summary.json", path);
    return continuation_remove_results(recorder->folder) == STATUS_OK ? STATUS_OK
                                                                      : refuse_file(recorder, path);
}

/* Cuts the lines of `from` at the step. */
static enum status keep_lines(struct recorder *recorder, const char *from, uint64_t step)
{
    char path[PATH_BYTES];
    uint32_t count = recorder->job->workers;
    struct continuation_lines *kept = calloc(count, sizeof(*kept));
    path_of(recorder, METRICS_FILE, path);
    metrics_file_close(&recorder->file);
    if (kept == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (continuation_begin(from, recorder->folder, step, count, kept) != STATUS_OK ||
        metrics_file_open(&recorder->file, path, true) != STATUS_OK) {
        free(kept);
        return refuse_file(recorder, path);
    }
    recorder->kept = kept;
    recorder->kept_count = count;
    return STATUS_OK;
}

enum status recorder_go_on(struct recorder *recorder, const char *from, uint64_t step)
{
    free(recorder->kept);
    recorder->kept = NULL;
    metrics_forget(&recorder->metrics);
    if (!run_folder_check(&recorder->place)) {
        return STATUS_OK; // what is open goes on, wherever it is now
    }
    enum status status = keep_lines(recorder, from, step);
    if (status != STATUS_OK) {
        return status;
    }
    recorder->has_gone_on = true;
    recorder->begin_step = step;
    if (recorder->tensorboard != NULL) {
        excuse_tensorboard(recorder, tensorboard_go_on(recorder->tensorboard, step));
    }
    return STATUS_OK;
}

/* Whether the line is in the stream's buffer. */
static bool dump_line(FILE *file, const json_t *tree, size_t flags)
{
    return json_dumpf(tree, file, flags | JSON_REAL_PRECISION(9)) == 0 && fputc('\n', file) != EOF;
}

/* Writes a whole file, to the disk. Where it fails, errno says why. */
static bool write_draft(const char *path, const json_t *tree)
{
    FILE *file = new_file_stream(path, true);
    if (file == NULL) {
        return false;
    }
    bool is_written = tree != NULL && dump_line(file, tree, JSON_INDENT(2));
    bool is_synced = fflush(file) == 0 && fsync(fileno(file)) == 0;
    return fclose(file) == 0 && is_written && is_synced;
}

/* Takes the tree. Writes it beside its place, then moves it there. */
static enum status write_json(struct recorder *recorder, const char *name, json_t *tree)
{
    char path[PATH_BYTES], draft[PATH_BYTES];
    path_of(recorder, name, path);
    snprintf(draft, sizeof(draft), "%.*s.part", PATH_BYTES - 8, path);
    bool is_written = write_draft(draft, tree);
    json_decref(tree);
    if (is_written && rename(draft, path) == 0) {
        return STATUS_OK;
    }
    enum status status = refuse_file(recorder, path);
    unlink(draft);
    return status;
}

enum status recorder_write_job(struct recorder *recorder, const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    // Where its members were there before, they have told more to the one who wrote it.
    enum status status =
        coordinator->is_returned
            ? STATUS_OK
            : write_json(recorder, "job.json",
                         job_record_json(coordinator, recorder->job, recorder->program));
    if (status != STATUS_OK) {
        return status;
    }
    if (recorder->metrics.lines == NULL) {
        status = metrics_init(&recorder->metrics, job->workers, job->report_every,
                              job_total_steps(job, coordinator->train_samples));
    }
    if (status != STATUS_OK || !recorder->has_tensorboard || recorder->tensorboard != NULL ||
        recorder->has_lost_tensorboard || coordinator->started_ms == 0) {
        return status;
    }
    return open_tensorboard(recorder, job);
}

enum status recorder_write_summary(struct recorder *recorder, const struct coordinator *coordinator)
{
    release(recorder);
    return write_json(recorder, "summary.json", summary_json(coordinator));
}

enum status recorder_write_details(struct recorder *recorder, const struct coordinator *coordinator)
{
    json_t *details = summary_details_json(coordinator);
    json_object_set_new(details, "restarts", history_json(recorder->folder));
    return write_json(recorder, "details.json", details);
}

enum status recorder_end_tensorboard(struct recorder *recorder,
                                     const struct coordinator *coordinator)
{
    bool is_completed = coordinator->verdict == STATUS_OK;
    return recorder->tensorboard != NULL
               ? check_tensorboard(recorder, tensorboard_end(recorder->tensorboard, is_completed))
               : STATUS_OK;
}

/* Appends a line to the file, which is made for the first one. */
static enum status append(struct recorder *recorder, const char *path, json_t *line)
{
    enum status status =
        recorder->file.fd < 0 ? metrics_file_open(&recorder->file, path, false) : STATUS_OK;
    if (status == STATUS_OK) {
        status = metrics_file_add(&recorder->file, line);
    }
    int error = errno;
    json_decref(line);
    errno = error;
    return status;
}

/* A line could not be written, of which errno says why. Training goes on, since the line waits. */
static void note_behind(struct recorder *recorder, const char *path)
{
    int error = errno;
    if (recorder->behind == 0 && !recorder->place.is_moved) {
        log_error("cannot write %s: %m; training goes on, and what is missing there is written as "
                  "soon as it can be",
                  path);
    }
    recorder->behind = error;
}

/* Writes what a rank has reported since its last line, if anything. What cannot be written waits.
 */
static enum status write_line(struct recorder *recorder, const struct coordinator *coordinator,
                              uint32_t rank)
{
    char path[PATH_BYTES];
    struct metrics_line line;
    if (!metrics_take(&recorder->metrics, rank, &line)) {
        return STATUS_OK;
    }
    path_of(recorder, METRICS_FILE, path);
    (void)run_folder_check(&recorder->place);
    if (append(recorder, path, summary_metrics_json(coordinator, rank, &line)) != STATUS_OK) {
        note_behind(recorder, path);
        metrics_put_back(&recorder->metrics, rank, &line);
        return STATUS_OK;
    }
    recorder->behind = 0;
    if (recorder->tensorboard != NULL) {
        excuse_tensorboard(recorder, tensorboard_add(recorder->tensorboard, rank, &line));
    }
    return STATUS_OK;
}

enum status recorder_add_period(struct recorder *recorder, const struct coordinator *coordinator,
                                uint32_t period)
{
    const struct results_period *of = &coordinator->results.periods[period];
    uint64_t step = results_period_end(&coordinator->results, coordinator->job,
                                       coordinator->train_samples, period);
    if (recorder->tensorboard == NULL || of->test_images == 0) {
        return STATUS_OK;
    }
    double accuracy = results_accuracy(&coordinator->results, period);
    double loss = of->test_loss_sum / (double)of->test_images;
    excuse_tensorboard(recorder, tensorboard_add_test(recorder->tensorboard, step, accuracy, loss));
    return STATUS_OK;
}

enum status recorder_add_metrics(struct recorder *recorder, const struct coordinator *coordinator,
                                 uint32_t rank, const struct message *message, uint64_t now_ms)
{
    bool is_due = metrics_add(&recorder->metrics, rank, message, now_ms);
    return is_due ? write_line(recorder, coordinator, rank) : STATUS_OK;
}

enum status recorder_complete(struct recorder *recorder, const struct coordinator *coordinator,
                              uint32_t rank, const struct message *message, uint64_t now_ms)
{
    struct continuation_lines lines;
    struct wire_report rest;
    uint64_t begin = generation_begin_step(coordinator);
    char path[PATH_BYTES];
    path_of(recorder, "metrics.jsonl", path);
    if (!run_folder_check(&recorder->place)) {
        return STATUS_OK; // nobody knows what lines have
    }
    if (continuation_read(recorder->folder, rank, 1, begin, &lines) != STATUS_OK) {
        return refuse_file(recorder, path);
    }
    if (!metrics_rest(message->report, lines.steps, lines.loss_steps, &rest)) {
        return STATUS_OK; // lines have it all
    }
    struct message told = *message;
    told.report = &rest;
    return recorder_add_metrics(recorder, coordinator, rank, &told, now_ms);
}

/* What a copy has of a rank. It does not have rates, nor how stale gradients were. */
static struct wire_report report_of(const struct results_rank *rank)
{
    return (struct wire_report){.steps = rank->steps,
                                .images = rank->images,
                                .images_dropped = rank->images_dropped,
                                .loss_sum = rank->loss_sum,
                                .compute_ns = rank->compute_ns,
                                .exchange_wait_ns = rank->exchange_wait_ns,
                                .input_wait_ns = rank->input_wait_ns,
                                .total_ns = rank->total_ns,
                                .copy_ns = rank->copy_ns,
                                .wire_ns = rank->wire_ns,
                                .bytes_sent = rank->bytes_sent,
                                .bytes_received = rank->bytes_received,
                                .epoch = rank->epoch,
                                .rate = (double)NAN,
                                .staleness_sum = (double)NAN,
                                .is_repeated = true};
}

enum status recorder_restore(struct recorder *recorder, const struct coordinator *coordinator,
                             uint64_t step, uint64_t now_ms)
{
    const struct results *results = &coordinator->results;
    enum status status = STATUS_OK;
    uint32_t count = recorder->kept != NULL ? recorder->kept_count : 0;
    for (uint32_t i = 0; i < count && i < results->worker_count && status == STATUS_OK; i++) {
        const struct continuation_lines *lines = &recorder->kept[i];
        const struct wire_report sum = report_of(&results->ranks[i]);
        struct wire_report rest;
        const struct message told = {.kind = MESSAGE_REPORT, .step = step, .report = &rest};
        if (metrics_rest(&sum, lines->steps, lines->loss_steps, &rest)) {
            (void)metrics_add(&recorder->metrics, i, &told, now_ms);
            status = write_line(recorder, coordinator, i);
        }
    }
    return status;
}

enum status recorder_close_metrics(struct recorder *recorder, const struct coordinator *coordinator)
{
    char path[PATH_BYTES];
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < recorder->metrics.worker_count && status == STATUS_OK; i++) {
        recorder->behind = 0; // what is missing now is missing for good
        status = write_line(recorder, coordinator, i);
        if (recorder->behind != 0) {
            path_of(recorder, METRICS_FILE, path);
            errno = recorder->behind;
            return refuse_file(recorder, path);
        }
    }
    return recorder->has_lost_tensorboard ? STATUS_IO : status;
}
