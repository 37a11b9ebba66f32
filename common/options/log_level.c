/* Names the levels of the log, with a line of --help for each. */
#include "common/options/log_level.h"

#include <stddef.h>

const struct option_choice log_level_choices[] = {
    [LOG_ERROR] = {"error", "what ended the job, or this process"},
    [LOG_WARN] = {"warn", "what deserves a look"},
    [LOG_INFO] = {"info", "which processes came and went"},
    [LOG_DEBUG] = {"debug", "everything"},
    {NULL, NULL},
};
