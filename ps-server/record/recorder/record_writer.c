/* Writes the files of a run folder: job.json, metrics.jsonl, details.json and summary.json. */
#include "ps-server/record/recorder/record_writer.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "ps-server/record/continuation.h"
#include "ps-server/record/job_record.h"
#include "ps-server/record/metrics_file.h"
#include "ps-server/record/run_folder.h"
#include "ps-server/record/summary.h"
#include "ps-server/record/tensorboard.h"

#include <jansson.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES  4096
#define ERROR_BYTES 512

struct record_writer {
    char folder[PATH_BYTES - 64];
    struct metrics metrics;          // what is not a line yet
    struct metrics_file file;        // closed before the first line
    int behind;                      // errno: lines could not be written, and wait; 0: they were
    struct continuation_lines *kept; // (kept_count) of ranks, owned: what lines had when the job
    uint32_t kept_count;             // went on; NULL: that is not known
    struct run_folder place;
    bool has_lost_tensorboard;       // what is missing there is missing for good
    bool has_tensorboard;            // is asked for
    uint32_t workers;                // of the job
    struct job tensorboard_job;      // that it borrows
    struct tensorboard *tensorboard; // NULL before training
    bool has_gone_on;                // from begin_step, maybe 0, in a folder with results
    uint64_t begin_step;
    bool has_reserve;        // the file JOB_RESERVE_NAME is there
    char error[ERROR_BYTES]; // of the first thing that could not be written
};

static void path_of(const struct record_writer *writer, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", writer->folder, name);
}

static const char *describe(int error)
{
    return error == EEXIST ? "another file is in its place; move it away" : strerrordesc_np(error);
}

/* Logs, and keeps, what errno says of a file. */
static enum status refuse_file(struct record_writer *writer, const char *path)
{
    char text[ERROR_BYTES];
    int error = errno;
    if (error != ENOMEM && writer->place.path != NULL && !run_folder_is_in_place(&writer->place)) {
        snprintf(text, sizeof(text),
                 "cannot write %.200s: somebody has moved or removed the run folder", path);
    } else {
        snprintf(text, sizeof(text), "cannot write %.400s: %s", path, describe(error));
    }
    log_error("%s", text);
    if (writer->error[0] == '\0') {
        memcpy(writer->error, text, sizeof(text));
    }
    return STATUS_IO;
}

static enum status lack_memory(struct record_writer *writer, const char *path)
{
    errno = ENOMEM; // calls since may have changed it
    return refuse_file(writer, path);
}

const char *record_writer_error(const struct record_writer *writer)
{
    return writer->error;
}

/* Whether the launcher has set room aside. Making it anew could fail on a disk that is full. */
static bool is_reserved(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink == 1 &&
           new_file_is_ours(facts.st_uid) && facts.st_size >= JOB_RESERVE_BYTES &&
           facts.st_blocks * 512 >= JOB_RESERVE_BYTES;
}

/* Sets aside room that the summary takes over. So it can still be written on a disk that has become
 * full. */
static enum status reserve(struct record_writer *writer)
{
    char path[PATH_BYTES];
    path_of(writer, JOB_RESERVE_NAME, path);
    writer->has_reserve = is_reserved(path) || new_file_fill(path, JOB_RESERVE_BYTES) == STATUS_OK;
    return writer->has_reserve ? STATUS_OK : refuse_file(writer, path);
}

static void release(struct record_writer *writer)
{
    if (writer->has_reserve && run_folder_is_in_place(&writer->place)) {
        char path[PATH_BYTES];
        path_of(writer, JOB_RESERVE_NAME, path);
        unlink(path);
        writer->has_reserve = false;
    }
}

/* Whether the folder may be written to: what another job has recorded stays as it is. Logs. */
static enum status check_owner(const struct record_writer *writer,
                               const struct recorder_options *options)
{
    char summary[PATH_BYTES], metrics[PATH_BYTES], record[PATH_BYTES];
    path_of(writer, "summary.json", summary);
    path_of(writer, METRICS_FILE, metrics);
    path_of(writer, "job.json", record);
    if (!options->goes_on && (access(summary, F_OK) == 0 || access(metrics, F_OK) == 0)) {
        log_error("%s already holds a run: choose another folder with --out", writer->folder);
        return STATUS_INVALID;
    }
    FILE *file = options->goes_on ? new_file_read(record) : NULL;
    json_t *tree = file != NULL ? json_loadf(file, 0, NULL) : NULL;
    const char *stranger = job_record_stranger(tree, options->job);
    if (stranger != NULL) {
        log_error("%s holds the run of another job, which has another --%s: nothing there is "
                  "changed; choose another folder with --out",
                  writer->folder, stranger);
    }
    if (file != NULL) {
        fclose(file);
    }
    json_decref(tree);
    return stranger == NULL ? STATUS_OK : STATUS_INVALID;
}

