/* Shows the end of a process's log, which may say why the process ended. */
#ifndef DEPLOY_LAUNCH_LOG_TAIL_H
#define DEPLOY_LAUNCH_LOG_TAIL_H

#include "common/base/fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What one process has written to a log that may have lines of others before it. */
struct log_part {
    const char *path;
    uint64_t from; // byte
};

/* Where the next process's part begins; 0: there is no such log. */
uint64_t log_tail_end(const char *path);

/* Finds the last error in the last lines of the part, and writes its sentence without the line's
 * prefix. Without an error it is the last line's sentence; "" if there are none, or the log
 * cannot be read. */
void log_tail_sentence(const struct log_part *part, char *ret_text, size_t text_size);

/* Finds the --fault by which the process says, in its last lines, that it kills itself, or stands
 * still: "rank=1,step=5,kill". False if it says no such thing. */
bool log_tail_fault(const struct log_part *part, enum fault_kind kind, char *ret_fault,
                    size_t fault_size);

/* Prints the last lines, indented, without those of our log whose sentences are in what was `said`
 * before. Prints nothing if there are none. */
void log_tail_print(const struct log_part *part, const char *said, FILE *stream);

#endif
