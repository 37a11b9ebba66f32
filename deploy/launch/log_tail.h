/* Shows people the end of a process's log, which may say why the process has ended. */
#ifndef DEPLOY_LAUNCH_LOG_TAIL_H
#define DEPLOY_LAUNCH_LOG_TAIL_H

#include <stddef.h>
#include <stdio.h>

/* The sentence of the last error in the last lines of the log, without the line's prefix; that of
 * the last line if there is no error. "" if the log is empty or cannot be read. */
void log_tail_sentence(const char *path, char *ret_text, size_t text_size);

/* Prints its last lines, indented; nothing if there are none. */
void log_tail_print(const char *path, FILE *stream);

#endif
