/* Shows the end of a process's log, which may say why the process ended. */
#ifndef DEPLOY_LAUNCH_LOG_TAIL_H
#define DEPLOY_LAUNCH_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Finds the last error in the last lines of the log, and writes its sentence without the line's
 * prefix. Without an error it is the last line's sentence; "" if the log is empty or cannot be
 * read. */
void log_tail_sentence(const char *path, char *ret_text, size_t text_size);

/* Finds the --fault by which the process says, in its last lines, that it kills itself:
 * "rank=1,step=5,kill". False if it says no such thing. */
bool log_tail_fault(const char *path, char *ret_fault, size_t fault_size);

/* Prints the last lines, indented. Prints nothing if there are none. */
void log_tail_print(const char *path, FILE *stream);

#endif
