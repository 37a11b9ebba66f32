/* Hands what is to be written to the record writer, which a thread calls. */
#include "ps-server/record/recorder/recorder.h"

#include "common/base/log.h"
#include "common/thread/slow_disk.h"
#include "common/thread/task_thread.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/record/job_record.h"
#include "ps-server/record/metrics.h"
#include "ps-server/record/recorder/record_task.h"
#include "ps-server/record/recorder/record_writer.h"
#include "ps-server/record/summary.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAINING_MIN 512   // reports and evaluations that may wait; what more come are added up
#define OTHERS_MAX   16384 // other things: some for each loss that a job goes on from
#define ERROR_BYTES  512
#define PATH_BYTES   (RECORDER_FOLDER_BYTES + 64)

struct recorder {
    char folder[RECORDER_FOLDER_BYTES];
    const struct job *job; // as it was given; borrowed
    const char *program;   // NULL or "": not known; borrowed
    bool has_keys;
    struct task_thread *thread;
    struct record_writer *writer; // the thread's
    uint32_t capacity;            // of its queue
    uint32_t training;            // of that, for reports and evaluations
    struct record_report *held;   // (workers) without a place in the queue, owned
    bool has_tensorboard;         // otherwise nobody asks for evaluations
    struct record_tests tests;    // without a place in the queue, owned
    char error[ERROR_BYTES];      // what recorder_error says

    // Of a disk that takes long.
    struct task_watch watch;
    bool is_slow; // it was said

    pthread_mutex_t mutex; // of what follows
    bool is_forsaken;      // the disk hangs, and is not waited for any more
    enum status status;    // of what failed first
    char failure[ERROR_BYTES];
    enum record_task_kind doing; // the task that it is at, or was at last
};

/* Of the file that a task writes. */
static void path_of(const struct recorder *recorder, enum record_task_kind kind,
                    char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%s/%s", recorder->folder, record_task_file(kind));
}

/* Begins a task. False: it is not to be done any more. What others handed over ends its data. */
static bool begin_task(struct recorder *recorder, enum record_task_kind kind)
{
    pthread_mutex_lock(&recorder->mutex);
    recorder->doing = kind;
    bool is_in_vain = recorder->is_forsaken && kind != RECORD_TASK_OTHER;
    bool may_be_done = recorder->status == STATUS_OK || !record_task_is_of_training(kind);
    pthread_mutex_unlock(&recorder->mutex);
    return may_be_done && !is_in_vain;
}

/* Keeps what failed first. */
static void note_failure(struct recorder *recorder, enum status status, const char *error)
{
    pthread_mutex_lock(&recorder->mutex);
    if (recorder->status == STATUS_OK) {
        recorder->status = status;
        snprintf(recorder->failure, sizeof(recorder->failure), "%s", error);
    }
    pthread_mutex_unlock(&recorder->mutex);
}

static void run_task(void *context, void *data)
{
    struct recorder *recorder = context;
    struct record_task *task = data;
    if (begin_task(recorder, task->kind)) {
        enum status status = record_task_do(recorder->writer, task);
        if (status != STATUS_OK) {
            note_failure(recorder, status, record_writer_error(recorder->writer));
        }
    }
    record_task_finish(task);
}

/* The thread's until the run folder is open: if the disk hangs, it has all that it needs. */
struct opening {
    struct recorder_options options; // of the two below
    char *folder;                    // owned
    struct job job;
    struct record_writer *writer;
    enum status status;
};

static void open_folder(void *data)
{
    struct opening *opening = data;
    opening->status = record_writer_create(&opening->options, &opening->writer);
}

static enum status create_writer(const struct recorder_options *options,
                                 struct record_writer **ret_writer)
{
    struct opening *opening = calloc(1, sizeof(*opening));
    char *folder = strdup(options->folder);
    if (opening == NULL || folder == NULL) {
        free(opening);
        free(folder);
        return STATUS_NO_MEMORY;
    }
    *opening = (struct opening){.options = *options, .folder = folder, .job = *options->job};
    opening->options.folder = folder;
    opening->options.job = &opening->job;
    const struct slow_disk_work work = {.complaint = "not opened the run folder",
                                        .path = options->folder,
                                        .run = open_folder,
                                        .data = opening};
    enum status status = slow_disk_await(&options->wait, &work);
    if (slow_disk_is_given_up(status)) {
        return status; // which leaves it to the thread
    }
    status = status == STATUS_OK ? opening->status : status;
    if (status == STATUS_OK) {
        *ret_writer = opening->writer;
    }
    free(opening->folder);
    free(opening);
    return status;
}

