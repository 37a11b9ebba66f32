/* Says what an option of a job chooses in words, for tables, legends and sentences. Pure. */
#ifndef DEPLOY_SWEEP_RUN_WORDS_H
#define DEPLOY_SWEEP_RUN_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_WORDS_BYTES 256

/* "order", "seeded:constant:4" -> "staleness 4"; "workers", "4" -> "4 workers". Options without
 * words of their own are "NAME VALUE". Cut between two characters where it is too long. */
void run_words_of_option(const char *name, const char *value, char ret_words[RUN_WORDS_BYTES]);

/* The label of a sweep's setting: "workers=4 mode=ring" -> "ring, 4 workers": the mode
 * first, without the option `but` (NULL: all). "" if nothing is left. */
void run_words_of_label(const char *label, const char *but, char ret_words[RUN_WORDS_BYTES]);

/* Appends to a list of words, after a comma if there are any. */
void run_words_append(char list[RUN_WORDS_BYTES], const char *more);

/* Cuts text at a size, "..." included, without cutting a character of UTF-8 in two. */
void run_words_cut(char *text, size_t size);

#endif
