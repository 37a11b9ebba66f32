/* Tests of what a generation of a job has begun with, in its run folder. */
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/job/job_text.h"
#include "ps-server/checkpoint/beginning.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STEP 20

static struct job job;
static char text[JOB_TEXT_BYTES];

/* As a coordinator with two periods behind it writes it into a checkpoint. */
static json_t *part_of(struct coordinator *coordinator)
{
    static const struct coordinator_port port;
    char error[OPTION_ERROR_BYTES];
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    assert_int_equal(options_set_text(&set, 1, "mode", "ring", error, sizeof(error)), STATUS_OK);
    assert_int_equal(options_set_text(&set, 1, "epochs", "4", error, sizeof(error)), STATUS_OK);
    assert_int_equal(options_set_text(&set, 1, "batch", "5", error, sizeof(error)), STATUS_OK);
    assert_int_equal(job_resolve(&job, error, sizeof(error)), STATUS_OK);
    assert_int_equal(job_encode(&job, text, sizeof(text)), STATUS_OK);
    assert_int_equal(coordinator_init(coordinator, &job, text, &port, 0), STATUS_OK);
    coordinator->layout = (struct layout){.value_count = 77, .digest = 5};
    coordinator->train_samples = 100;
    coordinator->checkpointing.step = STEP;
    for (uint64_t period = 0; period < 2; period++) {
        for (uint32_t rank = 0; rank < job.workers; rank++) {
            const struct wire_report report = {
                .closes_period = true, .period = period, .images = 50, .loss_sum = 0.1};
            const struct message message = {.kind = MESSAGE_REPORT, .report = &report};
            assert_int_equal(results_add(&coordinator->results, rank, &message), STATUS_OK);
        }
    }
    json_t *part = job_part_json(coordinator, 3500);
    assert_non_null(part);
    return part;
}

static void results_come_back_for_the_step_that_they_are_of(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    struct coordinator coordinator;
    struct job_part part = {.open_periods = NULL};
    json_t *tree = part_of(&coordinator);
    assert_int_equal(beginning_read(folder, STEP, &job, &part), STATUS_INVALID); // there is none
    assert_int_equal(beginning_write(folder, STEP, tree), STATUS_OK);
    assert_int_equal(beginning_read(folder, STEP + 1, &job, &part), STATUS_INVALID);
    assert_int_equal(beginning_read(folder, STEP, &job, &part), STATUS_OK);
    assert_int_equal(part.resume.step, STEP);
    assert_int_equal(part.results.period_count, 2);
    assert_true(part.results.periods[1].loss_sum == coordinator.results.periods[1].loss_sum);
    job_part_finish(&part);
    job.seed++;
    assert_int_equal(beginning_read(folder, STEP, &job, &part), STATUS_INVALID);
    coordinator_finish(&coordinator);
    json_decref(tree);
    temp_folder_destroy(folder);
}

static void what_is_damaged_is_none(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    struct job_part part;
    static const char *const texts[] = {"", "{\"step\": 20", "{\"step\": 20, \"part\": {}}", "[]"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        temp_folder_write(folder, BEGINNING_FILE, texts[i], strlen(texts[i]));
        assert_int_equal(beginning_read(folder, STEP, &job, &part), STATUS_INVALID);
    }
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_back_for_the_step_that_they_are_of),
        cmocka_unit_test(what_is_damaged_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
