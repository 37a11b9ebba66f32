/* Tests of what is seen of a process: one that waits, that is stopped, that has ended. */
#include "common/channel/presence.h"
#include "common/transport/transport.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that waits until it is killed. */
static pid_t start_child(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    return pid;
}

static void wait_until(pid_t pid, int options)
{
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, options), 0);
}

static struct sighting sighting_of(pid_t pid)
{
    return (struct sighting){.host_id = transport_host_id(), .process_id = (uint64_t)pid};
}

static void a_process_runs_until_it_is_stopped_and_again_when_it_goes_on(void **state)
{
    (void)state;
    pid_t pid = start_child();
    struct sighting sighting = sighting_of(pid);
    assert_int_equal(presence_look(&sighting), PRESENCE_RUNS);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    wait_until(pid, WSTOPPED | WNOWAIT);
    assert_int_equal(presence_look(&sighting), PRESENCE_STOPPED);
    assert_int_equal(kill(pid, SIGCONT), 0);
    wait_until(pid, WCONTINUED);
    assert_int_equal(presence_look(&sighting), PRESENCE_RUNS);
    assert_int_equal(kill(pid, SIGKILL), 0);
    wait_until(pid, WEXITED);
}

static void a_process_that_was_killed_has_ended_before_and_after_it_is_waited_for(void **state)
{
    (void)state;
    pid_t pid = start_child();
    struct sighting sighting = sighting_of(pid);
    assert_int_equal(presence_look(&sighting), PRESENCE_RUNS);
    assert_int_equal(kill(pid, SIGKILL), 0);
    wait_until(pid, WEXITED | WNOWAIT);
    assert_int_equal(presence_look(&sighting), PRESENCE_ENDED);
    wait_until(pid, WEXITED);
    assert_int_equal(presence_look(&sighting), PRESENCE_ENDED);
}

static void another_process_with_the_same_number_is_not_the_one(void **state)
{
    (void)state;
    struct sighting sighting = sighting_of(getpid());
    assert_int_equal(presence_look(&sighting), PRESENCE_RUNS);
    sighting.began++;
    assert_int_equal(presence_look(&sighting), PRESENCE_ENDED);
}

static void of_a_process_that_was_never_seen_nothing_is_known(void **state)
{
    (void)state;
    struct sighting sighting = sighting_of(getpid());
    sighting.host_id++;
    assert_int_equal(presence_look(&sighting), PRESENCE_UNKNOWN);
    assert_int_equal(presence_look(&sighting), PRESENCE_UNKNOWN);
    struct sighting none = sighting_of(0);
    assert_int_equal(presence_look(&none), PRESENCE_UNKNOWN);
    assert_int_equal(presence_look(&none), PRESENCE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_runs_until_it_is_stopped_and_again_when_it_goes_on),
        cmocka_unit_test(a_process_that_was_killed_has_ended_before_and_after_it_is_waited_for),
        cmocka_unit_test(another_process_with_the_same_number_is_not_the_one),
        cmocka_unit_test(of_a_process_that_was_never_seen_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
