/* Tests of the set of cores. */
#include "common/base/cores.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static void only_cores_that_this_process_may_use_count(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(cores_available(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(cores_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void who_leaves_a_core_runs_on_another_and_may_still_run_on_all(void **state)
{
    (void)state;
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    if (CPU_COUNT(&before) < 2) {
        skip(); // one core
    }
    uint32_t core = 0, times_elsewhere = 0;
    // The kernel may move it back at once, but hardly every time.
    for (int i = 0; i < 100 && times_elsewhere == 0; i++) {
        core = cores_current();
        assert_true(core < CPU_SETSIZE && CPU_ISSET(core, &before));
        assert_true(cores_leave(&core, 1));
        times_elsewhere += cores_current() != core;
    }
    assert_int_not_equal(times_elsewhere, 0);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void nobody_leaves_where_there_is_no_other_core(void **state)
{
    (void)state;
    cpu_set_t all, one;
    uint32_t cores[CPU_SETSIZE + 1], count = 0;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    for (uint32_t core = 0; core < CPU_SETSIZE; core++) {
        cores[count++] = core;
    }
    cores[count++] = CORES_UNKNOWN;
    assert_false(cores_leave(cores, count));
    const uint32_t core = cores_current();
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_false(cores_leave(&core, 1));
    assert_int_equal(cores_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void processes_of_one_boot_have_one_machine(void **state)
{
    (void)state;
    int result;
    uint64_t machine = cores_machine();
    assert_true(machine != 0);
    pid_t child = fork();
    if (child == 0) {
        _exit(cores_machine() == machine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_cores_that_this_process_may_use_count),
        cmocka_unit_test(who_leaves_a_core_runs_on_another_and_may_still_run_on_all),
        cmocka_unit_test(nobody_leaves_where_there_is_no_other_core),
        cmocka_unit_test(processes_of_one_boot_have_one_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
