/* Sets how long a thread's turn on a core is. */
#ifndef COMMON_BASE_SLICE_H
#define COMMON_BASE_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/* Gives the calling thread short turns, and so early ones. This is for a thread that moves messages
 * over a network beside threads that compute. The kernel lets it run soon after it is woken,
 * instead of at the end of a computing thread's turn, and the link is not idle meanwhile. It gets
 * no more of a core than before, and one that yields in a loop gets less, so it has to sleep when
 * it waits.
 *
 * Threads that it starts from then on inherit that. Linux 6.12 and later (sched_setattr(2): the
 * slice of fair tasks); others ignore it. False if the kernel refuses, which is logged at level
 * debug. */
bool slice_shorten(void);

/* Of the calling thread, in nanoseconds; 0 if the kernel does not say. */
uint64_t slice_of_thread(void);

/* For how long the calling thread keeps a core for which others of its kind wait, in nanoseconds:
 * its slice, to the end of the tick in which that ends. 0 if the kernel does not say. */
uint64_t slice_to_tick(void);

/* Back to what slice_of_thread said; 0 changes nothing. */
void slice_restore(uint64_t slice_ns);

#endif
