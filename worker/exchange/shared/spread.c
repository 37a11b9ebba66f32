/* Finds cores that hold more than their share of workers. */
#include "worker/exchange/shared/spread.h"

#include "common/base/cores.h"

uint32_t spread_share(uint32_t world, uint32_t core_count)
{
    return (world + core_count - 1) / core_count;
}

static uint32_t count_on(const uint32_t *cores, uint32_t world, uint32_t core)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < world; rank++) {
        count += cores[rank] == core;
    }
    return count;
}

uint32_t spread_full_cores(const uint32_t *cores, uint32_t world, uint32_t share, uint32_t rank,
                           uint32_t *ret_full)
{
    if (cores[rank] == CORES_UNKNOWN || count_on(cores, world, cores[rank]) <= share) {
        return 0;
    }
    uint32_t full_count = 0;
    for (uint32_t i = 0; i < world; i++) {
        if (cores[i] != CORES_UNKNOWN && count_on(cores, world, cores[i]) >= share) {
            ret_full[full_count++] = cores[i];
        }
    }
    return full_count;
}
