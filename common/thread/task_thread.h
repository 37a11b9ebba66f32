/* A thread that runs tasks one after the other, so that whoever hands them over does not wait for
 * what they wait for, such as a disk that hangs. The queue of tasks is bounded. */
#ifndef COMMON_THREAD_TASK_THREAD_H
#define COMMON_THREAD_TASK_THREAD_H

#include "common/base/attention.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task_thread;

struct task_thread_options {
    const char *name;  // of the thread; up to 15 characters. Borrowed until it is created
    uint32_t capacity; // of the queue, in tasks
    uint32_t places;   // of those, that there is memory for from the beginning; 0: for all
    size_t task_bytes; // of a task, which is copied
    void (*run)(void *context, void *task); // on the thread; ends what the task owns
    void *context;                          // borrowed until the thread has ended
};

/* STATUS_NO_MEMORY: the thread could not be started. */
enum status task_thread_create(const struct task_thread_options *options,
                               struct task_thread **ret_thread);

/* Runs what is queued first, for which it gets so many milliseconds. False: that was not enough,
 * and the thread stays with it until the process ends, and with what its context has. */
bool task_thread_destroy(struct task_thread *thread, uint64_t patience_ms);

/* Queues a copy. False: the queue is full, or there is no memory for more places, and the task
 * stays the caller's. */
bool task_thread_add(struct task_thread *thread, const void *task);

/* How many tasks there is room for. Only the caller's own thread takes some of it. */
uint32_t task_thread_room(struct task_thread *thread);

/* Whether a task is queued or being run. *ret_done (may be NULL): how many were run so far. */
bool task_thread_is_busy(struct task_thread *thread, uint64_t *ret_done);

/* Since when a thread stands still. Zeroed before the first look. */
struct task_watch {
    uint64_t done, moved_ms; // tasks, and when that changed last, or there were none
    struct attention attention;
};

/* Several times a second: for how many milliseconds the thread has been at the same task; 0: it has
 * none, or has begun another one since the last look. Time in which nobody has looked does not
 * count: when this process stood still the thread did, too. */
uint64_t task_watch_idle_ms(struct task_watch *watch, struct task_thread *thread, uint64_t now_ms);

/* The same, of a thread whose owner knows whether it has moved since the last look, or has nothing
 * to do. */
uint64_t task_watch_note(struct task_watch *watch, bool has_moved, uint64_t now_ms);

/* Waits until what is queued now was run, for so many milliseconds at most; whether that was
 * enough. What others queue meanwhile is not waited for. */
bool task_thread_await_queued(struct task_thread *thread, uint64_t patience_ms);

#endif