enum status recorder_create(const struct recorder_options *options, struct recorder **ret_recorder)
{
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    if (recorder == NULL) {
        return STATUS_NO_MEMORY;
    }
    pthread_mutex_init(&recorder->mutex, NULL);
    snprintf(recorder->folder, sizeof(recorder->folder), "%s", options->folder);
    recorder->job = options->job;
    recorder->program = options->program;
    recorder->has_keys = options->has_keys;
    recorder->has_tensorboard = options->has_tensorboard;
    recorder->training = TRAINING_MIN + 2 * options->job->workers;
    recorder->capacity = recorder->training + OTHERS_MAX;
    recorder->held = calloc(options->job->workers, sizeof(*recorder->held));
    enum status status =
        recorder->held != NULL ? create_writer(options, &recorder->writer) : STATUS_NO_MEMORY;
    const struct task_thread_options thread = {.name = "records",
                                               .capacity = recorder->capacity,
                                               .places = recorder->training,
                                               .task_bytes = sizeof(struct record_task),
                                               .run = run_task,
                                               .context = recorder};
    if (status == STATUS_OK) {
        status = task_thread_create(&thread, &recorder->thread);
        if (status != STATUS_OK) {
            log_error("cannot start the thread that writes the run folder");
        }
    }
    if (status != STATUS_OK) {
        record_writer_destroy(recorder->writer);
        pthread_mutex_destroy(&recorder->mutex);
        free(recorder->held);
        free(recorder);
        return status;
    }
    *ret_recorder = recorder;
    return STATUS_OK;
}

/* There is no memory for what is to be written. */
static enum status lack_memory(struct recorder *recorder, enum record_task_kind kind)
{
    char error[ERROR_BYTES];
    snprintf(error, sizeof(error), "cannot write %.400s/%s: there is no memory for it",
             recorder->folder, record_task_file(kind));
    note_failure(recorder, STATUS_NO_MEMORY, error);
    return STATUS_NO_MEMORY;
}

/* Notes that there is no room for a task: too much waits already. */
static enum status refuse(struct recorder *recorder, enum record_task_kind kind)
{
    char error[ERROR_BYTES];
    snprintf(error, sizeof(error), "the disk hangs, and too much waits for it: %.300s/%s",
             recorder->folder, record_task_file(kind));
    note_failure(recorder, STATUS_IO, error);
    return STATUS_IO;
}

/* Takes the task. */
static enum status add(struct recorder *recorder, struct record_task *task)
{
    enum status status = STATUS_IO; // if forsaken, which has been logged
    if (!recorder->is_forsaken) {
        // Before it is tried: afterwards the thread may have made room.
        bool has_room = task_thread_room(recorder->thread) > 0;
        if (task_thread_add(recorder->thread, task)) {
            return STATUS_OK;
        }
        status = has_room ? lack_memory(recorder, task->kind) : refuse(recorder, task->kind);
    }
    record_task_finish(task);
    return status;
}

/* Gives the disk up, which has not taken what waits for it: nothing is written any more. Logs. */
static void forsake(struct recorder *recorder, uint64_t patience_ms)
{
    char error[ERROR_BYTES], path[PATH_BYTES];
    pthread_mutex_lock(&recorder->mutex);
    enum record_task_kind doing = recorder->doing;
    recorder->is_forsaken = true; // outside the mutex, this thread alone reads it
    pthread_mutex_unlock(&recorder->mutex);
    path_of(recorder, doing, path);
    slow_disk_describe_hanging("not taken", path, patience_ms, error, sizeof(error));
    log_error("%s", error);
    note_failure(recorder, STATUS_IO, error);
}

bool recorder_destroy(struct recorder *recorder, uint64_t patience_ms)
{
    if (recorder == NULL) {
        return true;
    }
    struct record_task finish = {.kind = RECORD_TASK_FINISH};
    (void)add(recorder, &finish);
    if (!recorder->is_forsaken && !task_thread_await_queued(recorder->thread, patience_ms)) {
        forsake(recorder, patience_ms);
    }
    if (!task_thread_destroy(recorder->thread, recorder->is_forsaken ? 0 : patience_ms) ||
        recorder->is_forsaken) {
        return false;
    }
    pthread_mutex_destroy(&recorder->mutex);
    free(recorder->held);
    free(recorder->tests.list);
    free(recorder);
    return true;
}

const char *recorder_error(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->mutex);
    memcpy(recorder->error, recorder->failure, sizeof(recorder->error));
    pthread_mutex_unlock(&recorder->mutex);
    return recorder->error;
}

