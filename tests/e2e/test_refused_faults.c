/* End to end: --fault names what the job has, or the job does not begin. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What jobs here have in common, and how long most of them are. */
#define SMALL \
    "--workers", "3", "--batch", "4", "--data", "synthetic", "--device", "ref", "--eval", "end"
#define COMMON SMALL, "--steps", "6"

static void what_cannot_strike_is_refused_before_the_job(void **state)
{
    (void)state;
    static const char *const refused[][3] = {
        {"ring", "rank=7,step=3,kill", "--fault rank=7,step=3,kill: the job has 3 ranks"},
        {"ring", "rank=1,step=7,kill", "never comes: the job has 6 steps"},
        {"ring", "shard=0,step=3,kill", "--fault would do nothing here"},
        {"local", "rank=1,step=3,kill", "--fault would do nothing here"},
        {"ps-sync", "shard=1,step=3,kill", "the job has one shard"},
        {"ps-sync", "rank=1,step=3,faint", "it must end with kill, stop=5s or partition=5s"},
        {"ring", "rank=1,step=3,partition=1s", "share memory, which is no network"},
        {"ring", "after=step:3,join", "each join needs the kill of a rank before it"},
        {"local", "after=step:3,join", "--fault would do nothing here"},
    };
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct program_run run = {.announce_fd = -1};
        const char *const args[] = {"run",     COMMON,        "--mode", refused[i][0],
                                    "--fault", refused[i][1], NULL};
        program_start(&run, folder, "deploy/ringside", false, args, NULL);
        assert_int_equal(program_wait(&run), 2);
        if (strstr(program_output(&run), refused[i][2]) == NULL) {
            fail_msg("'%s' is not in: %s", refused[i][2], program_output(&run));
        }
    }
    programs_remove_folder(folder);
}

/* How many steps there are follows from the data: a worker that is tried knows. */
static void a_step_behind_the_last_epoch_is_refused_before_the_job(void **state)
{
    (void)state;
    static const char *const commands[][4] = {
        {"run", "--mode", "--fault", "rank=1,step=21,kill"},
        {"compare", "--modes", "--fault", "rank=1,step=21,kill"},
        {"sweep", "--mode", "--grid", "fault=none|rank=1,step=21,kill"},
    };
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
        struct program_run run = {.announce_fd = -1};
        programs_make_folder(folder);
        snprintf(out, sizeof(out), "%s/out", folder);
        const char *const args[] = {commands[i][0], "--model",      "lenet5",   "--limit-train",
                                    "120",          SMALL,          "--epochs", "2",
                                    commands[i][1], "ring",         "--out",    out,
                                    commands[i][2], commands[i][3], NULL};
        program_start(&run, folder, "deploy/ringside", false, args, NULL);
        assert_int_equal(program_wait(&run), 2);
        assert_non_null(strstr(program_output(&run),
                               "--fault rank=1,step=21,kill never comes: the job has 20 steps"));
        assert_int_not_equal(access(out, F_OK), 0); // nothing was written
        programs_remove_folder(folder);
    }
}

static void a_check_blames_the_option_and_not_the_data(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES];
    struct program_run run = {.announce_fd = -1};
    programs_make_folder(folder);
    const char *const args[] = {
        "check", SMALL,     "--limit-train",       "120", "--epochs", "2", "--mode",
        "ring",  "--fault", "rank=1,step=21,kill", NULL};
    program_start(&run, folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&run), 1);
    assert_non_null(
        strstr(program_output(&run), ": an option asks for what the job does not have"));
    assert_null(strstr(program_output(&run), "cannot be used"));
    programs_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_strike_is_refused_before_the_job),
        cmocka_unit_test(a_step_behind_the_last_epoch_is_refused_before_the_job),
        cmocka_unit_test(a_check_blames_the_option_and_not_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
