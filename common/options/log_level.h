/* The names of log levels, for options. */
#ifndef COMMON_OPTIONS_LOG_LEVEL_H
#define COMMON_OPTIONS_LOG_LEVEL_H

#include "common/base/log.h"
#include "common/options/options.h"

extern const struct option_choice log_level_choices[]; // ends with a row whose name is NULL

/* LOG_WARN if there is no such name. */
enum log_level log_level_find(const char *name);

#endif
