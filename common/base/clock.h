/* Time: monotonic nanoseconds for durations, and the time of day. Pure code gets it as an argument.
 */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_now_ns(void);

/* Nanoseconds since 1970, as hosts, files and people have the time. It may be set, also back. */
uint64_t clock_day_ns(void);

/* How long cores have worked for the calling thread, and for all threads of its process. */
uint64_t clock_thread_ns(void);
uint64_t clock_process_ns(void);

static inline uint64_t clock_now_ms(void)
{
    return clock_now_ns() / 1000000;
}

#endif
