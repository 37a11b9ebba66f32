/* Tests of what may differ between a job and the one that goes on from its checkpoint. */
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/job/job_resume.h"
#include "common/job/job_text.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static char saved[JOB_TEXT_BYTES];

static struct job job_with(const char *name, const char *value)
{
    struct job job;
    char error[OPTION_ERROR_BYTES];
    memset(&job, 0, sizeof(job));
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    assert_int_equal(options_set_text(&set, 1, "epochs", "3", error, sizeof(error)), STATUS_OK);
    if (name != NULL) {
        assert_int_equal(options_set_text(&set, 1, name, value, error, sizeof(error)), STATUS_OK);
    }
    assert_int_equal(job_resolve(&job, error, sizeof(error)), STATUS_OK);
    return job;
}

static enum status check(const char *name, const char *value, char error[OPTION_ERROR_BYTES])
{
    const struct job before = job_with(NULL, NULL), now = job_with(name, value);
    assert_int_equal(job_encode(&before, saved, sizeof(saved)), STATUS_OK);
    return job_check_resume(saved, &now, error, OPTION_ERROR_BYTES);
}

static void the_same_job_may_go_on(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES];
    assert_int_equal(check(NULL, NULL, error), STATUS_OK);
}

static void what_changes_results_is_named_with_both_values(void **state)
{
    (void)state;
    static const char *const changed[][3] = {
        {"seed", "2", "--seed 1"},
        {"model", "lenet5", "--model cnn"},
        {"mode", "ring", "--mode ps-sync"},
        {"workers", "3", "--workers 2"},
        {"lr", "0.5", "--lr"},
        {"optimizer", "adam", "--optimizer momentum"},
        {"device", "ref", "--device auto"},
        {"epochs", "2", "more, and not"},
        {"global-batch", "48", "--batch 32 (--global-batch 64), this one has --batch 24"},
        {"batch", "24", "--batch 32 (--global-batch 64), this one has --batch 24"},
    };
    for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        char error[OPTION_ERROR_BYTES] = "", now[64];
        snprintf(now, sizeof(now), "--%s %s", changed[i][0], changed[i][1]);
        assert_int_equal(check(changed[i][0], changed[i][1], error), STATUS_INVALID);
        assert_non_null(strstr(error, now));
        assert_non_null(strstr(error, changed[i][2]));
    }
}

static void what_leaves_the_bits_may_differ_and_epochs_may_grow(void **state)
{
    (void)state;
    static const char *const changed[][2] = {
        {"threads", "3"},          {"loader-threads", "3"}, {"servers", "2"},
        {"transport", "ipc"},      {"lost-after", "60"},    {"outlast", "5"},
        {"checkpoint-every", "5"}, {"epochs", "4"},         {"fault", "rank=1,step=2,kill"},
        {"processes", "1"},
    };
    for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        char error[OPTION_ERROR_BYTES];
        assert_int_equal(check(changed[i][0], changed[i][1], error), STATUS_OK);
    }
}

static void the_number_of_servers_counts_where_their_answers_are_codes(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES];
    struct job before = job_with("compress", "int8"), now = before;
    now.servers = 2;
    assert_int_equal(job_encode(&before, saved, sizeof(saved)), STATUS_OK);
    assert_int_equal(job_check_resume(saved, &now, error, sizeof(error)), STATUS_INVALID);
    assert_non_null(strstr(error, "--servers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_job_may_go_on),
        cmocka_unit_test(what_changes_results_is_named_with_both_values),
        cmocka_unit_test(what_leaves_the_bits_may_differ_and_epochs_may_grow),
        cmocka_unit_test(the_number_of_servers_counts_where_their_answers_are_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
