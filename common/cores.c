/* Counting processor cores. */
#include "common/cores.h"

#include <sched.h>
#include <unistd.h>

uint32_t cores_available(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    // On a machine with more cores than the set has room for it fails.
    long count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                              : sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
}
