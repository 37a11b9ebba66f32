/* Spreads the workers of one host over its cores: decides which worker has to leave which core.
 *
 * The kernel puts a woken thread next to its waker, and threads that yield to each other stay
 * there: together they look like one busy core, so the kernel sees nothing to balance. Four workers
 * on two cores may begin as three and one, or as four and none, and then take twice as long for a
 * small all-reduce. */
#ifndef WORKER_EXCHANGE_SHARED_SPREAD_H
#define WORKER_EXCHANGE_SHARED_SPREAD_H

#include <stdint.h>

/* How many workers a core has if `world` of them are spread evenly over `core_count` cores. */
uint32_t spread_share(uint32_t world, uint32_t core_count);

/* Lists the cores that have their share or more, which a worker has to leave or avoid; a core may
 * be listed several times. `cores` has the core of each worker, CORES_UNKNOWN if it has not said
 * it. Returns 0 if the worker can stay where it is. */
uint32_t spread_full_cores(const uint32_t *cores, uint32_t world, uint32_t share, uint32_t rank,
                           uint32_t *ret_full /* (world) */);

#endif