static enum status status_of(struct recorder *recorder, enum record_task_kind *ret_doing)
{
    pthread_mutex_lock(&recorder->mutex);
    enum status status = recorder->status;
    *ret_doing = recorder->doing;
    pthread_mutex_unlock(&recorder->mutex);
    return status;
}

/* Says that the disk takes long, or takes something again. */
static void watch(struct recorder *recorder, enum record_task_kind doing, uint64_t now_ms,
                  uint64_t warn_ms)
{
    char text[ERROR_BYTES], path[PATH_BYTES];
    uint64_t idle_ms = task_watch_idle_ms(&recorder->watch, recorder->thread, now_ms);
    if (idle_ms == 0) {
        if (recorder->is_slow) {
            log_warn("the disk takes the run folder %s again", recorder->folder);
        }
        recorder->is_slow = false;
    } else if (!recorder->is_slow && idle_ms >= warn_ms) {
        recorder->is_slow = true;
        path_of(recorder, doing, path);
        slow_disk_describe("taken nothing of", path, idle_ms, text, sizeof(text));
        log_warn("%s; training goes on, and what is missing there is written as soon as it can be",
                 text);
    }
}

enum status recorder_look(struct recorder *recorder, uint64_t now_ms, uint64_t warn_ms)
{
    enum record_task_kind doing;
    enum status status = status_of(recorder, &doing);
    if (!recorder->is_forsaken) {
        watch(recorder, doing, now_ms, warn_ms);
    }
    return status;
}

enum status recorder_settle(struct recorder *recorder, uint64_t patience_ms)
{
    enum record_task_kind doing;
    bool is_settled =
        !recorder->is_forsaken && task_thread_await_queued(recorder->thread, patience_ms);
    enum status status = status_of(recorder, &doing);
    if (is_settled || recorder->is_forsaken) {
        return status;
    }
    forsake(recorder, patience_ms);
    return STATUS_IO;
}

enum status recorder_remove_results(struct recorder *recorder)
{
    return add(recorder, &(struct record_task){.kind = RECORD_TASK_REMOVE_RESULTS});
}

enum status recorder_go_on(struct recorder *recorder, const char *from, uint64_t step)
{
    struct record_task task = {.kind = RECORD_TASK_GO_ON, .step = step, .from = strdup(from)};
    memset(recorder->held, 0, recorder->job->workers * sizeof(*recorder->held));
    record_tests_cut(&recorder->tests, step);
    return task.from != NULL ? add(recorder, &task) : lack_memory(recorder, task.kind);
}

void recorder_note_restart(struct recorder *recorder, const struct history_entry *entry)
{
    struct record_task task = {.kind = RECORD_TASK_NOTE_RESTART, .entry = malloc(sizeof(*entry))};
    if (task.entry == NULL) {
        log_warn("there is no memory for a line of %s/" HISTORY_FILE, recorder->folder);
        return;
    }
    *task.entry = *entry;
    (void)add(recorder, &task);
}

enum status recorder_write_job(struct recorder *recorder, const struct coordinator *coordinator)
{
    const struct job *job = coordinator->job;
    struct record_task task = {.kind = RECORD_TASK_JOB};
    struct record_job *begun = &task.begun;
    if (coordinator->started_ms > 0) {
        struct job *copy = malloc(sizeof(*copy));
        if (copy == NULL) {
            return lack_memory(recorder, task.kind);
        }
        *copy = *job;
        begun->job = copy;
    }
    begun->workers = job->workers;
    begun->report_every = job->report_every;
    begun->total_steps = job_total_steps(job, coordinator->train_samples);
    // Where its members were there before, they have told more to the one who wrote it.
    if (!coordinator->is_returned) {
        begun->tree =
            job_record_json(coordinator, recorder->job, recorder->program, recorder->has_keys);
    }
    return add(recorder, &task);
}

/* What the writer knows of a report. */
static struct record_report report_of(const struct coordinator *coordinator, uint32_t rank,
                                      const struct message *message, uint64_t now_ms)
{
    struct record_report report = {.is_there = true,
                                   .rank = rank,
                                   .step = message->step,
                                   .report = *message->report,
                                   .seconds = generation_seconds(coordinator, now_ms)};
    report.report.staleness = NULL;
    report.report.staleness_bins = 0;
    return report;
}

static bool has_room_for_training(const struct recorder *recorder)
{
    uint32_t queued = recorder->capacity - task_thread_room(recorder->thread);
    return !recorder->is_forsaken && queued < recorder->training;
}

