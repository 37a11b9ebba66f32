/* Tests of the command that reaches an agent through srun, and of what srun says. */
#include "deploy/hosts/srun_command.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void join(const struct srun_command *command, char *ret_line, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; command->argv[i] != NULL; i++) {
        used += (size_t)snprintf(ret_line + used, size - used, "[%s]", command->argv[i]);
    }
}

static void a_step_of_one_task_has_all_of_its_node(void **state)
{
    (void)state;
    static struct allocation allocation;
    static struct srun_command command;
    char line[2048];
    srun_command_make(&command, &allocation, "n3", "sh -c 'true'");
    join(&command, line, sizeof(line));
    assert_string_equal(line, "[srun][--nodes=1][--ntasks=1][--overlap][--whole][--mem=0]"
                              "[--cpu-bind=none][--mpi=none][--export=ALL][--quiet]"
                              "[--job-name=ringside][--nodelist=n3][sh][-c][exec sh -c 'true']");
    snprintf(allocation.gpus, sizeof(allocation.gpus), "gpu:4");
    srun_command_make(&command, &allocation, "n3", "true");
    join(&command, line, sizeof(line));
    assert_non_null(strstr(line, "[--nodelist=n3][--gres=gpu:4][sh]"));
}

static void variables_that_would_be_options_to_srun_are_dropped(void **state)
{
    (void)state;
    static const char *const dropped[] = {"SLURM_NTASKS",    "SLURM_LABELIO", "SLURM_CPUS_PER_TASK",
                                          "SLURMD_NODENAME", "SRUN_DEBUG",    "SSH_CONNECTION"};
    static const char *const kept[] = {"SLURM_CONF", "SLURM_JOB_ID", "PATH", "CUDA_VISIBLE_DEVICES",
                                       "MY_SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
        assert_true(srun_is_dropped(dropped[i]));
    }
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        assert_false(srun_is_dropped(kept[i]));
    }
}

static void what_srun_says_comes_with_what_to_do(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *said, *why, *advice;
    } cases[] = {
        {1, "srun: error: Unable to create step for job 8: Invalid generic resource (gres) x",
         "generic resource", "--gpus-per-node"},
        {1, "srun: error: Unable to create step for job 8: Requested node configuration is not x",
         "node configuration", "is n1 up"},
        {143, "slurmstepd-n1: error: *** STEP 5.0 ON n1 CANCELLED AT x DUE TO TIME LIMIT ***",
         "TIME LIMIT", "its time is over"},
        {127, "sh: 1: exec: ringside: not found", "ringside: not found", "--remote-ringside"},
        {127, "x: error while loading shared libraries: libzmq.so.5: cannot open", "libzmq.so.5",
         "n1 lacks a library"},
        {3, "", "its step of srun ended with exit code 3", "--nodelist=n1 true"},
    };
    char why[OPTION_ERROR_BYTES], advice[OPTION_ERROR_BYTES];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        link_end_explain(&srun_program, "n1", cases[i].code << 8, cases[i].said, why, advice);
        if (strstr(why, cases[i].why) == NULL || strstr(advice, cases[i].advice) == NULL) {
            fail_msg("'%s': %s; %s", cases[i].said, why, advice);
        }
    }
    link_end_explain(&srun_program, "n1", 9, "", why, advice);
    assert_string_equal(why, "srun was killed by signal 9");
}

static void lines_that_only_repeat_an_end_are_noise(void **state)
{
    (void)state;
    assert_true(srun_is_noise("srun: error: n3: task 0: Exited with exit code 127"));
    assert_true(srun_is_noise("srun: cluster configuration lacks support for cpu binding"));
    assert_false(srun_is_noise("sh: 1: exec: ringside: not found"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_one_task_has_all_of_its_node),
        cmocka_unit_test(variables_that_would_be_options_to_srun_are_dropped),
        cmocka_unit_test(what_srun_says_comes_with_what_to_do),
        cmocka_unit_test(lines_that_only_repeat_an_end_are_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
