/* Tests of sweep.txt: it comes back as it was written, and knows its own sweep. */
#include "deploy/sweep/sweep_file.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static struct sweep_run runs[3];

/* Two settings, one with two seeds. */
static struct sweep_plan plan_of(const char *lr)
{
    static const char *const labels[] = {"lr=0.5 mode=ring", "lr=0.5 mode=ring", "mode=ps-async"};
    struct job job = sample_job_resolved(SAMPLE_JOB("mode=ring", lr));
    memset(runs, 0, sizeof(runs));
    for (size_t i = 0; i < 3; i++) {
        runs[i].job = job;
        runs[i].job.seed = 1 + i % 2;
        runs[i].group = i / 2;
        snprintf(runs[i].name, sizeof(runs[i].name), "%04zu-ring", i);
        snprintf(runs[i].label, sizeof(runs[i].label), "%s", labels[i]);
    }
    return (struct sweep_plan){runs, 3, 2};
}

static void a_plan_comes_back_from_its_file(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), out[4096];
    static char command[COMMAND_TEXT_BYTES];
    struct sweep_plan plan = plan_of("lr=0.5"), back;
    snprintf(out, sizeof(out), "%s/sweep", folder);
    assert_false(sweep_file_is_there(out));
    assert_int_equal(sweep_file_open(out, &plan, "ringside sweep --grid 'a b'"), STATUS_OK);
    assert_true(sweep_file_is_there(out));
    assert_int_equal(sweep_file_read(out, &back, command), STATUS_OK);
    assert_string_equal(command, "ringside sweep --grid 'a b'");
    assert_int_equal(back.count, 3);
    assert_int_equal(back.group_count, 2);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(back.runs[i].name, runs[i].name);
        assert_string_equal(back.runs[i].label, runs[i].label);
        assert_int_equal(back.runs[i].group, runs[i].group);
        assert_memory_equal(&back.runs[i].job, &runs[i].job, sizeof(struct job));
    }
    sweep_plan_free(&back);
    temp_folder_destroy(folder);
}

static void runs_of_another_program_are_another_sweep(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), out[4096];
    static char command[COMMAND_TEXT_BYTES];
    struct sweep_plan plan = plan_of("lr=0.5"), back;
    snprintf(out, sizeof(out), "%s/sweep", folder);
    snprintf(plan.program, sizeof(plan.program), "python3 train.py 'a b'");
    assert_int_equal(sweep_file_open(out, &plan, "one"), STATUS_OK);
    assert_int_equal(sweep_file_open(out, &plan, "one"), STATUS_OK);
    assert_int_equal(sweep_file_read(out, &back, command), STATUS_OK);
    assert_string_equal(back.program, "python3 train.py 'a b'");
    assert_int_equal(back.count, 3);
    sweep_plan_free(&back);
    snprintf(plan.program, sizeof(plan.program), "python3 train.py c");
    captured_log_begin();
    assert_int_equal(sweep_file_open(out, &plan, "one"), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "another sweep"));
    temp_folder_destroy(folder);
}

/* Which no job has. Another mirror is no other sweep, but what is left in the first one stays. */
static void what_is_done_about_losses_comes_back_and_is_compared(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), out[4096];
    static char command[COMMAND_TEXT_BYTES];
    struct sweep_plan plan = plan_of("lr=0.5"), back;
    snprintf(out, sizeof(out), "%s/sweep", folder);
    snprintf(plan.losses, sizeof(plan.losses), "--mirror /dev/shm/m --restarts 3");
    snprintf(plan.program, sizeof(plan.program), "python3 train.py");
    assert_int_equal(sweep_file_open(out, &plan, "one"), STATUS_OK);
    assert_int_equal(sweep_file_read(out, &back, command), STATUS_OK);
    assert_string_equal(command, "one");
    assert_string_equal(back.losses, plan.losses);
    assert_string_equal(back.program, plan.program);
    assert_int_equal(back.count, 3);
    sweep_plan_free(&back);
    captured_log_begin();
    assert_int_equal(sweep_file_open(out, &plan, "two"), STATUS_OK);
    assert_string_equal(captured_log_end(), "");
    plan.losses[0] = '\0';
    captured_log_begin();
    assert_int_equal(sweep_file_open(out, &plan, "two"), STATUS_OK);
    assert_non_null(strstr(captured_log_end(),
                           "has --mirror /dev/shm/m --restarts 3, and the sweep goes on with "
                           "neither --mirror nor --restarts"));
    temp_folder_destroy(folder);
}

static void the_same_runs_are_the_same_sweep_whatever_the_command(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), out[4096];
    struct sweep_plan plan = plan_of("lr=0.5");
    snprintf(out, sizeof(out), "%s/sweep", folder);
    assert_int_equal(sweep_file_open(out, &plan, "one"), STATUS_OK);
    assert_int_equal(sweep_file_open(out, &plan, "another"), STATUS_OK);
    plan = plan_of("lr=0.25");
    captured_log_begin();
    enum status status = sweep_file_open(out, &plan, "one");
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(log, "holds another sweep"));
    temp_folder_destroy(folder);
}

static void what_no_sweep_has_written_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "no command\n",
        "# command\n",
        "# command\n[name without end\n",
        "# command\n[../../etc] label\nmode=ring\n\n",
        "# command\n[name] label\nmode=ring\n",
        "# command\n[name] label\nmode=rnig\n\n",
        "# command\n[name] label\nmode=ring\n\nmore",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char *folder = temp_folder_create();
        static char command[COMMAND_TEXT_BYTES];
        struct sweep_plan plan;
        temp_folder_write(folder, "sweep.txt", texts[i], strlen(texts[i]));
        captured_log_begin();
        enum status status = sweep_file_read(folder, &plan, command);
        const char *log = captured_log_end();
        if (status != STATUS_MALFORMED || strstr(log, "does not describe a sweep") == NULL) {
            fail_msg("text %zu: %s", i, log);
        }
        temp_folder_destroy(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_comes_back_from_its_file),
        cmocka_unit_test(runs_of_another_program_are_another_sweep),
        cmocka_unit_test(what_is_done_about_losses_comes_back_and_is_compared),
        cmocka_unit_test(the_same_runs_are_the_same_sweep_whatever_the_command),
        cmocka_unit_test(what_no_sweep_has_written_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