/* Queues what is held of a rank, if there is room for it. */
static enum status queue_held(struct recorder *recorder, uint32_t rank)
{
    struct record_report *held = &recorder->held[rank];
    if (!held->is_there || !has_room_for_training(recorder)) {
        return STATUS_OK;
    }
    struct record_task task = {.kind = RECORD_TASK_METRICS, .report = *held};
    *held = (struct record_report){.is_there = false};
    return add(recorder, &task);
}

enum status recorder_add_metrics(struct recorder *recorder, const struct coordinator *coordinator,
                                 uint32_t rank, const struct message *message, uint64_t now_ms)
{
    struct record_report report = report_of(coordinator, rank, message, now_ms);
    assert(rank < recorder->job->workers);
    metrics_prepend(&report.report, &recorder->held[rank].report);
    recorder->held[rank] = report;
    return queue_held(recorder, rank);
}

enum status recorder_complete(struct recorder *recorder, const struct coordinator *coordinator,
                              uint32_t rank, const struct message *message, uint64_t now_ms)
{
    struct record_task task = {.kind = RECORD_TASK_COMPLETE,
                               .step = generation_begin_step(coordinator),
                               .report = report_of(coordinator, rank, message, now_ms)};
    return add(recorder, &task);
}

enum status recorder_restore(struct recorder *recorder, const struct coordinator *coordinator,
                             uint64_t step, uint64_t now_ms)
{
    const struct results *results = &coordinator->results;
    struct record_task task = {.kind = RECORD_TASK_RESTORE,
                               .sum_count = results->worker_count,
                               .sums = calloc(results->worker_count, sizeof(*task.sums))};
    if (task.sums == NULL) {
        return lack_memory(recorder, task.kind);
    }
    for (uint32_t i = 0; i < results->worker_count; i++) {
        task.sums[i] = (struct record_report){.rank = i,
                                              .step = step,
                                              .report = metrics_copied(&results->ranks[i]),
                                              .seconds = generation_seconds(coordinator, now_ms)};
    }
    return add(recorder, &task);
}

/* Queues the evaluations that are held, all at once, if there is room for it. */
static enum status queue_tests(struct recorder *recorder)
{
    if (recorder->tests.count == 0 || !has_room_for_training(recorder)) {
        return STATUS_OK;
    }
    struct record_task task = {.kind = RECORD_TASK_TEST, .tests = recorder->tests};
    recorder->tests = (struct record_tests){0};
    return add(recorder, &task);
}

enum status recorder_add_period(struct recorder *recorder, const struct coordinator *coordinator,
                                uint32_t period)
{
    const struct results *results = &coordinator->results;
    const struct results_period *of = &results->periods[period];
    if (of->test_images == 0 || !recorder->has_tensorboard) {
        return STATUS_OK;
    }
    const struct record_test test = {
        .step = results_period_end(results, coordinator->job, coordinator->train_samples, period),
        .accuracy = results_accuracy(results, period),
        .loss = of->test_loss_sum / (double)of->test_images};
    return record_tests_add(&recorder->tests, &test) == STATUS_OK
               ? queue_tests(recorder)
               : lack_memory(recorder, RECORD_TASK_TEST);
}

bool recorder_do(struct recorder *recorder, void (*work)(void *data), void *data)
{
    struct record_task task = {.kind = RECORD_TASK_OTHER, .work = work, .data = data};
    return add(recorder, &task) == STATUS_OK;
}

enum status recorder_close_metrics(struct recorder *recorder)
{
    struct record_task task = {.kind = RECORD_TASK_CLOSE_METRICS};
    enum status status = queue_tests(recorder);
    for (uint32_t i = 0; i < recorder->job->workers && status == STATUS_OK; i++) {
        status = queue_held(recorder, i);
    }
    return status == STATUS_OK ? add(recorder, &task) : status;
}

enum status recorder_write_details(struct recorder *recorder, const struct coordinator *coordinator)
{
    struct record_task task = {.kind = RECORD_TASK_DETAILS,
                               .tree = summary_details_json(coordinator)};
    return add(recorder, &task);
}

enum status recorder_end_tensorboard(struct recorder *recorder,
                                     const struct coordinator *coordinator)
{
    struct record_task task = {.kind = RECORD_TASK_END_TENSORBOARD,
                               .is_completed = coordinator->verdict == STATUS_OK};
    return add(recorder, &task);
}

enum status recorder_write_summary(struct recorder *recorder, const struct coordinator *coordinator)
{
    struct record_task task = {.kind = RECORD_TASK_SUMMARY, .tree = summary_json(coordinator)};
    return add(recorder, &task);
}
