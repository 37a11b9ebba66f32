/* Waits for a disk, but not for ever: it may hang, as a server of files does that is not reached. A
 * thread does what has to be done, and the caller looks how far that is. */
#ifndef COMMON_THREAD_SLOW_DISK_H
#define COMMON_THREAD_SLOW_DISK_H

#include "common/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long to wait. */
struct slow_disk_wait {
    double warn_s, fail_s;       // that the disk does nothing: it is named; it hangs
    bool (*turn)(void *context); // called several times a second meanwhile; false: the caller does
                                 // not want to wait any more. NULL: it does
    void *context;
};

/* What for. */
struct slow_disk_work {
    const char *lacks;             // what it has not done, before the path: "given nothing of"
    const char *path;              // a file or folder
    const _Atomic uint64_t *moved; // grows as it gets on; NULL: that is not known
    void (*run)(void *data);       // on the thread
    void *data;                    // the thread's until it has run
};

/* STATUS_OK: it was run. STATUS_NO_MEMORY: there is no thread for it. STATUS_IO: the disk hangs,
 * and STATUS_INTERRUPTED: the caller did not want to wait; the thread then has `data`, and `moved`,
 * until the process ends. Logs. */
enum status slow_disk_await(const struct slow_disk_wait *wait, const struct slow_disk_work *work);

/* What users are told of one that does nothing: "the disk has given nothing of PATH for 10 s: it is
 * overloaded, or hangs", and of one that is not waited for any more. Of a long path it has the
 * beginning. */
void slow_disk_describe(const char *lacks, const char *path, uint64_t idle_ms, char *ret_text,
                        size_t text_size);
void slow_disk_describe_hanging(const char *lacks, const char *path, uint64_t idle_ms,
                                char *ret_text, size_t text_size);

#endif
