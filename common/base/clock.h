/* Time: monotonic nanoseconds for durations. Pure code gets it as an argument. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_now_ns(void);

/* How long cores have worked for the calling thread, and for all threads of its process. */
uint64_t clock_thread_ns(void);
uint64_t clock_process_ns(void);

static inline uint64_t clock_now_ms(void)
{
    return clock_now_ns() / 1000000;
}

#endif
