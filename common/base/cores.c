/* Reads and changes the set of cores that a thread may run on. */
#include "common/base/cores.h"

#include <fcntl.h>
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

uint64_t cores_machine(void)
{
    char text[64];
    uint64_t digest = 0;
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, text, sizeof(text)) : 0;
    if (file >= 0) {
        close(file);
    }
    for (ssize_t i = 0; i < size; i++) {
        digest = (digest ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3); // FNV-1a
    }
    return digest;
}

uint32_t cores_current(void)
{
    int core = sched_getcpu();
    return core >= 0 ? (uint32_t)core : CORES_UNKNOWN;
}

bool cores_leave(const uint32_t *cores, uint32_t count)
{
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return false;
    }
    cpu_set_t others = allowed;
    for (uint32_t i = 0; i < count; i++) {
        if (cores[i] < CPU_SETSIZE) {
            CPU_CLR(cores[i], &others);
        }
    }
    if (CPU_COUNT(&others) == 0) {
        return false;
    }
    bool has_left = sched_setaffinity(0, sizeof(others), &others) == 0;
    // From here on it may run where it might before.
    return sched_setaffinity(0, sizeof(allowed), &allowed) == 0 && has_left;
}

bool cores_leave_to(pid_t process, uint32_t count)
{
    cpu_set_t allowed, chosen;
    CPU_ZERO(&allowed);
    CPU_ZERO(&chosen);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return false;
    }
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        bool has_enough = count > 0 && CPU_COUNT(&chosen) == (int)count;
        if (CPU_ISSET(core, &allowed) && !has_enough) {
            CPU_SET(core, &chosen);
        }
    }
    return sched_setaffinity(process, sizeof(chosen), &chosen) == 0;
}
