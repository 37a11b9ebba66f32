/* Reads the system's clocks. */
#include "common/base/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_day_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

uint64_t clock_thread_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_process_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}
