/* Puts a queue between the log and standard error. */
#include "common/thread/log_thread.h"

#include "common/base/log.h"
#include "common/thread/task_thread.h"

#include <errno.h>
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
static struct task_thread *thread; // NULL: not begun
static atomic_bool is_slow;        // a line has waited in vain
static atomic_uint lost;           // lines for which there was no place

static void write_line(void *context, void *task)
{
    const struct line *line = task;
    (void)context;
    while (write(STDERR_FILENO, line->text, line->size) < 0 && errno == EINTR) {
    } // any other failure: there is nowhere to say that standard error is gone
    free(line->text);
}

static bool queue(const char *text, size_t size)
{
    struct line line = {malloc(size), size};
    if (line.text == NULL) {
        return false;
    }
    memcpy(line.text, text, size);
    if (!task_thread_add(thread, &line)) {
        free(line.text);
        return false;
    }
    return true;
}

static void take_line(const char *text, size_t size)
{
    unsigned missing = task_thread_room(thread) > 1 ? atomic_exchange(&lost, 0) : 0;
    if (missing > 0) { // comes here again
        log_warn("%u lines of the log are missing here: what it is written to took nothing",
                 missing);
    }
    if (!queue(text, size)) {
        lost++;
        return;
    }
    if (is_slow && task_thread_is_busy(thread, NULL)) {
        return;
    }
    is_slow = !task_thread_await_queued(thread, WAIT_MS);
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
    enum status status = task_thread_create(&options, &thread);
    if (status == STATUS_OK) {
        log_write_by(take_line);
    }
    return status;
}

void log_thread_end(void)
{
    if (thread == NULL) {
        return;
    }
    log_write_by(drop_line);
    if (task_thread_destroy(thread, WAIT_MS)) {
        log_write_by(NULL);
    }
    thread = NULL;
}
