/* Tests of the examiner: every rank's part of the test set, with the statistics that it had. */
#include "common/checkpoint/checkpoint_writer.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "worker/model/model.h"
#include "worker/train/evaluator.h"
#include "worker/train/examiner.h"
#include "worker/train/job_model.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 2
#define STEP    4

/* A job of two workers on few small images, whose ranks have learned different statistics. */
struct fixture {
    char *folder;
    struct job job;
    struct dataset *train, *test;
    struct device *device;
    struct model *model;
    float *statistics[WORKERS];
    uint64_t statistic_count;
};

static void set(struct job *job, const char *name, const char *value)
{
    char error[OPTION_ERROR_BYTES];
    struct option_set rows = job_option_set(job);
    assert_int_equal(options_set_text(&rows, 1, name, value, error, sizeof(error)), STATUS_OK);
}

static void make_job(struct job *job, const char *mode, const char *switches)
{
    static const char *const values[][2] = {
        {"workers", "2"},      {"model", "resnet20"}, {"data", "synthetic"},
        {"global-batch", "9"}, {"steps", "8"},        {"limit-train", "64"},
        {"limit-test", "13"},  {"device", "ref"},     {"image-size", "8"},
    };
    char error[OPTION_ERROR_BYTES];
    struct option_set rows = job_option_set(job);
    options_reset(&rows);
    set(job, "mode", mode);
    if (switches != NULL) {
        set(job, "switch", switches);
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        set(job, values[i][0], values[i][1]);
    }
    if (job_resolve(job, error, sizeof(error)) != STATUS_OK) {
        fail_msg("%s", error);
    }
}

static struct model *create_model(const struct fixture *fixture, uint32_t batch_size)
{
    struct pixels_source source;
    struct model *model;
    struct model_options options =
        job_model_options(&fixture->job, batch_size, fixture->device, fixture->train, &source);
    options.has_region = false;
    assert_int_equal(model_create(&options, fixture->device, &model), STATUS_OK);
    return model;
}

static void open_all(struct fixture *fixture)
{
    static const struct device_options options = {.threads = 1};
    const struct job *job = &fixture->job;
    assert_int_equal(
        dataset_open(job->data,
                     &(struct dataset_options){.seed = job->seed, .split = DATASET_TRAIN},
                     &fixture->train),
        STATUS_OK);
    assert_int_equal(
        dataset_open(job->data, &(struct dataset_options){.seed = job->seed, .split = DATASET_TEST},
                     &fixture->test),
        STATUS_OK);
    assert_int_equal(device_open("ref", &options, &fixture->device), STATUS_OK);
    fixture->model = create_model(fixture, 1); // for its vectors
    fixture->statistic_count = model_statistic_count(fixture->model);
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        size_t bytes = fixture->statistic_count * sizeof(float);
        fixture->statistics[rank] = malloc(bytes);
        assert_non_null(fixture->statistics[rank]);
        memcpy(fixture->statistics[rank], model_statistics(fixture->model), bytes);
        for (uint64_t i = 0; i < fixture->statistic_count; i++) {
            fixture->statistics[rank][i] += 0.25F * (float)(rank + 1 + i % 3);
        }
    }
}

static void close_all(struct fixture *fixture)
{
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        free(fixture->statistics[rank]);
    }
    model_destroy(fixture->model);
    device_close(fixture->device);
    dataset_close(fixture->test);
    dataset_close(fixture->train);
}

static struct checkpoint_reader *write_checkpoint(struct fixture *fixture, uint64_t value_count,
                                                  uint32_t ranks)
{
    static const char *const names[] = {"rank-0/statistics", "rank-1/statistics"};
    struct checkpoint_vector vectors[1 + WORKERS];
    char error[1024], notes[1024];
    struct checkpoint_writer *writer;
    struct checkpoint_reader *reader;
    uint64_t bytes = fixture->statistic_count * sizeof(float);
    assert_int_equal(checkpoint_writer_open(fixture->folder, 1, &writer), STATUS_OK);
    assert_int_equal(checkpoint_begin(writer, STEP), STATUS_OK);
    vectors[0] = (struct checkpoint_vector){"params", value_count * sizeof(float)};
    assert_int_equal(
        checkpoint_write(writer, "params", 0, model_params(fixture->model), vectors[0].size),
        STATUS_OK);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        vectors[1 + rank] = (struct checkpoint_vector){names[rank], bytes};
        assert_int_equal(checkpoint_write(writer, names[rank], 0, fixture->statistics[rank], bytes),
                         STATUS_OK);
    }
    json_t *job = json_object();
    assert_int_equal(checkpoint_commit(writer, vectors, 1 + ranks, job), STATUS_OK);
    json_decref(job);
    checkpoint_writer_close(writer);
    assert_int_equal(
        checkpoint_open(fixture->folder, &reader, error, sizeof(error), notes, sizeof(notes)),
        STATUS_OK);
    return reader;
}

