/* The rate over the staleness (Zhang, Gupta, Lian and Liu 2015): a gradient that is tau updates old
 * counts 1/tau, one that is fresh counts whole. */
#include "ps-server/shard/remedy/remedy.h"

void remedy_staleness_lr(const struct remedy_block *block)
{
    float factor = 1.0f / (float)(block->staleness > 0 ? block->staleness : 1);
    for (size_t i = 0; i < block->count; i++) {
        block->result[i] = factor * block->gradient[i];
    }
}
