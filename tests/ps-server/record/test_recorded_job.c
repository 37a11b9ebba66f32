/* Tests of whether a run folder is of the same job. */
#include "ps-server/record/recorded_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void write_text(const char *folder, const char *name, const char *text)
{
    temp_folder_write(folder, name, text, strlen(text));
}

static void a_job_is_told_from_another_by_the_first_option_that_differs(void **state)
{
    char *folder = temp_folder_create();
    (void)state;
    struct job job = {.workers = 2, .epochs = 3, .seed = 1};
    assert_null(recorded_job_other_option(folder, &job)); // nothing is recorded
    write_text(folder, "job.json", "{\"options\": {\"workers\": 2, \"epochs\": 3, \"seed\": 1}}");
    assert_null(recorded_job_other_option(folder, &job));
    job.keep = 9; // which cannot change results
    assert_null(recorded_job_other_option(folder, &job));
    job.epochs = 4;
    assert_string_equal(recorded_job_other_option(folder, &job), "epochs");
    job.seed = 2;
    assert_string_equal(recorded_job_other_option(folder, &job), "seed");
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_told_from_another_by_the_first_option_that_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
