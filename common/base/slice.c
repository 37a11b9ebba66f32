/* Sets the length of a thread's turns by sched_setattr, which the C library does not wrap. */
#include "common/base/slice.h"

#include "common/base/log.h"

#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHORT_NS 100000 // the shortest that there is

static bool get(struct sched_attr *ret_attributes)
{
    *ret_attributes = (struct sched_attr){.size = sizeof(*ret_attributes)};
    return syscall(SYS_sched_getattr, 0, ret_attributes, sizeof(*ret_attributes), 0) == 0;
}

/* Policy and nice value stay. */
static bool set(uint64_t slice_ns)
{
    struct sched_attr attributes;
    if (!get(&attributes)) {
        return false;
    }
    attributes.sched_runtime = slice_ns;
    return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

bool slice_shorten(void)
{
    if (!set(SHORT_NS)) {
        log_debug("the kernel refuses short turns: %m");
        return false;
    }
    return true;
}

uint64_t slice_of_thread(void)
{
    struct sched_attr attributes;
    return get(&attributes) ? attributes.sched_runtime : 0;
}

uint64_t slice_to_tick(void)
{
    struct timespec tick = {0};
    // Coarse clocks go on with the tick.
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0 || tick.tv_nsec <= 0) {
        return 0;
    }
    uint64_t tick_ns = (uint64_t)tick.tv_nsec;
    return (slice_of_thread() + tick_ns - 1) / tick_ns * tick_ns;
}

void slice_restore(uint64_t slice_ns)
{
    if (slice_ns > 0) {
        (void)set(slice_ns);
    }
}
