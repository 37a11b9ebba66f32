/* Tests of which step of which process a fault strikes. */
#include "worker/disturb/faulting.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a process with these ranks is killed when it is about to make a step that counts from 1.
 */
static bool is_killed(const char *text, struct rank_block ranks, uint64_t step)
{
    struct job job = {.workers = 8};
    struct faulting faulting;
    int result;
    snprintf(job.faults, sizeof(job.faults), "%s", text);
    faulting_init(&faulting, &job, ranks);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(faulting_strike(&faulting, step - 1) == STATUS_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result) || WTERMSIG(result) == SIGKILL);
    assert_true(WIFSIGNALED(result) || WEXITSTATUS(result) == 0);
    return WIFSIGNALED(result);
}

static void the_process_that_carries_the_rank_is_struck_before_its_step(void **state)
{
    (void)state;
    static const char text[] = "rank=2,step=3,kill";
    assert_true(is_killed(text, (struct rank_block){2, 1}, 3));
    assert_true(is_killed(text, (struct rank_block){0, 4}, 3));
    assert_false(is_killed(text, (struct rank_block){2, 1}, 2));
    assert_false(is_killed(text, (struct rank_block){2, 1}, 4));
    assert_false(is_killed(text, (struct rank_block){3, 1}, 3));
    assert_false(is_killed(text, (struct rank_block){0, 2}, 3));
    assert_false(is_killed("shard=2,step=3,kill", (struct rank_block){2, 1}, 3));
    assert_false(is_killed("none", (struct rank_block){0, 4}, 3));
}

static void kills_at_one_step_strike_one_after_the_other(void **state)
{
    (void)state;
    static const char text[] = "rank=0,step=3,kill;rank=1,step=3,kill";
    assert_true(is_killed(text, (struct rank_block){0, 1}, 3));
    assert_false(is_killed(text, (struct rank_block){1, 1}, 3));
}

static void a_process_goes_on_after_a_stop(void **state)
{
    (void)state;
    assert_false(is_killed("rank=1,step=3,stop=0.01s", (struct rank_block){1, 1}, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_that_carries_the_rank_is_struck_before_its_step),
        cmocka_unit_test(kills_at_one_step_strike_one_after_the_other),
        cmocka_unit_test(a_process_goes_on_after_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
