/* POSIX threads as fibers: the linker's --wrap leads the product's calls here.
 *
 * A fiber is left only where it waits, so a mutex is never found locked, unless somebody waits with
 * it: then the run ends with a message instead of a deadlock. */
#include "common/base/clock.h"
#include "tests/sim/world.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// NOLINTBEGIN(readability-identifier-naming): the linker's names
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *data), void *data);
int __wrap_pthread_join(pthread_t thread, void **ret_result);
int __wrap_pthread_detach(pthread_t thread);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_sched_yield(void);

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *data), void *data)
{
    (void)attributes;
    *ret_thread = (pthread_t)(uintptr_t)world_start_fiber(run, data);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret_result)
{
    // A handle is a number to pthreads, and the fiber's address here.
    void *result = world_join_fiber((struct fiber *)thread); // NOLINT(performance-no-int-to-ptr)
    if (ret_result != NULL) {
        *ret_result = result;
    }
    return 0;
}

/* The world ends what is left of it. */
int __wrap_pthread_detach(pthread_t thread)
{
    (void)thread;
    return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread;
    (void)name;
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (pthread_mutex_trylock(mutex) == EBUSY) {
        fputs("a thread waits while it holds a mutex that another one wants\n", stderr);
        abort();
    }
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    world_wait(condition, WORLD_NEVER);
    return __wrap_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    uint64_t until_ns = (uint64_t)until->tv_sec * UINT64_C(1000000000) + (uint64_t)until->tv_nsec;
    uint64_t now_ns = clock_now_ns(); // of the process, which may differ from the world's
    pthread_mutex_unlock(mutex);
    bool is_woken =
        world_wait(condition, world_now_ns() + (until_ns > now_ns ? until_ns - now_ns : 0));
    (void)__wrap_pthread_mutex_lock(mutex);
    return is_woken ? 0 : ETIMEDOUT;
}

static int wake(const pthread_cond_t *condition, bool all)
{
    world_wake(world_current(), condition, all);
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    return wake(condition, false);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    return wake(condition, true);
}

int __wrap_sched_yield(void)
{
    world_yield();
    return 0;
}
// NOLINTEND(readability-identifier-naming)