enum status record_writer_create(const struct recorder_options *options,
                                 struct record_writer **ret_writer)
{
    struct record_writer *writer = calloc(1, sizeof(*writer));
    if (writer == NULL) {
        return STATUS_NO_MEMORY;
    }
    writer->file = metrics_file_closed;
    writer->workers = options->job->workers;
    writer->has_tensorboard = options->has_tensorboard;
    enum status status = STATUS_INVALID;
    if (snprintf(writer->folder, sizeof(writer->folder), "%s", options->folder) >=
        (int)sizeof(writer->folder)) {
        log_error("the path of the run folder is too long");
        goto fail;
    }
    status = run_folder_open(&writer->place, writer->folder);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = check_owner(writer, options);
    if (status == STATUS_OK) {
        status = reserve(writer);
    }
    if (status != STATUS_OK) {
        goto fail;
    }
    *ret_writer = writer;
    return STATUS_OK;
fail:
    record_writer_destroy(writer);
    return status;
}

void record_writer_destroy(struct record_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    metrics_file_close(&writer->file);
    free(writer->kept);
    tensorboard_destroy(writer->tensorboard);
    metrics_finish(&writer->metrics);
    release(writer);
    free(writer);
}

/* Logs and keeps what could not be written for TensorBoard. */
static enum status check_tensorboard(struct record_writer *writer, enum status status)
{
    return status == STATUS_OK ? status
                               : refuse_file(writer, tensorboard_path(writer->tensorboard));
}

/* The same in training, which goes on: nothing more is written there, and the job fails at its
 * end. */
static void excuse_tensorboard(struct record_writer *writer, enum status status)
{
    if (check_tensorboard(writer, status) != STATUS_OK) {
        log_warn("training goes on; nothing more is written for TensorBoard");
        tensorboard_destroy(writer->tensorboard);
        writer->tensorboard = NULL;
        writer->has_lost_tensorboard = true;
    }
}

static enum status open_tensorboard(struct record_writer *writer, const struct job *job)
{
    if (tensorboard_create(writer->folder, job, &writer->tensorboard) != STATUS_OK) {
        return refuse_file(writer, writer->folder);
    }
    enum status status = tensorboard_begin(writer->tensorboard);
    if (status == STATUS_OK && writer->has_gone_on) {
        status = tensorboard_go_on(writer->tensorboard, writer->begin_step);
    }
    return check_tensorboard(writer, status);
}

void record_writer_note_restart(struct record_writer *writer, const struct history_entry *entry)
{
    char path[PATH_BYTES];
    path_of(writer, HISTORY_FILE, path);
    if (run_folder_check(&writer->place) && history_add(writer->folder, entry) != STATUS_OK) {
        log_warn("cannot write %s: %m; training goes on, and a coordinator that has to take over "
                 "does not know of this",
                 path);
    }
}

enum status record_writer_remove_results(struct record_writer *writer)
{
    char path[PATH_BYTES];
    path_of(writer, "summary.json", path);
    return continuation_remove_results(writer->folder) == STATUS_OK ? STATUS_OK
                                                                    : refuse_file(writer, path);
}

/* Cuts the lines of `from` at the step. */
static enum status keep_lines(struct record_writer *writer, const char *from, uint64_t step)
{
    char path[PATH_BYTES];
    uint32_t count = writer->workers;
    struct continuation_lines *kept = calloc(count, sizeof(*kept));
    path_of(writer, METRICS_FILE, path);
    metrics_file_close(&writer->file);
    if (kept == NULL) {
        return lack_memory(writer, path);
    }
    if (continuation_begin(from, writer->folder, step, count, kept) != STATUS_OK ||
        metrics_file_open(&writer->file, path, true) != STATUS_OK) {
        free(kept);
        return refuse_file(writer, path);
    }
    writer->kept = kept;
    writer->kept_count = count;
    return STATUS_OK;
}

