/* The choices of --log-level. */
#ifndef COMMON_OPTIONS_LOG_LEVEL_H
#define COMMON_OPTIONS_LOG_LEVEL_H

#include "common/base/log.h"
#include "common/options/options.h"

/* By enum log_level; ends with a row whose name is NULL. */
extern const struct option_choice log_level_choices[];

#endif
