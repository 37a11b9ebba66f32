/* Tests of the summary of a job whose coordinator could not write one. */
#include "deploy/launch/last_summary.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <jansson.h>

#include <stdio.h>
#include <string.h>

static int set_up(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int tear_down(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

/* rate < 0: it is null. */
static void check(const char *folder, const struct job *job, const char *record,
                  const char *optimizer, double rate)
{
    char path[4200];
    if (record != NULL) {
        temp_folder_write(folder, "job.json", record, strlen(record));
    }
    last_summary_write(folder, job, "the coordinator was lost");
    snprintf(path, sizeof(path), "%s/summary.json", folder);
    json_t *summary = json_load_file(path, 0, NULL);
    const json_t *lr = json_object_get(summary, "lr");
    assert_string_equal(json_string_value(json_object_get(summary, "optimizer")), optimizer);
    assert_int_equal(json_is_null(lr), rate < 0);
    assert_true(rate < 0 || json_number_value(lr) == rate);
    assert_int_equal(json_is_null(json_object_get(summary, "lr_effective")), rate < 0);
    json_decref(summary);
    assert_int_equal(remove(path), 0);
}

static void the_optimizer_is_the_one_that_the_program_has_said(void **state)
{
    const struct job open = sample_job_resolved(SAMPLE_JOB("model=external:mine", "mode=ps-sync"));
    const struct job named = sample_job_resolved(
        SAMPLE_JOB("model=external:mine", "mode=ring", "optimizer=sgd", "lr=0.5"));
    static const char said[] =
        "{\"options\": {\"optimizer\": \"adam\", \"lr\": 0.125, \"momentum\": 0.9, \"beta1\": 0.5, "
        "\"beta2\": 0.9, \"decay\": 0, \"epsilon\": 1e-08, \"weight-decay\": 0, \"workers\": 2}}";
    static const char own[] = "{\"options\": {\"optimizer\": \"auto\", \"lr\": 0.5}}";
    check(*state, &open, NULL, job_optimizer_text(&open), -1);
    check(*state, &open, own, job_optimizer_text(&open), -1);
    check(*state, &open, said, "adam", 0.125);
    check(*state, &named, own, job_optimizer_text(&open), -1);
    check(*state, &named, "{\"options\": {\"optimizer\": \"sgd\", \"lr\": 0.5}}", "sgd", 0.5);
    check(*state, &open, "{\"options\": {\"optimizer\": \"lion\"}}", job_optimizer_text(&open), -1);
    check(*state, &open, "{\"options\": {\"optimizer\"", job_optimizer_text(&open), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_optimizer_is_the_one_that_the_program_has_said, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
