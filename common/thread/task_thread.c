/* A ring of tasks under a mutex, which grows where it may. */
#include "common/thread/task_thread.h"

#include "common/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct task_thread {
    struct task_thread_options options;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed; // something is to be done, or the thread is to leave
    pthread_cond_t moved;   // a task was run, or the thread has left
    unsigned char *tasks;   // (places) of task_bytes each, a ring; owned
    void *current;          // (task_bytes) that is run; owned
    uint32_t places;        // that there is memory for
    uint32_t head, count;
    uint64_t done;   // tasks that were run
    bool is_at_work; // on a task
    bool leaves;     // once the queue is empty
    bool has_left;
    struct task_thread *before; // that was left behind
};

// Threads that the process does not wait for: what they own is in use until it ends, which those
// who look for memory that nobody has any more see by this.
static _Atomic(struct task_thread *) left_behind;

static unsigned char *place(const struct task_thread *thread, uint32_t index)
{
    size_t at = (thread->head + index) % thread->places;
    return thread->tasks + at * thread->options.task_bytes;
}

/* Whether the ring has a place for one more task. One that is full gets twice as many, up to the
 * capacity. */
static bool make_room(struct task_thread *thread)
{
    uint32_t capacity = thread->options.capacity, before = thread->places;
    size_t bytes = thread->options.task_bytes;
    if (thread->count < before || before == capacity) {
        return thread->count < before;
    }
    uint32_t places = before > capacity / 2 ? capacity : 2 * before;
    unsigned char *tasks = calloc(places, bytes);
    if (tasks == NULL) {
        return false;
    }
    size_t first = (before - thread->head) * bytes; // up to the end of the ring
    memcpy(tasks, place(thread, 0), first);
    memcpy(tasks + first, thread->tasks, thread->head * bytes);
    free(thread->tasks);
    thread->tasks = tasks;
    thread->places = places;
    thread->head = 0;
    return true;
}

/* Takes the next task; false: the thread is to leave. */
static bool take(struct task_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    thread->done += thread->is_at_work;
    thread->is_at_work = false;
    pthread_cond_broadcast(&thread->moved);
    while (thread->count == 0 && !thread->leaves) {
        pthread_cond_wait(&thread->changed, &thread->mutex);
    }
    bool has_task = thread->count > 0;
    if (has_task) {
        memcpy(thread->current, place(thread, 0), thread->options.task_bytes);
        thread->head = (thread->head + 1) % thread->places;
        thread->count--;
    }
    thread->is_at_work = has_task;
    pthread_mutex_unlock(&thread->mutex);
    return has_task;
}

static void *run(void *data)
{
    struct task_thread *thread = data;
    pthread_setname_np(pthread_self(), thread->options.name);
    while (take(thread)) {
        thread->options.run(thread->options.context, thread->current);
    }
    pthread_mutex_lock(&thread->mutex);
    thread->has_left = true;
    pthread_cond_broadcast(&thread->moved);
    pthread_mutex_unlock(&thread->mutex);
    return NULL;
}

/* A condition whose waits end by the clock that the process has. */
static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void finish(struct task_thread *thread)
{
    pthread_cond_destroy(&thread->changed);
    pthread_cond_destroy(&thread->moved);
    pthread_mutex_destroy(&thread->mutex);
    free(thread->tasks);
    free(thread->current);
    free(thread);
}

enum status task_thread_create(const struct task_thread_options *options,
                               struct task_thread **ret_thread)
{
    struct task_thread *thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return STATUS_NO_MEMORY;
    }
    thread->options = *options;
    thread->places = options->places > 0 ? options->places : options->capacity;
    thread->tasks = calloc(thread->places, options->task_bytes);
    thread->current = calloc(1, options->task_bytes);
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_cond_init(&thread->changed, NULL);
    init_condition(&thread->moved);
    if (thread->tasks == NULL || thread->current == NULL ||
        pthread_create(&thread->thread, NULL, run, thread) != 0) {
        finish(thread);
        return STATUS_NO_MEMORY;
    }
    *ret_thread = thread;
    return STATUS_OK;
}

bool task_thread_add(struct task_thread *thread, const void *task)
{
    pthread_mutex_lock(&thread->mutex);
    bool has_room = make_room(thread);
    if (has_room) {
        memcpy(place(thread, thread->count), task, thread->options.task_bytes);
        thread->count++;
        pthread_cond_signal(&thread->changed);
    }
    pthread_mutex_unlock(&thread->mutex);
    return has_room;
}

uint32_t task_thread_room(struct task_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    uint32_t room = thread->options.capacity - thread->count;
    pthread_mutex_unlock(&thread->mutex);
    return room;
}

bool task_thread_is_busy(struct task_thread *thread, uint64_t *ret_done)
{
    pthread_mutex_lock(&thread->mutex);
    bool is_busy = thread->count > 0 || thread->is_at_work;
    if (ret_done != NULL) {
        *ret_done = thread->done;
    }
    pthread_mutex_unlock(&thread->mutex);
    return is_busy;
}

uint64_t task_watch_note(struct task_watch *watch, bool has_moved, uint64_t now_ms)
{
    uint64_t away_ms = attention_away_ms(&watch->attention, now_ms, ATTENTION_TURN_MS);
    if (has_moved || watch->moved_ms == 0) {
        watch->moved_ms = now_ms;
    }
    watch->moved_ms = attention_excuse(watch->moved_ms, away_ms, now_ms);
    return now_ms - watch->moved_ms;
}

uint64_t task_watch_idle_ms(struct task_watch *watch, struct task_thread *thread, uint64_t now_ms)
{
    uint64_t done;
    bool is_busy = task_thread_is_busy(thread, &done);
    bool has_moved = !is_busy || done != watch->done;
    watch->done = done;
    return task_watch_note(watch, has_moved, now_ms);
}

static struct timespec deadline(uint64_t patience_ms)
{
    uint64_t until_ms = clock_now_ms() + patience_ms;
    return (struct timespec){.tv_sec = (time_t)(until_ms / 1000),
                             .tv_nsec = (long)(until_ms % 1000) * 1000000};
}

bool task_thread_await_queued(struct task_thread *thread, uint64_t patience_ms)
{
    const struct timespec until = deadline(patience_ms);
    int error = 0;
    pthread_mutex_lock(&thread->mutex);
    const uint64_t all = thread->done + thread->is_at_work + thread->count;
    while (thread->done < all && error == 0) {
        error = pthread_cond_timedwait(&thread->moved, &thread->mutex, &until);
    }
    bool is_done = thread->done >= all;
    pthread_mutex_unlock(&thread->mutex);
    return is_done;
}

/* Whether the thread leaves in time. */
static bool await_leave(struct task_thread *thread, uint64_t patience_ms)
{
    const struct timespec until = deadline(patience_ms);
    int error = 0;
    pthread_mutex_lock(&thread->mutex);
    thread->leaves = true;
    pthread_cond_signal(&thread->changed);
    while (!thread->has_left && error == 0) {
        error = pthread_cond_timedwait(&thread->moved, &thread->mutex, &until);
    }
    bool has_left = thread->has_left;
    pthread_mutex_unlock(&thread->mutex);
    return has_left;
}

bool task_thread_destroy(struct task_thread *thread, uint64_t patience_ms)
{
    if (!await_leave(thread, patience_ms)) {
        pthread_detach(thread->thread);
        thread->before = atomic_exchange(&left_behind, thread);
        return false;
    }
    pthread_join(thread->thread, NULL);
    finish(thread);
    return true;
}
