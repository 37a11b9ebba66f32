/* Numbers in text: reads them, independent of the locale, and writes sizes. Pure. */
#ifndef COMMON_BASE_NUMBER_H
#define COMMON_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first `size` characters, which must be digits, as a number up to max. */
bool number_whole(const char *text, size_t size, uint64_t max, uint64_t *ret_value);

/* The number that a text begins with: digits, with at most one point, no sign and no exponent. How
 * many characters it has; 0 if there is none. */
size_t number_decimal(const char *text, double *ret_value);

#define NUMBER_SIZE_BYTES 32

/* A size in memory, for people: "700 bytes", "240 KiB", "4.8 MiB", "212 MiB", "1.5 GiB". */
void number_describe_size(uint64_t bytes, char ret_text[NUMBER_SIZE_BYTES]);

#endif
