/* The modes of the parameter server, one row each. */
#include "common/consistency.h"

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

/* A decimal number up to the limit, and nothing behind it. */
static bool parse_bound(const char *text, uint64_t *ret_bound)
{
    uint64_t bound = 0;
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        bound = 10 * bound + (uint64_t)(*text - '0');
        if (bound > CONSISTENCY_SLACK_MAX) {
            return false;
        }
    }
    *ret_bound = bound;
    return true;
}

enum status consistency_find(const char *mode, struct consistency *ret_consistency)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        const struct row *row = &modes[i];
        size_t size = strlen(row->consistency.mode);
        if (strncmp(mode, row->consistency.mode, size) != 0) {
            continue;
        }
        struct consistency found = row->consistency;
        bool is_whole = row->has_bound
                            ? mode[size] == ':' && parse_bound(mode + size + 1, &found.slack_steps)
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
