/* Names of log levels. */
#include "common/options/log_level.h"

#include <stddef.h>
#include <string.h>

const struct option_choice log_level_choices[] = {
    [LOG_ERROR] = {"error", "what ended the job, or this process"},
    [LOG_WARN] = {"warn", "what somebody should look at"},
    [LOG_INFO] = {"info", "who came and went"},
    [LOG_DEBUG] = {"debug", "everything"},
    {NULL, NULL},
};

enum log_level log_level_find(const char *name)
{
    for (unsigned i = 0; log_level_choices[i].name != NULL; i++) {
        if (strcmp(log_level_choices[i].name, name) == 0) {
            return (enum log_level)i;
        }
    }
    return LOG_WARN;
}
