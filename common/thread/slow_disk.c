/* Runs work on a thread, and counts the turns in which the disk does nothing. */
#include "common/thread/slow_disk.h"

#include "common/base/log.h"
#include "common/thread/task_thread.h"

#include <stdio.h>

#define LOOK_MS    250 // between looks at how far it is
#define TEXT_BYTES 512

void slow_disk_describe(const char *complaint, const char *path, uint64_t idle_ms, char *ret_text,
                        size_t text_size)
{
    snprintf(ret_text, text_size, "the disk has %s %.300s for %.0f s: it is overloaded, or hangs",
             complaint, path, (double)idle_ms / 1000);
}

void slow_disk_describe_hanging(const char *complaint, const char *path, uint64_t idle_ms,
                                char *ret_text, size_t text_size)
{
    snprintf(ret_text, text_size,
             "the disk hangs: it has %s %.300s for %.0f s; look whether it is there, or its server",
             complaint, path, (double)idle_ms / 1000);
}

static void run_work(void *context, void *task)
{
    const struct slow_disk_work *work = task;
    (void)context;
    work->run(work->data);
}

/* Waits as long as the disk does something. It counts turns, and not time, so that none counts in
 * which this process stands still. */
static enum status await(const struct slow_disk_wait *wait, const struct slow_disk_work *work,
                         struct task_thread *thread)
{
    char text[TEXT_BYTES];
    uint64_t seen = 0, idle_ms = 0;
    bool is_slow = false;
    while (!task_thread_await_queued(thread, LOOK_MS)) {
        uint64_t moved = work->moved != NULL ? *work->moved : 0;
        idle_ms = moved != seen ? 0 : idle_ms + LOOK_MS;
        seen = moved;
        if (!is_slow && (double)idle_ms >= 1000 * wait->warn_s) {
            is_slow = true;
            slow_disk_describe(work->complaint, work->path, idle_ms, text, sizeof(text));
            log_warn("%s; the job waits for it", text);
        }
        if ((double)idle_ms >= 1000 * wait->fail_s) {
            slow_disk_describe_hanging(work->complaint, work->path, idle_ms, text, sizeof(text));
            log_error("%s", text);
            return STATUS_IO;
        }
        if (wait->turn != NULL && !wait->turn(wait->context)) {
            log_warn("the disk is not waited for any more: %s", work->path);
            return STATUS_INTERRUPTED;
        }
    }
    return STATUS_OK;
}

enum status slow_disk_await(const struct slow_disk_wait *wait, const struct slow_disk_work *work)
{
    const struct task_thread_options options = {
        .name = "disk", .capacity = 1, .task_bytes = sizeof(*work), .run = run_work};
    struct task_thread *thread;
    enum status status = task_thread_create(&options, &thread);
    if (status != STATUS_OK) {
        log_error("cannot start the thread that waits for the disk with %s", work->path);
        return status;
    }
    (void)task_thread_add(thread, work); // there is a place for it
    status = await(wait, work, thread);
    bool is_done = task_thread_destroy(thread, status == STATUS_OK ? UINT32_MAX : 0);
    return is_done ? STATUS_OK : status; // it may have been done at the last moment
}

bool slow_disk_is_given_up(enum status status)
{
    return status == STATUS_IO || status == STATUS_INTERRUPTED;
}
