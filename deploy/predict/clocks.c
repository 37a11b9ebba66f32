/* Looks at all clocks only when the last of the slowest goes on. */
#include "deploy/predict/clocks.h"

#include <stdlib.h>

bool clocks_init(struct clocks *clocks, uint32_t count)
{
    *clocks = (struct clocks){.count = count, .slowest_count = count};
    clocks->steps = calloc(count, sizeof(*clocks->steps));
    return clocks->steps != NULL;
}

void clocks_finish(struct clocks *clocks)
{
    free(clocks->steps);
}

bool clocks_advance(struct clocks *clocks, uint32_t worker)
{
    if (clocks->steps[worker]++ != clocks->slowest || --clocks->slowest_count > 0) {
        return false;
    }
    clocks->slowest = UINT64_MAX;
    for (uint32_t i = 0; i < clocks->count; i++) {
        if (clocks->steps[i] < clocks->slowest) {
            clocks->slowest = clocks->steps[i];
            clocks->slowest_count = 0;
        }
        clocks->slowest_count += clocks->steps[i] == clocks->slowest;
    }
    return true;
}
