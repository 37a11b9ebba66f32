/* Writes values of options, for --help, errors and the text of a job. Private to the options. */
#ifndef COMMON_OPTIONS_OPTIONS_FORMAT_H
#define COMMON_OPTIONS_OPTIONS_FORMAT_H

#include "common/options/options.h"

#include <locale.h>
#include <stddef.h>

#define OPTION_RANGE_BYTES     64
#define OPTION_VARIABLE_PREFIX "RINGSIDE_"

/* Numbers look the same in every locale: they are read and written between this and a
 * uselocale(what it returned). */
locale_t options_enter_plain_locale(void);

/* "1 to 4096", for a row of numbers. */
void option_format_range(const struct option *row, char *ret_text, size_t text_size);

#endif
