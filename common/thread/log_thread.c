/* Puts a queue between the log and standard error. */
#include "common/thread/log_thread.h"

#include "common/base/log.h"
#include "common/thread/task_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_MAX 256
#define WAIT_MS   200 // for a line, unless the one before has waited in vain

struct line {
    char *text; // (size), owned
    size_t size;
};

// Of the log, which belongs to the whole process.
static struct task_thread *_Atomic thread; // NULL: not begun, or it ends
static atomic_bool is_slow;                // a line has waited in vain
static atomic_uint lost;                   // lines for which there was no place

// For reading while the thread is used. Who logs comes here again, so readers do not wait for a
// writer that waits, as is the default.
static pthread_rwlock_t in_use = PTHREAD_RWLOCK_INITIALIZER;

/* Any failure but an interruption: there is nowhere to say that standard error is gone. */
static void write_text(const char *text, size_t size)
{
    while (write(STDERR_FILENO, text, size) < 0 && errno == EINTR) {
    }
}

static void write_line(void *context, void *task)
{
    const struct line *line = task;
    (void)context;
    write_text(line->text, line->size);
    free(line->text);
}

static bool queue(struct task_thread *to, const char *text, size_t size)
{
    struct line line = {malloc(size), size};
    if (line.text == NULL) {
        return false;
    }
    memcpy(line.text, text, size);
    if (!task_thread_add(to, &line)) {
        free(line.text);
        return false;
    }
    return true;
}

static void tell_lost(void)
{
    unsigned missing = atomic_exchange(&lost, 0);
    if (missing > 0) {
        log_warn("%u lines of the log are missing here: what it is written to took nothing",
                 missing);
    }
}

static void hand_over(struct task_thread *to, const char *text, size_t size)
{
    if (task_thread_room(to) > 1) {
        tell_lost(); // comes here again
    }
    if (!queue(to, text, size)) {
        lost++;
        return;
    }
    if (is_slow && task_thread_is_busy(to, NULL)) {
        return;
    }
    is_slow = !task_thread_await_queued(to, WAIT_MS);
}

static void take_line(const char *text, size_t size)
{
    struct task_thread *to = thread;
    if (to != NULL) { // otherwise those who log all the time would keep the end waiting
        pthread_rwlock_rdlock(&in_use);
        to = thread;
        if (to != NULL) {
            hand_over(to, text, size);
        }
        pthread_rwlock_unlock(&in_use);
    }
    if (to == NULL) {
        write_text(text, size);
    }
}

static void drop_line(const char *text, size_t size)
{
    (void)text;
    (void)size;
}

enum status log_thread_begin(void)
{
    const struct task_thread_options options = {
        .name = "log", .capacity = LINES_MAX, .task_bytes = sizeof(struct line), .run = write_line};
    struct task_thread *begun;
    enum status status = task_thread_create(&options, &begun);
    if (status == STATUS_OK) {
        thread = begun;
        log_write_by(take_line);
    }
    return status;
}

bool log_thread_end(void)
{
    struct task_thread *ended = atomic_exchange(&thread, NULL);
    if (ended == NULL) {
        return true;
    }
    pthread_rwlock_wrlock(&in_use); // nobody has it any more
    pthread_rwlock_unlock(&in_use);
    bool is_written = task_thread_destroy(ended, WAIT_MS);
    log_write_by(is_written ? NULL : drop_line);
    if (is_written) {
        tell_lost();
    }
    return is_written;
}
