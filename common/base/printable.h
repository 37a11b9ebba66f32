/* Text of other hosts, made safe to show: it must not work as a command to a terminal, nor look
 * like lines of ours. Pure. */
#ifndef COMMON_BASE_PRINTABLE_H
#define COMMON_BASE_PRINTABLE_H

#include <stddef.h>

/* Makes question marks of control characters, tabs left aside. */
void printable_make(char *text, size_t size);

#endif
