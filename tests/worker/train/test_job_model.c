/* Tests of models whose size is not that of the training images: more outputs, and evaluation on
 * images of another size. */
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "tests/support/common/captured_log.h"
#include "worker/model/description.h"
#include "worker/train/evaluator.h"
#include "worker/train/job_model.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <jansson.h>

#include <stdlib.h>
#include <string.h>

#define TEST_IMAGES 7

static struct job make_job(const char *model)
{
    const char *const values[][2] = {{"model", model}, {"data", "shapes"},   {"eval-size", "12"},
                                     {"batch", "4"},   {"image-size", "16"}, {"workers", "1"}};
    struct job job;
    char error[OPTION_ERROR_BYTES];
    struct option_set rows = job_option_set(&job);
    options_reset(&rows);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_int_equal(
            options_set_text(&rows, 1, values[i][0], values[i][1], error, sizeof(error)),
            STATUS_OK);
    }
    assert_int_equal(job_resolve(&job, error, sizeof(error)), STATUS_OK);
    return job;
}

/* Noise of a size. */
static struct dataset *open_images(uint32_t size)
{
    struct dataset *dataset = NULL;
    const struct dataset_options options = {.seed = 1, .split = DATASET_TEST, .image_size = size};
    assert_int_equal(dataset_open("synthetic:shapes", &options, &dataset), STATUS_OK);
    return dataset;
}

static struct device *open_device(void)
{
    static const struct device_options options = {.threads = 1};
    struct device *device = NULL;
    assert_int_equal(device_open("ref", &options, &device), STATUS_OK);
    return device;
}

static struct model *create_model(const struct job *job, struct device *device,
                                  const struct dataset *images)
{
    struct pixels_source source;
    struct model *model;
    struct model_options options =
        job_model_options(job, job_batch_max(job), device, images, &source);
    options.has_region = false;
    assert_int_equal(model_create(&options, device, &model), STATUS_OK);
    return model;
}

static double evaluate(struct model *trained, struct model *sized, const struct dataset *images)
{
    const struct evaluator_models models = {trained, sized};
    const struct batcher_options batches = {
        .batch_size = 4, .world = 1, .sample_count = TEST_IMAGES, .depth = 1};
    struct wire_report report = {0};
    struct evaluator *evaluator;
    assert_int_equal(evaluator_create(&batches, images, &models, &evaluator), STATUS_OK);
    assert_int_equal(evaluator_run(evaluator, &report), STATUS_OK);
    assert_int_equal(report.test_images, TEST_IMAGES);
    evaluator_destroy(evaluator);
    return report.test_loss_sum;
}

/* The same as a model that was made for images of that size from the start, with the same vectors.
 */
static void check_evaluation(struct model *trained, struct model *sized, struct model *other,
                             const struct dataset *images)
{
    memcpy(model_params(other), model_params(trained),
           model_layout(trained)->value_count * sizeof(float));
    memcpy(model_statistics(other), model_statistics(trained),
           model_statistic_count(trained) * sizeof(float));
    double expected = evaluate(other, NULL, images), found = evaluate(trained, sized, images);
    assert_memory_equal(&found, &expected, sizeof(double));
}

static void evaluation_in_another_size_takes_what_was_learned_by_then(void **state)
{
    (void)state;
    struct job job = make_job("resnet20");
    struct device *device = open_device();
    struct dataset *train = open_images(16), *test = open_images(12);
    struct model *trained = create_model(&job, device, train);
    struct model *other = create_model(&job, device, test);
    struct job_sized_model sized = {NULL};
    assert_int_equal(job_create_sized_model(&job, train, trained, device, train, &sized),
                     STATUS_OK);
    assert_null(sized.model); // the images have the size
    assert_int_equal(job_create_sized_model(&job, train, trained, device, test, &sized), STATUS_OK);
    assert_non_null(sized.model);
    check_evaluation(trained, sized.model, other, test);
    double before = evaluate(trained, sized.model, test);
    model_params(trained)[model_layout(trained)->value_count - 1] += 1; // a bias of an output
    model_statistics(trained)[0] += 0.5F;
    check_evaluation(trained, sized.model, other, test);
    assert_true(evaluate(trained, sized.model, test) != before);
    model_destroy(other);
    model_destroy(sized.model);
    model_destroy(trained);
    dataset_close(test);
    dataset_close(train);
    device_close(device);
}

static void a_model_whose_last_layers_fix_the_size_is_refused_by_name(void **state)
{
    (void)state;
    struct job job = make_job("cnn");
    struct device *device = open_device();
    struct dataset *train = open_images(16), *test = open_images(32);
    struct model *trained = create_model(&job, device, train);
    struct job_sized_model sized = {NULL};
    captured_log_begin();
    enum status status = job_create_sized_model(&job, train, trained, device, test, &sized);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_null(sized.model);
    assert_non_null(strstr(log, "--eval-size 12: model cnn, which trains on images of 16x16"));
    model_destroy(trained);
    dataset_close(test);
    dataset_close(train);
    device_close(device);
}

static json_int_t count_values(const char *model, struct shape input, uint32_t classes)
{
    char *text;
    assert_int_equal(description_make(model, input, classes, &text), STATUS_OK);
    json_t *description = json_loads(text, 0, NULL);
    json_int_t count = json_integer_value(json_object_get(description, "values"));
    assert_true(count > 0);
    json_decref(description);
    free(text);
    return count;
}

/* Each class more has a weight for each feature of the last layer, and a bias. */
static void every_model_has_as_many_outputs_as_are_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        struct shape input;
        json_int_t features;
    } cases[] = {
        {"lenet5", {1, 28, 28}, 84},          {"cnn", {3, 32, 32}, 512},
        {"resnet20", {3, 32, 32}, 64},        {"resnet50v2", {3, 224, 224}, 2048},
        {"resnet152v2", {3, 224, 224}, 2048}, {"vgg16", {3, 224, 224}, 4096},
    };
    size_t count = sizeof(cases) / sizeof(cases[0]), models = 0;
    for (size_t i = 0; i < count; i++) {
        json_int_t ten = count_values(cases[i].model, cases[i].input, 10);
        json_int_t hundred = count_values(cases[i].model, cases[i].input, 100);
        assert_int_equal(hundred - ten, 90 * (cases[i].features + 1));
    }
    while (names_models[models].name != NULL) {
        models++;
    }
    assert_int_equal(models, count);
}

static void outputs_are_those_of_the_option_or_of_the_data(void **state)
{
    (void)state;
    struct job job = make_job("resnet20");
    const struct dataset dataset = {.class_count = 10};
    assert_int_equal(job_class_count(&job, &dataset), 10);
    job.classes = 37;
    assert_int_equal(job_class_count(&job, &dataset), 37);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_in_another_size_takes_what_was_learned_by_then),
        cmocka_unit_test(a_model_whose_last_layers_fix_the_size_is_refused_by_name),
        cmocka_unit_test(every_model_has_as_many_outputs_as_are_asked_for),
        cmocka_unit_test(outputs_are_those_of_the_option_or_of_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