enum status record_writer_go_on(struct record_writer *writer, const char *from, uint64_t step)
{
    free(writer->kept);
    writer->kept = NULL;
    metrics_forget(&writer->metrics);
    if (!run_folder_check(&writer->place)) {
        return STATUS_OK; // what is open goes on, wherever it is now
    }
    enum status status = keep_lines(writer, from, step);
    if (status != STATUS_OK) {
        return status;
    }
    writer->has_gone_on = true;
    writer->begin_step = step;
    if (writer->tensorboard != NULL) {
        excuse_tensorboard(writer, tensorboard_go_on(writer->tensorboard, step));
    }
    return STATUS_OK;
}

/* What lies in a folder that has taken the place of ours stays as it is. */
static enum status write_json(struct record_writer *writer, const char *name, const json_t *tree)
{
    char path[PATH_BYTES];
    path_of(writer, name, path);
    if (!run_folder_is_in_place(&writer->place)) {
        return refuse_file(writer, path);
    }
    char *text = tree != NULL ? json_dumps(tree, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    if (text == NULL) {
        return lack_memory(writer, path);
    }
    size_t size = strlen(text);
    text[size] = '\n'; // in the place of the terminator
    enum status status = new_file_replace(path, text, size + 1);
    int error = errno;
    free(text);
    errno = error;
    return status == STATUS_OK ? status : refuse_file(writer, path);
}

enum status record_writer_write_job(struct record_writer *writer, const struct record_job *begun)
{
    enum status status =
        begun->tree == NULL ? STATUS_OK : write_json(writer, "job.json", begun->tree);
    if (status == STATUS_OK && writer->metrics.lines == NULL &&
        metrics_init(&writer->metrics, begun->workers, begun->report_every, begun->total_steps) !=
            STATUS_OK) {
        char path[PATH_BYTES];
        path_of(writer, METRICS_FILE, path);
        return lack_memory(writer, path);
    }
    if (status != STATUS_OK || !writer->has_tensorboard || writer->tensorboard != NULL ||
        writer->has_lost_tensorboard || begun->job == NULL) {
        return status;
    }
    writer->tensorboard_job = *begun->job;
    return open_tensorboard(writer, &writer->tensorboard_job);
}

enum status record_writer_write_summary(struct record_writer *writer, const json_t *summary)
{
    release(writer);
    return write_json(writer, "summary.json", summary);
}

enum status record_writer_write_details(struct record_writer *writer, json_t *details)
{
    json_object_set_new(details, "restarts", history_json(writer->folder));
    return write_json(writer, "details.json", details);
}

enum status record_writer_end_tensorboard(struct record_writer *writer, bool is_completed)
{
    if (writer->tensorboard != NULL && !run_folder_is_in_place(&writer->place)) {
        return refuse_file(writer, tensorboard_path(writer->tensorboard));
    }
    return writer->tensorboard != NULL
               ? check_tensorboard(writer, tensorboard_end(writer->tensorboard, is_completed))
               : STATUS_OK;
}

/* Opens the file for the first line, or for the next one if somebody has removed it. Wherever the
 * folder is now, a file that is open goes on. STATUS_IO and errno. */
static enum status open_lines(struct record_writer *writer, const char *path)
{
    bool is_open = writer->file.fd >= 0;
    if (!run_folder_check(&writer->place)) {
        errno = ENOENT;
        return is_open ? STATUS_OK : STATUS_IO;
    }
    if (is_open && metrics_file_is_in_place(&writer->file, path)) {
        return STATUS_OK;
    }
    if (is_open) {
        log_warn("somebody has moved or removed %s: training goes on, and what follows goes into "
                 "a new one, unless there is another file in its place",
                 path);
    }
    return metrics_file_open(&writer->file, path, false);
}

/* Appends a line to the file. */
static enum status append(struct record_writer *writer, const char *path, json_t *line)
{
    enum status status = open_lines(writer, path);
    if (status == STATUS_OK) {
        status = metrics_file_add(&writer->file, line);
    }
    int error = errno;
    json_decref(line);
    errno = error;
    return status;
}

/* A line could not be written, of which errno says why. Training goes on, since the line waits. */
static void note_behind(struct record_writer *writer, const char *path)
{
    int error = errno;
    if (writer->behind == 0 && !writer->place.is_moved) {
        log_warn("cannot write %s: %s; training goes on, and what is missing there is written as "
                 "soon as it can be",
                 path, describe(error));
    }
    writer->behind = error;
}

/* Writes what a rank has reported since its last line, if anything. False: it cannot be written,
 * and waits. */
static bool write_line(struct record_writer *writer, uint32_t rank)
{
    char path[PATH_BYTES];
    struct metrics_line line;
    if (!metrics_take(&writer->metrics, rank, &line)) {
        return true;
    }
    path_of(writer, METRICS_FILE, path);
    if (append(writer, path, summary_metrics_json(rank, &line)) != STATUS_OK) {
        note_behind(writer, path);
        metrics_put_back(&writer->metrics, rank, &line);
        return false;
    }
    writer->behind = 0;
    if (writer->tensorboard != NULL) {
        excuse_tensorboard(writer, tensorboard_add(writer->tensorboard, rank, &line));
    }
    return true;
}

enum status record_writer_add_tests(struct record_writer *writer, const struct record_tests *tests)
{
    for (uint32_t i = 0; i < tests->count && writer->tensorboard != NULL; i++) {
        const struct record_test *test = &tests->list[i];
        excuse_tensorboard(writer, tensorboard_add_test(writer->tensorboard, test->step,
                                                        test->accuracy, test->loss));
    }
    return STATUS_OK;
}

enum status record_tests_add(struct record_tests *tests, const struct record_test *test)
{
    struct record_test *list = realloc(tests->list, (tests->count + 1) * sizeof(*list));
    if (list == NULL) {
        return STATUS_NO_MEMORY;
    }
    list[tests->count++] = *test;
    tests->list = list;
    return STATUS_OK;
}

void record_tests_cut(struct record_tests *tests, uint64_t step)
{
    while (tests->count > 0 && tests->list[tests->count - 1].step > step) {
        tests->count--;
    }
}

/* Whether a line is due. */
static bool add_up(struct record_writer *writer, const struct record_report *report)
{
    const struct message message = {
        .kind = MESSAGE_REPORT, .step = report->step, .report = &report->report};
    return metrics_add(&writer->metrics, report->rank, &message, report->seconds);
}

enum status record_writer_add_metrics(struct record_writer *writer,
                                      const struct record_report *report)
{
    if (add_up(writer, report)) {
        (void)write_line(writer, report->rank);
    }
    return STATUS_OK;
}

enum status record_writer_complete(struct record_writer *writer, uint64_t begin,
                                   const struct record_report *sum)
{
    struct continuation_lines lines;
    struct record_report rest = *sum;
    char path[PATH_BYTES];
    path_of(writer, METRICS_FILE, path);
    if (!run_folder_check(&writer->place)) {
        return STATUS_OK; // nobody knows what lines have
    }
    if (continuation_read(writer->folder, sum->rank, 1, begin, &lines) != STATUS_OK) {
        return refuse_file(writer, path);
    }
    if (!metrics_rest(&sum->report, lines.steps, lines.loss_steps, &rest.report)) {
        return STATUS_OK; // lines have it all
    }
    return record_writer_add_metrics(writer, &rest);
}

enum status record_writer_restore(struct record_writer *writer, const struct record_report *sums,
                                  uint32_t count)
{
    uint32_t kept_count = writer->kept != NULL ? writer->kept_count : 0;
    for (uint32_t i = 0; i < kept_count && i < count; i++) {
        const struct continuation_lines *lines = &writer->kept[i];
        struct record_report rest = sums[i];
        if (metrics_rest(&sums[i].report, lines->steps, lines->loss_steps, &rest.report)) {
            (void)add_up(writer, &rest);
            (void)write_line(writer, i);
        }
    }
    return STATUS_OK;
}

enum status record_writer_close_metrics(struct record_writer *writer)
{
    char path[PATH_BYTES];
    path_of(writer, METRICS_FILE, path);
    if (writer->file.fd >= 0) {
        (void)open_lines(writer, path); // says that somebody has removed it
    }
    for (uint32_t i = 0; i < writer->metrics.worker_count; i++) {
        if (!write_line(writer, i)) { // what is missing now is missing for good
            errno = writer->behind;
            return refuse_file(writer, path);
        }
    }
    return writer->has_lost_tensorboard ? STATUS_IO : STATUS_OK;
}
