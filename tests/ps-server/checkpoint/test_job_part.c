/* Tests of what a checkpoint says of its job: written by one coordinator, read for the next. */
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/job/job_text.h"
#include "ps-server/checkpoint/job_part.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define STEP 25 // in the third epoch of ten steps

static struct job job;
static char text[JOB_TEXT_BYTES];

static void make_job(const char *epochs)
{
    char error[OPTION_ERROR_BYTES];
    memset(&job, 0, sizeof(job));
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    assert_int_equal(options_set_text(&set, 1, "mode", "ring", error, sizeof(error)), STATUS_OK);
    assert_int_equal(options_set_text(&set, 1, "epochs", epochs, error, sizeof(error)), STATUS_OK);
    assert_int_equal(options_set_text(&set, 1, "batch", "5", error, sizeof(error)), STATUS_OK);
    assert_int_equal(options_set_text(&set, 1, "checkpoint-every", "5", error, sizeof(error)),
                     STATUS_OK);
    assert_int_equal(job_resolve(&job, error, sizeof(error)), STATUS_OK);
    assert_int_equal(job_encode(&job, text, sizeof(text)), STATUS_OK);
}

/* What a coordinator has at the step: three epochs have begun to be reported. */
static json_t *written(struct coordinator *coordinator)
{
    static const struct coordinator_port port;
    make_job("4");
    assert_int_equal(coordinator_init(coordinator, &job, text, &port, 0), STATUS_OK);
    struct checkpointing *of = &coordinator->checkpointing;
    coordinator->started_ms = 1000;
    coordinator->layout = (struct layout){.value_count = 77, .digest = UINT64_MAX - 2};
    coordinator->data_digest = UINT64_C(0xFEDCBA9876543210);
    coordinator->train_samples = 100;
    coordinator->test_samples = 30;
    of->step = STEP;
    of->plan = checkpoints_of(&job, 100);
    for (uint64_t period = 0; period < 3; period++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            const struct wire_report report = {.closes_period = true,
                                               .period = period,
                                               .images = 50,
                                               .loss_sum = 0.1 + (double)period,
                                               .test_images = 15,
                                               .test_correct = 7};
            const struct message message = {.kind = MESSAGE_REPORT, .report = &report};
            assert_int_equal(results_add(&coordinator->results, rank, &message), STATUS_OK);
        }
    }
    of->collected[1] = (struct checkpoint_rank){
        .results = {.steps = STEP, .loss_sum = 1.0 / 3},
        .open_period = {.steps = 5, .images = 25, .loss_sum = 0.7},
    };
    staleness_add_many(&of->counted.staleness, 3, 70);
    staleness_add(&of->counted.staleness, 5000);
    of->counted.late_count = 9;
    json_t *tree = job_part_json(coordinator, 3500);
    assert_non_null(tree);
    // As a file has it.
    char *line = json_dumps(tree, JSON_COMPACT);
    json_decref(tree);
    tree = json_loads(line, 0, NULL);
    free(line);
    return tree;
}

static void everything_comes_back_bit_for_bit_up_to_the_step(void **state)
{
    (void)state;
    struct coordinator coordinator;
    struct job_part part;
    char error[512];
    json_t *tree = written(&coordinator);
    assert_int_equal(job_part_read(tree, &job, STEP, &part, error, sizeof(error)), STATUS_OK);
    assert_int_equal(part.resume.step, STEP);
    assert_int_equal(part.resume.value_count, 77);
    assert_true(part.resume.layout_digest == UINT64_MAX - 2);
    assert_true(part.resume.data_digest == UINT64_C(0xFEDCBA9876543210));
    assert_int_equal(part.resume.train_samples, 100);
    assert_true(part.resume.seconds == 2.5);
    assert_int_equal(part.resume.restarts, 1);
    assert_int_equal(part.results.period_count, 2); // the third was reported after the step
    assert_true(part.results.periods[1].loss_sum == 2 * 1.1);
    assert_int_equal(part.results.periods[1].test_correct, 14);
    assert_true(part.results.ranks[1].loss_sum == 1.0 / 3);
    assert_int_equal(part.open_periods[1].images, 25);
    assert_true(part.open_periods[1].loss_sum == 0.7);
    assert_int_equal(part.open_periods[0].images, 0);
    assert_int_equal(part.resume.open_images[1], 25);
    assert_true(part.resume.open_loss_sums[1] == 0.7);
    assert_int_equal(part.results.staleness.counts[3], 70);
    assert_int_equal(part.results.staleness.total, 71);
    assert_int_equal(part.results.staleness.max, 5000);
    assert_true(part.results.staleness.sum == 5210);
    assert_int_equal(part.results.late_count, 9);
    job_part_finish(&part);
    json_decref(tree);
    coordinator_finish(&coordinator);
}