/* What a rank computes on its part, in batches of the size that all ranks have. */
static void evaluate(const struct fixture *fixture, uint32_t rank, const float *statistics,
                     struct examination *sum)
{
    struct wire_report report = {0};
    struct evaluator *evaluator;
    struct model *model = create_model(fixture, job_batch_max(&fixture->job));
    const struct batcher_options batches = {.batch_size = job_batch_max(&fixture->job),
                                            .rank = rank,
                                            .world = WORKERS,
                                            .sample_count = 13,
                                            .depth = 1};
    memcpy(model_params(model), model_params(fixture->model),
           model_layout(model)->value_count * sizeof(float));
    memcpy(model_statistics(model), statistics, fixture->statistic_count * sizeof(float));
    assert_int_equal(evaluator_create(&batches, fixture->test,
                                      &(struct evaluator_models){model, NULL}, &evaluator),
                     STATUS_OK);
    assert_int_equal(evaluator_run(evaluator, &report), STATUS_OK);
    evaluator_destroy(evaluator);
    model_destroy(model);
    sum->images += report.test_images;
    sum->correct += report.test_correct;
    sum->loss_sum += report.test_loss_sum;
}

static struct trainer_tools tools_of(const struct fixture *fixture)
{
    return (struct trainer_tools){
        .device = fixture->device, .train = fixture->train, .test = fixture->test};
}

static void check_result(const char *folder, const char *mode, const char *switches, bool is_own)
{
    struct fixture fixture = {.folder = strdup(folder)};
    struct examination result, expected = {0};
    make_job(&fixture.job, mode, switches);
    open_all(&fixture);
    uint64_t value_count = model_layout(fixture.model)->value_count;
    struct checkpoint_reader *reader = write_checkpoint(&fixture, value_count, WORKERS);
    const struct trainer_tools tools = tools_of(&fixture);
    assert_int_equal(examiner_run(&fixture.job, reader, &tools, &result), STATUS_OK);
    float *mean = malloc(fixture.statistic_count * sizeof(float));
    assert_non_null(mean);
    for (uint64_t i = 0; i < fixture.statistic_count; i++) {
        mean[i] =
            (float)(((double)fixture.statistics[0][i] + (double)fixture.statistics[1][i]) / 2);
    }
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        evaluate(&fixture, rank, is_own ? fixture.statistics[rank] : mean, &expected);
    }
    assert_int_equal(expected.images, 13);
    assert_int_equal(result.images, expected.images);
    assert_int_equal(result.correct, expected.correct);
    assert_memory_equal(&result.loss_sum, &expected.loss_sum, sizeof(double));
    free(mean);
    checkpoint_reader_close(reader);
    close_all(&fixture);
    free(fixture.folder);
}

static void synchronised_workers_evaluate_with_the_mean_of_statistics(void **state)
{
    check_result(*state, "ring", NULL, false);
}

static void unsynchronised_ones_each_with_their_own(void **state)
{
    check_result(*state, "ps-async", NULL, true);
}

static void the_phase_of_the_step_decides(void **state)
{
    check_result(*state, "ring", "step:3=ps-async", true);
    check_result(*state, "ring", "step:4=ps-async", false); // which the step ends
    check_result(*state, "ps-async", "step:3=ring", false);
}

static void a_checkpoint_that_does_not_fit_is_refused_by_name(void **state)
{
    static const struct {
        uint64_t missing;
        uint32_t ranks;
        const char *error;
    } cases[] = {
        {1, WORKERS, "its params has 269721 values"},
        {0, 1, "has no vector rank-1/statistics"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture fixture = {.folder = strdup(*state)};
        struct examination result;
        make_job(&fixture.job, "ring", NULL);
        open_all(&fixture);
        uint64_t count = model_layout(fixture.model)->value_count - cases[i].missing;
        struct checkpoint_reader *reader = write_checkpoint(&fixture, count, cases[i].ranks);
        captured_log_begin();
        const struct trainer_tools tools = tools_of(&fixture);
        enum status status = examiner_run(&fixture.job, reader, &tools, &result);
        const char *log = captured_log_end();
        assert_int_equal(status, STATUS_MISMATCH);
        assert_non_null(strstr(log, cases[i].error));
        assert_non_null(strstr(log, "step-000000000004"));
        checkpoint_reader_close(reader);
        close_all(&fixture);
        free(fixture.folder);
    }
}

static int open_folder(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int close_folder(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(synchronised_workers_evaluate_with_the_mean_of_statistics),
        IN_FOLDER(unsynchronised_ones_each_with_their_own),
        IN_FOLDER(the_phase_of_the_step_decides),
        IN_FOLDER(a_checkpoint_that_does_not_fit_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
