/* By which processes that share memory wake each other.
 *
 * A process that goes to sleep says so before it looks again, so one of the two sees the other. */
#ifndef WORKER_EXCHANGE_SHARED_BELL_H
#define WORKER_EXCHANGE_SHARED_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In shared memory; zeroed before anybody uses it. */
struct bell {
    _Atomic uint32_t event;    // changes when there is news for sleepers
    _Atomic uint32_t sleepers; // processes that sleep, or are about to
};

/* Something changed that others may wait for: by atomic operations that are sequentially
 * consistent, as those of the bell are. */
void bell_ring(struct bell *bell);

/* Sleeps for a while, or until the bell is rung. Does not sleep if is_there(context). */
void bell_nap(struct bell *bell, bool (*is_there)(void *context), void *context);

/* Leaves the core to its other hardware thread for a moment. */
void bell_pause(void);

#endif
