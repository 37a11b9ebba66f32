/* Queues work for the checkpoint writer, which a thread calls. */
#include "ps-server/checkpoint/saver.h"

#include "common/base/log.h"
#include "common/channel/snapshot.h"
#include "common/thread/task_thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Tasks beside pieces: a checkpoint that is given up, and the beginning of the next, and their
// ends.
#define TASKS_BESIDE 16

enum task_kind { TASK_BEGIN, TASK_STORE, TASK_COMMIT, TASK_ABANDON };

struct task {
    enum task_kind kind;
    uint64_t step, peer;
    char vector[PIECE_NAME_BYTES];
    uint64_t offset, size;             // bytes
    void *bytes;                       // (size), owned
    struct checkpoint_vector *vectors; // (vector_count), owned with their names
    uint32_t vector_count;
    json_t *job_part; // owned
};

struct saver {
    struct saver_options options;
    struct checkpoint_writer *writer; // the thread's
    struct task_thread *thread;
    pthread_mutex_t mutex;   // of what follows
    struct saver_news *news; // (capacity), a ring
    uint32_t capacity;
    uint32_t news_head, news_count;
    bool is_forsaken; // its owner, whom it would wake, is gone

    // The thread's.
    uint64_t step;
    bool is_open; // begun, and nothing has failed
};

static void task_finish(struct task *task)
{
    for (uint32_t i = 0; i < task->vector_count; i++) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): it was given away as const
        free((char *)(uintptr_t)task->vectors[i].name);
    }
    free(task->vectors);
    free(task->bytes);
    json_decref(task->job_part);
    *task = (struct task){.kind = TASK_ABANDON};
}

static void tell(struct saver *saver, const struct saver_news *news)
{
    pthread_mutex_lock(&saver->mutex);
    assert(saver->news_count < saver->capacity);
    saver->news[(saver->news_head + saver->news_count++) % saver->capacity] = *news;
    if (!saver->is_forsaken) {
        saver->options.wake(saver->options.context);
    }
    pthread_mutex_unlock(&saver->mutex);
}

/* Whoever counts on the checkpoints has to know that they are not there any more. */
static void tell_if_moved(struct saver *saver, enum status status)
{
    if (checkpoint_writer_take_news(saver->writer)) {
        tell(saver, &(struct saver_news){.is_moved = true, .step = saver->step, .status = status});
    }
}

/* A checkpoint has ended. */
static void tell_end(struct saver *saver, enum status status)
{
    struct saver_news news = {.is_end = true, .step = saver->step, .status = status};
    if (status == STATUS_IO) {
        tell_if_moved(saver, status);
    }
    if (status != STATUS_OK) {
        bool is_told = status == STATUS_INTERRUPTED; // that nothing has failed
        snprintf(news.why, sizeof(news.why), "%s",
                 is_told ? "it was given up" : checkpoint_writer_error(saver->writer));
    }
    saver->is_open = false;
    tell(saver, &news);
}

static void begin(struct saver *saver, const struct task *task)
{
    saver->step = task->step;
    enum status status = checkpoint_begin(saver->writer, task->step);
    saver->is_open = true;
    tell_if_moved(saver, status);
    if (status != STATUS_OK) {
        tell_end(saver, status);
    }
}

static void store(struct saver *saver, const struct task *task)
{
    if (!saver->is_open) {
        return; // what is left of one that has failed
    }
    enum status status =
        checkpoint_write(saver->writer, task->vector, task->offset, task->bytes, task->size);
    if (status != STATUS_OK) {
        checkpoint_abandon(saver->writer);
        tell_end(saver, status);
        return;
    }
    tell(saver, &(struct saver_news){.step = saver->step, .peer = task->peer});
}

static void commit(struct saver *saver, const struct task *task)
{
    if (!saver->is_open) {
        return;
    }
    enum status status =
        checkpoint_commit(saver->writer, task->vectors, task->vector_count, task->job_part);
    tell_end(saver, status);
    if (status != STATUS_OK) {
        checkpoint_abandon(saver->writer);
    }
}

static void run_task(void *context, void *data)
{
    struct saver *saver = context;
    struct task *task = data;
    switch (task->kind) {
    case TASK_BEGIN:
        begin(saver, task);
        break;
    case TASK_STORE:
        store(saver, task);
        break;
    case TASK_COMMIT:
        commit(saver, task);
        break;
    case TASK_ABANDON:
        checkpoint_abandon(saver->writer);
        tell_end(saver, STATUS_INTERRUPTED);
        break;
    }
    task_finish(task);
}

/* Takes the task. */
static void add(struct saver *saver, const struct task *task)
{
    bool is_queued = task_thread_add(saver->thread, task);
    assert(is_queued);
    (void)is_queued;
}

