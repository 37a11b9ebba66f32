/* Writes log lines on a thread of its own: standard error may be a file on a disk that hangs.
 *
 * Whoever logs waits until its line is written, as without the thread, but not for long. So a
 * process that crashes has its last lines written, and one whose log hangs goes on. Then lines
 * wait, a limited number of them, and those that do not fit are counted in the log. */
#ifndef COMMON_THREAD_LOG_THREAD_H
#define COMMON_THREAD_LOG_THREAD_H

#include "common/base/status.h"

#include <stdbool.h>

/* For the whole process, once. STATUS_NO_MEMORY: lines are written as before. */
enum status log_thread_begin(void);

/* Writes what waits, if that does not take long. False: it does, and no more lines are written.
 * Without effect where it was not begun. Other threads may log meanwhile, such as one that has
 * outlasted a disk that hangs. */
bool log_thread_end(void);

#endif
