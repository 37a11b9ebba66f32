/* A word of a command that people paste into a shell. Pure. */
#ifndef COMMON_BASE_SHELL_WORD_H
#define COMMON_BASE_SHELL_WORD_H

#include <stddef.h>

/* The text as a shell takes it whole: bare if nothing in it means anything to a shell, otherwise in
 * single quotes. Cut at word_size, which is at least 8; its quotes are closed then, too. */
void shell_word_quote(const char *text, char *ret_word, size_t word_size);

#endif
