/* Text of other hosts, made safe to show: it must not work as a command to a terminal, nor look
 * like lines of ours. Pure. */
#ifndef COMMON_BASE_PRINTABLE_H
#define COMMON_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes question marks of control characters, tabs left aside. */
void printable_make(char *text, size_t size);

/* Makes question marks of all that is no character of UTF-8, or that a page cannot show: control
 * characters, surrogates, a character that was cut. The names of folders may hold anything. */
void printable_make_utf8(char *text);

/* Whether text of this size has nothing of that. */
bool printable_is_utf8(const char *text, size_t size);

#endif
