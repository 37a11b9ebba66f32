/* Shows the end of a process's log, which may say why the process ended. */
#ifndef DEPLOY_LAUNCH_LOG_TAIL_H
#define DEPLOY_LAUNCH_LOG_TAIL_H

#include <stddef.h>
#include <stdio.h>

/* Finds the last error in the last lines of the log, and writes its sentence without the line's
 * prefix. Without an error it is the last line's sentence; "" if the log is empty or cannot be
 * read. */
void log_tail_sentence(const char *path, char *ret_text, size_t text_size);

/* Prints the last lines, indented. Prints nothing if there are none. */
void log_tail_print(const char *path, FILE *stream);

#endif
