/* The modes of the parameter server, one row each. */
#include "common/consistency.h"

#include <stddef.h>
#include <string.h>

static const struct consistency modes[] = {
    {.mode = "ps-sync", .update = UPDATE_WHEN_ALL_PUSHED, .slack_steps = 0},
};

enum status consistency_find(const char *mode, struct consistency *ret_consistency)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(modes[i].mode, mode) == 0) {
            *ret_consistency = modes[i];
            return STATUS_OK;
        }
    }
    return STATUS_INVALID;
}

bool consistency_may_read(const struct consistency *consistency, uint64_t params_clock,
                          uint64_t step)
{
    // params_clock + slack would wrap where the slack is unbounded.
    return step <= consistency->slack_steps || params_clock >= step - consistency->slack_steps;
}
