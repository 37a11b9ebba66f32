/* Reads numbers from text, independent of the locale. Pure. */
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

#endif
