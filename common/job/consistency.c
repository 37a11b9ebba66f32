/* Finds the rules for updates and reads of each mode with servers. */
#include "common/job/consistency.h"

enum status consistency_find(struct mode mode, struct consistency *ret_consistency)
{
    switch (mode.kind) {
    case MODE_LOCAL:
    case MODE_RING:
        return STATUS_INVALID;
    case MODE_PS_SYNC:
        *ret_consistency = (struct consistency){UPDATE_WHEN_ALL_PUSHED, 0};
        return STATUS_OK;
    case MODE_PS_SSP:
        *ret_consistency = (struct consistency){UPDATE_ON_PUSH, mode.slack_steps};
        return STATUS_OK;
    case MODE_PS_ASYNC:
        *ret_consistency = (struct consistency){UPDATE_ON_PUSH, UINT64_MAX};
        return STATUS_OK;
    }
    return STATUS_INVALID;
}

bool consistency_may_read(const struct consistency *consistency, uint64_t params_clock,
                          uint64_t step)
{
    // params_clock + slack would wrap where the slack is unbounded.
    return step <= consistency->slack_steps || params_clock >= step - consistency->slack_steps;
}
