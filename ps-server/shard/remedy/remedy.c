/* The remedies, one row each. */
#include "ps-server/shard/remedy/remedy.h"

#include <stddef.h>

static const struct remedy remedies[] = {
    [REMEDY_STALENESS_LR] = {.adjust = remedy_staleness_lr},
    [REMEDY_DC] = {.lambda = 0.04f, .needs_read = true, .adjust = remedy_dc},
    [REMEDY_DC_ADAPTIVE] = {.lambda = 2,
                            .needs_read = true,
                            .needs_squares = true,
                            .adjust = remedy_dc_adaptive},
    [REMEDY_MOMENTUM] = {.corrects_momentum = true},
};

const struct remedy *remedy_of(enum remedy_kind kind)
{
    return kind != REMEDY_NONE ? &remedies[kind] : NULL;
}
