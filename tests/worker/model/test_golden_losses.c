/* Ten steps of each model on each backend, against what PyTorch computed (tests/golden).
 *
 *     test_golden_losses [BACKEND]      all of them, or one */
#include "common/base/random.h"
#include "tests/golden/losses.h"
#include "tests/support/model/tested_backends.h"
#include "worker/model/model.h"
#include "worker/model/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define LOSS_TOLERANCE 1e-3 // relative; a wrong mask or gradient is a hundred times larger
#define NORM_TOLERANCE 1e-4

/* With normalisation a single relu that rounding turns is felt by all layers before it. */
#define NORM_TOLERANCE_NORMALISED 5e-3

/* Of the largest gradient: biases in front of a normalisation have a gradient of zero, of which
 * rounding leaves something else. */
#define NORM_NOISE 1e-7

/* Plain loops need seconds for a step of a large model. */
#define PLAIN_VALUES_MAX  10000000
#define PLAIN_STEPS_LARGE 2

#define PIXELS_PER_SAMPLE_MAX (3 * 32 * 32)

/* The batch that record_losses.py makes: always the same, but for the keys of its dropout masks. */
struct golden_batch {
    float pixels[GOLDEN_BATCH_MAX * PIXELS_PER_SAMPLE_MAX];
    uint32_t labels[GOLDEN_BATCH_MAX];
    uint64_t sample_keys[GOLDEN_BATCH_MAX];
};

static void fill_batch(struct golden_batch *batch, const struct golden_training *golden)
{
    uint64_t key = random_key(GOLDEN_SEED, RANDOM_SYNTHETIC, 0, 0);
    struct shape shape = golden->input;
    uint32_t count = golden->batch * shape.channels * shape.rows * shape.columns;
    for (uint32_t i = 0; i < count; i++) {
        float unit = random_unit_float(random_element(key, i));
        batch->pixels[i] = GOLDEN_PIXELS_MAX * (2 * unit - 1);
    }
    for (uint32_t n = 0; n < GOLDEN_BATCH_MAX; n++) {
        uint64_t bits = random_key(GOLDEN_SEED, RANDOM_SYNTHETIC, 1, n);
        batch->labels[n] = (uint32_t)(bits % GOLDEN_CLASSES);
    }
}

static void fill_keys(struct golden_batch *batch, uint64_t step)
{
    for (uint32_t n = 0; n < GOLDEN_BATCH_MAX; n++) {
        batch->sample_keys[n] = random_key(GOLDEN_SEED, RANDOM_DROPOUT, step, n);
    }
}

/* Forward and backward of the whole model; returns the mean loss. */
static double compute_grads(struct model *model, const struct golden_batch *batch, uint32_t count)
{
    const struct program_input input = {
        .pixels = batch->pixels,
        .labels = batch->labels,
        .sample_keys = batch->sample_keys,
        .count = count,
        .gradient_scale = 1.0f / (float)count,
        .is_training = true,
    };
    struct program_result result = {.loss_sum = (double)NAN};
    assert_int_equal(model_forward(model, &input, &result), STATUS_OK);
    for (uint32_t bucket = 0; bucket < model_layout(model)->bucket_count; bucket++) {
        assert_int_equal(model_backward(model, bucket), STATUS_OK);
        assert_int_equal(model_await_gradients(model, bucket), STATUS_OK);
    }
    return result.loss_sum / count;
}

/* PyTorch's SGD with momentum. */
static void update_params(struct model *model, float *velocity, float rate)
{
    float *params = model_params(model);
    const float *grads = model_grads(model);
    for (uint64_t i = 0; i < model_layout(model)->value_count; i++) {
        velocity[i] = GOLDEN_MOMENTUM * velocity[i] + grads[i];
        params[i] -= rate * velocity[i];
    }
}

static double norm_of(const float *values, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    return sqrt(sum);
}

