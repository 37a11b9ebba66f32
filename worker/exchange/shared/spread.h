/* Spreads the workers of one host over its cores: says which worker has to leave which core.
 *
 * The kernel puts who is woken beside its waker, and those that yield to each other stay there:
 * together they look like one busy core, so it sees nothing to balance. Four workers on two cores
 * may so begin as three and one, or as four and none, and take twice as long for a small
 * all-reduce. */
#ifndef WORKER_EXCHANGE_SHARED_SPREAD_H
#define WORKER_EXCHANGE_SHARED_SPREAD_H

#include <stdint.h>

/* Workers on a core, where `world` of them are spread evenly over so many. */
uint32_t spread_share(uint32_t world, uint32_t core_count);

/* The cores that have their share or more, which a worker is to leave or to pass by; a core may be
 * there several times. `cores` are those of all workers, CORES_UNKNOWN where they have not said it.
 * 0: the worker can stay where it is. */
uint32_t spread_full_cores(const uint32_t *cores, uint32_t world, uint32_t share, uint32_t rank,
                           uint32_t *ret_full /* (world) */);

#endif
