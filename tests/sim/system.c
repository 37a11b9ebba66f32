/* What the product asks its system: the time, its own number and host, and who is still there. In
 * the place of common/base/clock.c and common/channel/presence.c. */
#include "common/base/clock.h"
#include "common/base/slice.h"
#include "common/channel/presence.h"
#include "common/transport/transport.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <sys/types.h>

// NOLINTBEGIN(readability-identifier-naming): the linker's names
pid_t __wrap_getpid(void);
int __wrap_gethostname(char *ret_name, size_t size);

// Behind 0, which means "never" in places.
#define CLOCK_BEGINS_NS UINT64_C(1000000000)

uint64_t clock_now_ns(void)
{
    const struct sim_process *process = world_current();
    return CLOCK_BEGINS_NS + world_now_ns() + (process != NULL ? process->clock_ns : 0);
}

/* Nothing in a world takes time of a core. */
uint64_t clock_thread_ns(void)
{
    return 0;
}

uint64_t clock_process_ns(void)
{
    return 0;
}

pid_t __wrap_getpid(void)
{
    return (pid_t)world_current()->id;
}

int __wrap_gethostname(char *ret_name, size_t size)
{
    snprintf(ret_name, size, "host%u", world_current()->host);
    return 0;
}

// NOLINTEND(readability-identifier-naming)

uint64_t transport_host_id(void)
{
    return 1000 + world_current()->host;
}

enum presence presence_look(struct sighting *sighting)
{
    const struct sim_process *process = world_find((uint32_t)sighting->process_id);
    bool is_here = sighting->host_id == transport_host_id();
    if (!is_here || process == NULL) {
        return PRESENCE_UNKNOWN;
    }
    sighting->is_met = true;
    switch (process->state) {
    case PROCESS_RUNS:
        return PRESENCE_RUNS;
    case PROCESS_STOPPED:
        return PRESENCE_STOPPED;
    case PROCESS_ENDED:
        return PRESENCE_ENDED;
    }
    return PRESENCE_UNKNOWN;
}

// Turns on the cores: there are none to be shared here.
bool slice_shorten(void)
{
    return true;
}

uint64_t slice_of_thread(void)
{
    return 0;
}

void slice_restore(uint64_t slice_ns)
{
    (void)slice_ns;
}
