/* Which runs are read, and which are refused. */
#include "deploy/calibrate/calibration_run.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/traced_run.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <string.h>

static struct calibration_run run; // large

static void write_text(const char *folder, const char *name, const char *text)
{
    temp_folder_write(folder, name, text, strlen(text));
}

/* The run is refused, with a sentence that holds `why`. */
static void refuse(const char *folder, const char *why)
{
    captured_log_begin();
    enum status status = calibration_run_read(folder, &run);
    const char *log = captured_log_end();
    if (status == STATUS_OK || strstr(log, why) == NULL) {
        fail_msg("status %d and\n%s\ninstead of: %s", (int)status, log, why);
    }
}

static void runs_that_show_no_plain_steps_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        struct traced_story story;
        const char *why;
    } cases[] = {
        {{"ring", "lenet5", 2, 0, 1, true, false, "\"seed\": 1"}, "has too few steps"},
        {{"ring", "external:mine", 2, 0, TRACED_STEPS, true, false, "\"seed\": 1"},
         "is of a program of one's own (external:mine)"},
        {{"ps-async", "lenet5", 2, 1, TRACED_STEPS, true, false, "\"seed\": 1"},
         "is of mode ps-async"},
        {{"ring", "lenet5", 2, 0, TRACED_STEPS, true, false, "\"compress\": \"fp16\""},
         "was run with --compress fp16 in mode ring"},
        {{"ring", "lenet5", 2, 0, TRACED_STEPS, true, false, "\"sync-every\": 4"},
         "was run with --sync-every 4"},
        {{"ring", "lenet5", 2, 0, TRACED_STEPS, true, false, "\"processes\": 1"},
         "was run with --processes 1"},
        {{"ring", "lenet5", 2, 0, TRACED_STEPS, true, false, "\"bucket-mb\": 0"},
         "was run with --bucket-mb 0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *folder = traced_run_write(&cases[i].story);
        refuse(folder, cases[i].why);
        temp_folder_destroy(folder);
    }
}

static void a_run_that_exchanges_nothing_before_its_last_step_is_read(void **state)
{
    (void)state;
    static const struct traced_story stories[] = {
        {"ring", "lenet5", 2, 0, TRACED_STEPS, true, false, "\"sync-every\": 23"},
        {"ring", "lenet5", 2, 0, TRACED_STEPS, true, false, "\"sync-every\": 24"},
    };
    char *folder = traced_run_write(&stories[0]);
    refuse(folder, "was run with --sync-every 23");
    temp_folder_destroy(folder);
    folder = traced_run_write(&stories[1]);
    assert_int_equal(calibration_run_read(folder, &run), STATUS_OK);
    assert_true(run.is_apart);
    calibration_run_finish(&run);
    temp_folder_destroy(folder);
}

/* Nobody has planned it: no option tells. */
static void a_run_that_has_lost_a_process_is_refused(void **state)
{
    (void)state;
    static const char gone_on[] = "{\"recoveries\": [{\"reason\": \"worker 1 was lost\"}]}";
    const struct traced_story story = {"ring",       "lenet5", 2,     0,
                                       TRACED_STEPS, true,     false, "\"seed\": 1"};
    char *folder = traced_run_write(&story);
    write_text(folder, "details.json", gone_on);
    refuse(folder, "has lost processes, or taken new ones in");
    temp_folder_destroy(folder);
}

static void runs_that_are_not_whole_are_refused(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    refuse(folder, "is not a run folder");
    write_text(folder, "summary.json",
               "{\"outcome\": \"failed\", \"reason\": \"worker 1 was lost\"}");
    refuse(folder, "the run failed: worker 1 was lost");
    write_text(folder, "summary.json",
               "{\"outcome\": \"completed\", \"mode\": \"ring\", \"workers\": 2, \"model\": "
               "\"lenet5\", \"parameters\": 130000, \"batch_per_worker\": 2.5}");
    refuse(folder, "with 2.5 images of each step");
    write_text(folder, "summary.json",
               "{\"outcome\": \"completed\", \"mode\": \"ring\", \"workers\": 2, \"model\": "
               "\"lenet5\", \"parameters\": 130000, \"batch_per_worker\": 16}");
    refuse(folder, "has no job.json");
    write_text(folder, "job.json", "{\"options\": {\"bucket-mb\": 1}}");
    refuse(folder, "has no timeline");
    write_text(folder, "timeline.pftrace", "what is this?");
    refuse(folder, "timeline.pftrace");
    write_text(folder, "timeline.pftrace", "");
    refuse(folder, "has no worker that computes in its timeline");
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_show_no_plain_steps_are_refused_by_name),
        cmocka_unit_test(a_run_that_exchanges_nothing_before_its_last_step_is_read),
        cmocka_unit_test(a_run_that_has_lost_a_process_is_refused),
        cmocka_unit_test(runs_that_are_not_whole_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