bool saver_is_busy(struct saver *saver)
{
    return task_thread_is_busy(saver->thread, NULL);
}

static void finish(struct saver *saver)
{
    checkpoint_writer_close(saver->writer);
    pthread_mutex_destroy(&saver->mutex);
    free(saver->news);
    free(saver);
}

/* The thread's until the folder is open: if the disk hangs, it has all that it needs. */
struct opening {
    char *folder; // owned
    uint32_t keep;
    struct checkpoint_writer *writer;
    enum status status;
};

static void open_folder(void *data)
{
    struct opening *opening = data;
    opening->status = checkpoint_writer_open(opening->folder, opening->keep, &opening->writer);
}

static enum status open_writer(const struct saver_options *options,
                               struct checkpoint_writer **ret_writer)
{
    struct opening *opening = calloc(1, sizeof(*opening));
    char *folder = strdup(options->folder);
    if (opening == NULL || folder == NULL) {
        free(opening);
        free(folder);
        return STATUS_NO_MEMORY;
    }
    *opening = (struct opening){.folder = folder, .keep = options->keep};
    const struct slow_disk_work work = {.complaint = "not opened the folder of checkpoints",
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

enum status saver_create(const struct saver_options *options, struct saver **ret_saver)
{
    struct saver *saver = calloc(1, sizeof(*saver));
    if (saver == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = open_writer(options, &saver->writer);
    if (status != STATUS_OK) {
        free(saver);
        return status;
    }
    saver->options = *options;
    saver->options.folder = NULL;
    // Pieces of a checkpoint that was given up may still wait when those of the next one come.
    saver->capacity = 2 * options->member_count * SNAPSHOT_CREDITS + TASKS_BESIDE;
    saver->news = calloc(saver->capacity, sizeof(*saver->news));
    pthread_mutex_init(&saver->mutex, NULL);
    const struct task_thread_options thread = {.name = "checkpoints",
                                               .capacity = saver->capacity,
                                               .task_bytes = sizeof(struct task),
                                               .run = run_task,
                                               .context = saver};
    if (saver->news == NULL || task_thread_create(&thread, &saver->thread) != STATUS_OK) {
        log_error("cannot start the thread that writes checkpoints");
        finish(saver);
        return STATUS_NO_MEMORY;
    }
    *ret_saver = saver;
    return STATUS_OK;
}

void saver_await_idle(struct saver *saver, uint64_t patience_ms)
{
    (void)task_thread_await_queued(saver->thread, patience_ms);
}

bool saver_destroy(struct saver *saver, uint64_t patience_ms)
{
    if (saver == NULL) {
        return true;
    }
    if (!task_thread_destroy(saver->thread, patience_ms)) {
        pthread_mutex_lock(&saver->mutex);
        saver->is_forsaken = true;
        pthread_mutex_unlock(&saver->mutex);
        return false;
    }
    finish(saver);
    return true;
}

void saver_begin(struct saver *saver, uint64_t step)
{
    add(saver, &(struct task){.kind = TASK_BEGIN, .step = step});
}

void saver_store(struct saver *saver, uint64_t peer, const struct message *piece)
{
    struct task task = {
        .kind = TASK_STORE,
        .peer = peer,
        .offset = piece->span.offset * sizeof(float),
        .size = piece->span.count * sizeof(float),
        .bytes = malloc(piece->span.count * sizeof(float)),
    };
    snprintf(task.vector, sizeof(task.vector), "%s", piece->piece->vector);
    if (task.bytes == NULL) {
        saver_abandon(saver); // the checkpoint stays incomplete
        return;
    }
    memcpy(task.bytes, piece->values, task.size);
    add(saver, &task);
}

void saver_commit(struct saver *saver, const struct checkpoint_vector *vectors, uint32_t count,
                  json_t *job_part)
{
    struct task task = {.kind = TASK_COMMIT, .job_part = job_part};
    task.vectors = calloc((size_t)count + 1, sizeof(*task.vectors));
    for (uint32_t i = 0; i < count && task.vectors != NULL; i++) {
        task.vectors[i] = (struct checkpoint_vector){strdup(vectors[i].name), vectors[i].size};
        task.vector_count += task.vectors[i].name != NULL;
    }
    add(saver, &task); // without one of them it is refused as not whole
}

void saver_abandon(struct saver *saver)
{
    add(saver, &(struct task){.kind = TASK_ABANDON});
}

bool saver_next(struct saver *saver, struct saver_news *ret_news)
{
    pthread_mutex_lock(&saver->mutex);
    bool has_news = saver->news_count > 0;
    if (has_news) {
        *ret_news = saver->news[saver->news_head];
        saver->news_head = (saver->news_head + 1) % saver->capacity;
        saver->news_count--;
    }
    pthread_mutex_unlock(&saver->mutex);
    return has_news;
}
