/* Names of algorithms. */
#include "common/all_reduce.h"

#include <string.h>

static const char *const names[ALL_REDUCE_COUNT] = {
    [ALL_REDUCE_RING] = "ring",
    [ALL_REDUCE_DIRECT] = "direct",
};

const char *all_reduce_name(enum all_reduce algorithm)
{
    return names[algorithm];
}

bool all_reduce_find(const char *name, enum all_reduce *ret_algorithm)
{
    for (unsigned i = 0; i < ALL_REDUCE_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret_algorithm = (enum all_reduce)i;
            return true;
        }
    }
    return false;
}
