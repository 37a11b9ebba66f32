/* Tests of short turns on a core. */
#include "common/base/slice.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

static void a_turn_becomes_short_and_nothing_else_changes(void **state)
{
    (void)state;
    int nice = getpriority(PRIO_PROCESS, 0);
    nice += nice < 19;
    assert_int_equal(setpriority(PRIO_PROCESS, 0, nice), 0);
    int policy = sched_getscheduler(0);
    uint64_t before = slice_of_thread();
    assert_true(slice_shorten());
    assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
    assert_int_equal(sched_getscheduler(0), policy);
    if (before == 0) {
        skip(); // a kernel before 6.12 has turns of one length
    }
    assert_int_equal(slice_of_thread(), 100000);
    slice_restore(before);
    slice_restore(0);
    assert_int_equal(slice_of_thread(), before);
}

static void a_thread_keeps_a_core_to_the_end_of_a_tick(void **state)
{
    (void)state;
    struct timespec tick;
    uint64_t before = slice_of_thread();
    if (before == 0) {
        assert_int_equal(slice_to_tick(), 0);
        skip(); // a kernel before 6.12
    }
    assert_int_equal(clock_getres(CLOCK_MONOTONIC_COARSE, &tick), 0);
    uint64_t tick_ns = (uint64_t)tick.tv_nsec;
    assert_int_equal(slice_to_tick() % tick_ns, 0);
    assert_true(slice_to_tick() >= before && slice_to_tick() < before + tick_ns);
    assert_true(slice_shorten());
    assert_int_equal(slice_to_tick(), (100000 + tick_ns - 1) / tick_ns * tick_ns);
    slice_restore(before);
}

static void *note_slice(void *data)
{
    *(uint64_t *)data = slice_of_thread();
    return NULL;
}

static void threads_inherit_it_until_it_is_restored(void **state)
{
    (void)state;
    uint64_t before = slice_of_thread(), of_first = 0, of_second = 0;
    if (before == 0) {
        skip(); // a kernel before 6.12
    }
    pthread_t thread;
    assert_true(slice_shorten());
    assert_int_equal(pthread_create(&thread, NULL, note_slice, &of_first), 0);
    pthread_join(thread, NULL);
    slice_restore(before);
    assert_int_equal(pthread_create(&thread, NULL, note_slice, &of_second), 0);
    pthread_join(thread, NULL);
    assert_int_equal(of_first, 100000);
    assert_int_equal(of_second, before);
    assert_int_equal(slice_of_thread(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_becomes_short_and_nothing_else_changes),
        cmocka_unit_test(a_thread_keeps_a_core_to_the_end_of_a_tick),
        cmocka_unit_test(threads_inherit_it_until_it_is_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