static void what_servers_had_counted_may_be_missing_and_is_refused_without_sense(void **state)
{
    (void)state;
    struct coordinator coordinator;
    struct job_part part;
    char error[512];
    json_t *tree = written(&coordinator), *results = json_object_get(tree, "results");
    json_t *counted = json_object_get(results, "counted"), *list = json_array();
    for (uint32_t i = 0; i <= STALENESS_BINS; i++) {
        json_array_append_new(list, json_integer(1));
    }
    json_object_set_new(counted, "staleness", list);
    assert_int_equal(job_part_read(tree, &job, STEP, &part, error, sizeof(error)), STATUS_INVALID);
    list = json_pack("[I]", INT64_MAX); // which more shards would make larger
    json_object_set_new(counted, "staleness", list);
    assert_int_equal(job_part_read(tree, &job, STEP, &part, error, sizeof(error)), STATUS_INVALID);
    json_object_del(results, "counted"); // as before it was written
    assert_int_equal(job_part_read(tree, &job, STEP, &part, error, sizeof(error)), STATUS_OK);
    assert_int_equal(part.results.staleness.total, 0);
    job_part_finish(&part);
    json_decref(tree);
    coordinator_finish(&coordinator);
}

static void a_job_that_is_complete_wants_more_epochs(void **state)
{
    (void)state;
    struct coordinator coordinator;
    struct job_part part;
    char error[512];
    json_t *tree = written(&coordinator);
    assert_int_equal(job_part_read(tree, &job, 40, &part, error, sizeof(error)),
                     STATUS_END_OF_DATA);
    assert_non_null(strstr(error, "give more --epochs"));
    job.steps = 40;
    assert_int_equal(job_encode(&job, text, sizeof(text)), STATUS_OK);
    json_object_set_new(tree, "job", json_string(text));
    assert_int_equal(job_part_read(tree, &job, 40, &part, error, sizeof(error)),
                     STATUS_END_OF_DATA);
    assert_non_null(strstr(error, "a job with --steps cannot become longer"));
    job.steps = 0;
    json_decref(tree);
    coordinator_finish(&coordinator);
}

static void what_is_missing_or_of_another_job_is_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {"job", "results", "train_samples"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct coordinator coordinator;
        struct job_part part;
        char error[512] = "";
        json_t *tree = written(&coordinator);
        json_object_del(tree, keys[i]);
        assert_int_equal(job_part_read(tree, &job, STEP, &part, error, sizeof(error)),
                         STATUS_INVALID);
        assert_string_not_equal(error, "");
        json_decref(tree);
        coordinator_finish(&coordinator);
    }
    struct coordinator coordinator;
    struct job_part part;
    char error[512];
    json_t *tree = written(&coordinator);
    job.seed = 99;
    assert_int_equal(job_part_read(tree, &job, STEP, &part, error, sizeof(error)), STATUS_INVALID);
    assert_non_null(strstr(error, "--seed"));
    json_decref(tree);
    coordinator_finish(&coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back_bit_for_bit_up_to_the_step),
        cmocka_unit_test(what_servers_had_counted_may_be_missing_and_is_refused_without_sense),
        cmocka_unit_test(a_job_that_is_complete_wants_more_epochs),
        cmocka_unit_test(what_is_missing_or_of_another_job_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
