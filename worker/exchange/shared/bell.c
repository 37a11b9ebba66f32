/* Wakes and sleeps by futexes. */
#include "worker/exchange/shared/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAP_MS 100 // longest sleep before a waiter asks whether the job is over

#if defined(__x86_64__)
void bell_pause(void)
{
    __builtin_ia32_pause();
}
#else
void bell_pause(void)
{
}
#endif

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void bell_ring(struct bell *bell)
{
    if (atomic_load(&bell->sleepers) > 0) {
        atomic_fetch_add(&bell->event, 1);
        (void)futex(&bell->event, FUTEX_WAKE, INT_MAX, NULL);
    }
}

void bell_nap(struct bell *bell, bool (*is_there)(void *context), void *context)
{
    static const struct timespec timeout = {.tv_nsec = NAP_MS * 1000000L};
    atomic_fetch_add(&bell->sleepers, 1);
    uint32_t seen = atomic_load(&bell->event);
    if (!is_there(context)) {
        // The kernel compares again, so no event in between is missed.
        (void)futex(&bell->event, FUTEX_WAIT, seen, &timeout);
    }
    atomic_fetch_sub(&bell->sleepers, 1);
}
