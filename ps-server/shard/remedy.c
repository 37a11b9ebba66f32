/* The remedies, one row each. */
#include "ps-server/shard/remedy.h"

#include <string.h>

static const struct remedy remedies[] = {
    {.name = "staleness-lr", .adjust = remedy_staleness_lr},
    {.name = "dc", .lambda = 0.04f, .needs_read = true, .adjust = remedy_dc},
    {.name = "dc-adaptive",
     .lambda = 2,
     .needs_read = true,
     .needs_squares = true,
     .adjust = remedy_dc_adaptive},
    {.name = "momentum", .corrects_momentum = true},
};

enum status remedy_find(const char *name, const struct remedy **ret_remedy)
{
    if (strcmp(name, "none") == 0) {
        *ret_remedy = NULL;
        return STATUS_OK;
    }
    for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
        if (strcmp(remedies[i].name, name) == 0) {
            *ret_remedy = &remedies[i];
            return STATUS_OK;
        }
    }
    return STATUS_INVALID;
}
