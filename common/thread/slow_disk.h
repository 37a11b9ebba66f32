/* Waits for a disk with a bound: it may hang, like a file server that cannot be reached. A thread
 * does the work, and the caller watches whether it gets on. */
#ifndef COMMON_THREAD_SLOW_DISK_H
#define COMMON_THREAD_SLOW_DISK_H

#include "common/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long to wait. */
struct slow_disk_wait {
    double warn_s;               // seconds without progress after which a warning names the disk
    double fail_s;               // seconds without progress after which it counts as hanging
    bool (*turn)(void *context); // called several times a second meanwhile; false: the caller does
                                 // not want to wait any more. NULL: it does
    void *context;               // of the turn
};

/* What to wait for. */
struct slow_disk_work {
    const char *complaint;         // between "the disk has" and the path: "given nothing of"
    const char *path;              // a file or folder
    const _Atomic uint64_t *moved; // grows as the work gets on; NULL: nothing shows that
    void (*run)(void *data);       // on the thread
    void *data;                    // the thread's until it has run
};

/* Waits until the work was run: STATUS_OK. STATUS_NO_MEMORY: there is no thread for it. STATUS_IO:
 * the disk hangs. STATUS_INTERRUPTED: a turn did not want to wait. Logs. */
enum status slow_disk_await(const struct slow_disk_wait *wait, const struct slow_disk_work *work);

/* Whether that status of slow_disk_await leaves `data` and `moved` to the thread until the process
 * ends, since the disk may still go on. */
bool slow_disk_is_given_up(enum status status);

/* What users are told of a disk that does nothing: "the disk has given nothing of PATH for 10 s: it
 * is overloaded, or hangs", and of one that is not waited for any more. A long path is cut. */
void slow_disk_describe(const char *complaint, const char *path, uint64_t idle_ms, char *ret_text,
                        size_t text_size);
void slow_disk_describe_hanging(const char *complaint, const char *path, uint64_t idle_ms,
                                char *ret_text, size_t text_size);

#endif
