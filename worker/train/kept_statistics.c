/* Vectors of statistics, by rank. */
#include "worker/train/kept_statistics.h"

#include <stdlib.h>

enum status kept_statistics_create(struct kept_statistics *kept, struct rank_block ranks,
                                   uint64_t count)
{
    kept_statistics_finish(kept);
    kept->values = calloc(ranks.count, count * sizeof(*kept->values));
    if (kept->values == NULL) {
        return STATUS_NO_MEMORY;
    }
    kept->ranks = ranks;
    kept->count = count;
    return STATUS_OK;
}

void kept_statistics_finish(struct kept_statistics *kept)
{
    free(kept->values);
    *kept = (struct kept_statistics){.values = NULL};
}

float *kept_statistics_at(struct kept_statistics *kept, uint32_t index)
{
    return kept->values + index * kept->count;
}

const float *kept_statistics_find(const struct kept_statistics *kept, uint32_t rank, uint64_t count,
                                  bool *ret_is_own)
{
    *ret_is_own = kept->values != NULL && rank_block_has(kept->ranks, rank);
    if (kept->values == NULL || kept->count != count) {
        return NULL;
    }
    return kept->values + (*ret_is_own ? rank - kept->ranks.first : 0) * count;
}
