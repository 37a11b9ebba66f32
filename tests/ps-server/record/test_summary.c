/* Tests of what the summary says of traffic, and of evaluations. */
#include "ps-server/record/summary.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

static double bytes_of(const struct story *story, const char *key)
{
    json_t *summary = summary_json(&story->coordinator);
    assert_non_null(summary);
    const json_t *bytes = json_object_get(summary, "bytes_per_step");
    double value = json_number_value(json_object_get(bytes, key));
    json_decref(summary);
    return value;
}

/* Servers count from where the job has gone on, workers from its beginning. */
static void bytes_of_servers_are_those_of_the_steps_since_the_last_loss(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ps-sync", 2, 1);
    story.job.global_batch = 8;
    story.coordinator.train_samples = 64;
    struct results *results = &story.coordinator.results;
    for (uint32_t rank = 0; rank < 2; rank++) {
        results->ranks[rank].steps = 64;
        results->ranks[rank].bytes_sent = 640;
    }
    results->server_bytes_sent = 320;
    results->server_bytes_received = 640;
    assert_true(bytes_of(&story, "worker_sent") == 10);
    assert_true(bytes_of(&story, "server_sent") == 5);
    story.coordinator.begin_step = 48;
    assert_true(bytes_of(&story, "worker_sent") == 10);
    assert_true(bytes_of(&story, "server_sent") == 20);
    assert_true(bytes_of(&story, "server_received") == 40);
    story.coordinator.begin_step = 64; // none was made since
    assert_true(bytes_of(&story, "server_sent") == 0);
    coordinator_finish(&story.coordinator);
}

/* The best accuracy of a job with these evaluations, and its epoch. */
static void assert_best(const struct results_period *periods, uint32_t count, double accuracy,
                        int epoch)
{
    struct story story;
    story_open(&story, "ps-async", 2, 1);
    story.job.global_batch = 8;
    story.coordinator.train_samples = 64;
    story.job.epochs = 3;
    story.coordinator.test_samples = 100;
    struct results *results = &story.coordinator.results;
    results->periods = calloc(count, sizeof(*periods));
    assert_non_null(results->periods);
    memcpy(results->periods, periods, count * sizeof(*periods));
    results->period_count = results->period_capacity = count;
    json_t *summary = summary_json(&story.coordinator);
    assert_true(json_real_value(json_object_get(summary, "best_accuracy")) == accuracy);
    assert_int_equal(json_integer_value(json_object_get(summary, "best_epoch")), epoch);
    json_decref(summary);
    coordinator_finish(&story.coordinator);
}

static void the_best_evaluation_is_one_of_the_whole_test_set_if_any_is(void **state)
{
    static const struct results_period periods[] = {
        {.report_count = 2, .test_images = 25, .test_correct = 24}, // one worker's part
        {.report_count = 2, .test_images = 100, .test_correct = 50},
        {.report_count = 2, .test_images = 100, .test_correct = 60},
    };
    (void)state;
    assert_best(periods, 3, 0.6, 3);
    assert_best(periods, 1, 0.96, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_servers_are_those_of_the_steps_since_the_last_loss),
        cmocka_unit_test(the_best_evaluation_is_one_of_the_whole_test_set_if_any_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