static void check_norms(const struct golden_training *golden, struct model *model)
{
    struct network_plan plan;
    uint32_t bad_layer;
    assert_int_equal(network_make_plan(models_find(golden->model), golden->input, GOLDEN_CLASSES,
                                       &plan, &bad_layer),
                     STATUS_OK);
    assert_in_range(plan.tensor_count, 1, GOLDEN_TENSORS_MAX);
    double largest = 0;
    double tolerance = plan.statistic_count > 0 ? NORM_TOLERANCE_NORMALISED : NORM_TOLERANCE;
    for (uint32_t t = 0; t < plan.tensor_count; t++) {
        largest = fmax(largest, golden->grad_norms[t]);
    }
    for (uint32_t t = 0; t < plan.tensor_count; t++) {
        struct span span = plan.tensors[t].span;
        double norm = norm_of(model_grads(model) + span.offset, span.count);
        double allowed = tolerance * golden->grad_norms[t] + NORM_NOISE * largest;
        if (!(fabs(norm - golden->grad_norms[t]) < allowed)) {
            fail_msg("%s: gradient of tensor %u has norm %.9g, not %.9g", golden->model, t, norm,
                     golden->grad_norms[t]);
        }
    }
}

static void train(const struct golden_training *golden, struct model *model, bool is_plain)
{
    bool is_cut = is_plain && model_layout(model)->value_count > PLAIN_VALUES_MAX;
    uint32_t steps = is_cut ? PLAIN_STEPS_LARGE : GOLDEN_STEPS;
    static struct golden_batch batch;
    float *velocity = calloc(model_layout(model)->value_count, sizeof(*velocity));
    assert_non_null(velocity);
    fill_batch(&batch, golden);
    double largest_error = 0;
    for (uint32_t step = 0; step < steps; step++) {
        fill_keys(&batch, step);
        double loss = compute_grads(model, &batch, golden->batch);
        double error = fabs(loss / golden->losses[step] - 1);
        if (!(error < LOSS_TOLERANCE)) {
            fail_msg("%s: loss of step %u is %.9g, not %.9g", golden->model, step, loss,
                     golden->losses[step]);
        }
        largest_error = fmax(largest_error, error);
        if (step == 0) {
            check_norms(golden, model);
        }
        update_params(model, velocity, golden->rate);
    }
    free(velocity);
    print_message("%s: %u losses within %.1e\n", golden->model, steps, largest_error);
}

static void check_backend(const char *backend, bool is_plain, enum conv_algorithm conv)
{
    const struct device_options device_options = {.threads = 1};
    struct device *device;
    assert_int_equal(device_open(backend, &device_options, &device), STATUS_OK);
    for (size_t i = 0; i < sizeof(golden_trainings) / sizeof(golden_trainings[0]); i++) {
        const struct golden_training *golden = &golden_trainings[i];
        const struct model_options options = {
            .name = golden->model,
            .input = golden->input,
            .class_count = GOLDEN_CLASSES,
            .batch_size = golden->batch,
            .seed = GOLDEN_SEED,
            .bucket_bytes = 1 << 18,
            .conv = conv,
        };
        struct model *model;
        assert_int_equal(model_create(&options, device, &model), STATUS_OK);
        train(golden, model, is_plain);
        model_destroy(model);
    }
    device_close(device);
}

static const char *only; // the backend that was asked for

static void every_backend_trains_as_pytorch_does(void **state)
{
    (void)state;
    static const enum conv_algorithm algorithms[] = {CONV_AUTO, CONV_DIRECT, CONV_WINOGRAD};
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        if (only != NULL && strcmp((*ops)->name, only) != 0) {
            continue;
        }
        bool is_plain = strcmp((*ops)->name, "ref") == 0;
        size_t count = (*ops)->has_conv_choice ? sizeof(algorithms) / sizeof(algorithms[0]) : 1;
        for (size_t i = 0; i < count; i++) {
            print_message("%s, convolution algorithm %d\n", (*ops)->name, (int)algorithms[i]);
            check_backend((*ops)->name, is_plain, algorithms[i]);
        }
    }
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_backend_trains_as_pytorch_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
