/* Holds back what this process sends and receives until a partition is over.
 *
 * Whose calls these are is the library's: they go to the kernel as they are. By the C library's
 * functions, ThreadSanitizer would take the library's buffers for ours, and see races between
 * threads that it does not see synchronise. */
#include "common/transport/partition.h"

#include "common/base/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// How long a thread sleeps before it looks whether the partition is over.
#define NAP_NS 5000000

static _Atomic uint64_t end_ns; // of the last partition

void partition_begin(double seconds)
{
    uint64_t until_ns = clock_now_ns() + (uint64_t)(seconds * 1e9);
    uint64_t last_ns = end_ns;
    while (last_ns < until_ns && !atomic_compare_exchange_weak(&end_ns, &last_ns, until_ns)) {
    }
}

static void await_end(void)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    while (end_ns != 0 && clock_now_ns() < end_ns) {
        nanosleep(&nap, NULL);
    }
}

ssize_t partition_send(int fd, const void *bytes, size_t size, int flags)
{
    await_end();
    return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

ssize_t partition_receive(int fd, void *bytes, size_t size, int flags)
{
    await_end();
    return syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
}
