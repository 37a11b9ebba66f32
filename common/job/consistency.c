/* The modes of the parameter server, one row each. */
#include "common/job/consistency.h"

#include "common/base/number.h"

#include <stddef.h>
#include <string.h>

struct row {
    struct consistency consistency;
    bool has_bound; // ":S" follows, and replaces the slack
};

static const struct row modes[] = {
    {{.mode = "ps-sync", .update = UPDATE_WHEN_ALL_PUSHED, .slack_steps = 0}, false},
    {{.mode = "ps-ssp", .update = UPDATE_ON_PUSH, .slack_steps = 0}, true},
    {{.mode = "ps-async", .update = UPDATE_ON_PUSH, .slack_steps = UINT64_MAX}, false},
};

enum status consistency_find(const char *mode, struct consistency *ret_consistency)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        const struct row *row = &modes[i];
        size_t size = strlen(row->consistency.mode);
        if (strncmp(mode, row->consistency.mode, size) != 0) {
            continue;
        }
        struct consistency found = row->consistency;
        bool is_whole = row->has_bound ? mode[size] == ':' &&
                                             number_whole(mode + size + 1, strlen(mode + size + 1),
                                                          CONSISTENCY_SLACK_MAX, &found.slack_steps)
                                       : mode[size] == '\0';
        if (is_whole) {
            *ret_consistency = found;
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
