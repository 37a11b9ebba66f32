/* Steps whose launches are replayed as CUDA graphs, against the same steps launched one by one, on
 * the fake runtime: equal bits, whatever changes between them, and whatever goes wrong. */
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_formulas.h"
#include "common/options/names.h"
#include "common/vector/digest.h"
#include "tests/support/common/captured_log.h"
#include "worker/model/model.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODE        "FAKE_CUDA"
#define BATCH       3
#define CLASSES     10
#define STEPS_MAX   6
#define RESULTS_MAX 64
#define RATE        1e-4

/* Who makes the updates, and from whose gradients. */
enum updates {
    UPDATES_KEPT,      // the device, from those that it has (local)
    UPDATES_EXCHANGED, // the device, from means (ring)
    UPDATES_HOST,      // the host, and parameters come anew (ps modes)
};

struct course {
    const char *model;
    struct shape input;
    enum updates updates;
    uint32_t steps;
    bool sums_over_workers;
    bool has_many_scales; // a new one in each step: more passes than are captured
    bool updates_upwards; // from the first parameters on, against the order of backward
};

/* What a course of steps comes to. */
struct outcome {
    struct program_result results[RESULTS_MAX];
    uint32_t count;
    char digest[DIGEST_TEXT_BYTES];
    char described[STEPS_MAX][512]; // after each step
};

struct run {
    const struct course *course;
    struct device *device;
    struct model *model;
    struct optimizer *optimizer;
    float *pixels; // (BATCH, C, H, W)
    uint32_t labels[BATCH];
    uint64_t keys[BATCH];
    struct outcome *outcome;
};

static enum status add_nothing(void *context, double *values, uint32_t count)
{
    (void)context;
    (void)values;
    (void)count;
    return STATUS_OK; // the other workers have no samples
}

static void open_run(struct run *run, const struct course *course, bool replays)
{
    const struct device_options device = {.threads = 1, .replays_launches = replays};
    const struct model_options options = {
        .name = course->model,
        .input = course->input,
        .class_count = CLASSES,
        .batch_size = BATCH,
        .seed = 7,
        .bucket_bytes = 100000,
    };
    const struct optimizer_settings settings = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    struct shape x = course->input;
    run->course = course;
    assert_int_equal(device_open("cuda", &device, &run->device), STATUS_OK);
    assert_int_equal(model_create(&options, run->device, &run->model), STATUS_OK);
    assert_int_equal(optimizer_create(OPTIMIZER_ADAM, &settings,
                                      model_layout(run->model)->value_count, &run->optimizer),
                     STATUS_OK);
    if (course->updates != UPDATES_HOST) {
        assert_int_equal(model_hold(run->model, run->optimizer), STATUS_OK);
    }
    run->pixels = calloc((size_t)BATCH * x.channels * x.rows * x.columns, sizeof(float));
    assert_non_null(run->pixels);
}

static void close_run(struct run *run)
{
    model_destroy(run->model);
    optimizer_destroy(run->optimizer);
    device_close(run->device);
    free(run->pixels);
}

/* Another batch for each draw. */
static void draw_batch(struct run *run, uint64_t draw)
{
    struct shape x = run->course->input;
    uint64_t key = random_key(3, RANDOM_SYNTHETIC, draw, 0);
    for (uint32_t i = 0; i < BATCH * x.channels * x.rows * x.columns; i++) {
        run->pixels[i] = 2 * random_unit_float(random_element(key, i)) - 1;
    }
    for (uint32_t n = 0; n < BATCH; n++) {
        run->labels[n] = random_element(key, UINT32_MAX - n) % CLASSES;
        run->keys[n] = random_key(3, RANDOM_DROPOUT, draw, n);
    }
}

static struct program_input input_of(struct run *run, uint32_t count, bool is_training)
{
    const struct course *course = run->course;
    return (struct program_input){
        .pixels = run->pixels,
        .labels = run->labels,
        .sample_keys = is_training ? run->keys : NULL,
        .count = count,
        .gradient_scale = 1.0f / BATCH,
        .is_training = is_training,
        .keeps_gradients = is_training && course->updates == UPDATES_KEPT,
        .sum_over_workers = is_training && course->sums_over_workers ? add_nothing : NULL,
    };
}

static void forward(struct run *run, const struct program_input *input)
{
    struct outcome *outcome = run->outcome;
    assert_in_range(outcome->count, 0, RESULTS_MAX - 1);
    struct program_result *result = &outcome->results[outcome->count++];
    assert_int_equal(model_forward(run->model, input, result), STATUS_OK);
    assert_true(isfinite(result->loss_sum) || !input->is_training);
}

static void update(struct run *run, uint64_t number)
{
    const struct layout *layout = model_layout(run->model);
    struct optimizer_update update;
    if (run->course->updates == UPDATES_HOST) {
        optimizer_apply(run->optimizer, (struct span){0, layout->value_count},
                        model_params(run->model), model_grads(run->model), number, RATE);
        return;
    }
    optimizer_plan_update(run->optimizer, (struct span){0, layout->value_count}, number, RATE,
                          &update);
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        uint32_t bucket = run->course->updates_upwards ? layout->bucket_count - 1 - i : i;
        assert_int_equal(model_apply(run->model, bucket, &update), STATUS_OK);
    }
}

/* As the trainer does it: backward of all buckets is queued, then each is waited for. */
static void train(struct run *run, const struct program_input *input, uint64_t number)
{
    uint32_t bucket_count = model_layout(run->model)->bucket_count;
    forward(run, input);
    for (uint32_t bucket = 0; bucket < bucket_count; bucket++) {
        assert_int_equal(model_backward(run->model, bucket), STATUS_OK);
    }
    for (uint32_t bucket = 0; bucket < bucket_count && !input->keeps_gradients; bucket++) {
        assert_int_equal(model_await_gradients(run->model, bucket), STATUS_OK);
    }
    update(run, number);
}

/* Whole batches and smaller ones, with evaluations between them. */
static void run_course(const struct course *course, bool replays, struct outcome *ret_outcome)
{
    struct run run = {.outcome = ret_outcome};
    *ret_outcome = (struct outcome){0};
    open_run(&run, course, replays);
    for (uint32_t step = 0; step < course->steps; step++) {
        draw_batch(&run, step);
        struct program_input input = input_of(&run, step == 4 ? BATCH - 1 : BATCH, true);
        if (course->has_many_scales) {
            uint32_t scale = 2 + step / 2;
            input.gradient_scale = 1.0f / (float)scale;
        }
        train(&run, &input, step + 1);
        model_describe(run.model, ret_outcome->described[step], sizeof(ret_outcome->described[0]));
        for (uint32_t count = BATCH; count >= BATCH - 1 && step % 2 == 1; count--) {
            draw_batch(&run, 100 * step + count);
            const struct program_input evaluation = input_of(&run, count, false);
            forward(&run, &evaluation);
        }
    }
    assert_int_equal(model_fetch(run.model), STATUS_OK);
    digest_floats(model_params(run.model), model_layout(run.model)->value_count,
                  ret_outcome->digest);
    close_run(&run);
}

static bool has_graphs(const char *described)
{
    return strstr(described, "CUDA graphs") != NULL;
}

static void check_alike(const struct outcome *one, const struct outcome *other, const char *model)
{
    assert_int_equal(one->count, other->count);
    for (uint32_t i = 0; i < one->count; i++) {
        if (memcmp(&one->results[i].loss_sum, &other->results[i].loss_sum, sizeof(double)) != 0 ||
            one->results[i].correct_count != other->results[i].correct_count) {
            fail_msg("%s: pass %u has a loss of %a, %u right, and replayed %a, %u", model, i,
                     one->results[i].loss_sum, one->results[i].correct_count,
                     other->results[i].loss_sum, other->results[i].correct_count);
        }
    }
    assert_string_equal(one->digest, other->digest);
}

/* Launched one by one, then replayed; the second outcome is left in *ret_replayed. */
static void check_course(const struct course *course, struct outcome *ret_replayed)
{
    static struct outcome plain;
    run_course(course, false, &plain);
    run_course(course, true, ret_replayed);
    check_alike(&plain, ret_replayed, course->model);
    assert_false(has_graphs(plain.described[course->steps - 1]));
}

static const struct course lenet5 = {.model = "lenet5", .input = {1, 28, 28}, .steps = STEPS_MAX};

static void check_models(bool are_large, uint32_t steps)
{
    static struct outcome replayed;
    static const char *const large[] = {"resnet50v2", "resnet152v2", "vgg16"};
    static const char *const models[] = {
#define X(identifier, name, summary) name,
        MODEL_MAP(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        bool is_large = false;
        for (size_t k = 0; k < sizeof(large) / sizeof(large[0]); k++) {
            is_large = is_large || strcmp(models[i], large[k]) == 0;
        }
        const struct course course = {.model = models[i], .input = {3, 32, 32}, .steps = steps};
        if (is_large == are_large) {
            check_course(&course, &replayed);
            assert_true(has_graphs(replayed.described[steps - 1]));
        }
    }
}

static void models_end_with_the_same_bits(void **state)
{
    (void)state;
    check_models(false, STEPS_MAX);
}

static void large_models_end_with_the_same_bits(void **state)
{
    (void)state;
    check_models(true, 3); // one by one, captured, replayed
}

static void it_does_not_matter_who_makes_the_updates(void **state)
{
    (void)state;
    static struct outcome replayed;
    static const char *const models[] = {"lenet5", "cnn", "resnet20"};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        for (enum updates updates = UPDATES_EXCHANGED; updates <= UPDATES_HOST; updates++) {
            const struct course course = {
                .model = models[i], .input = {3, 32, 32}, .updates = updates, .steps = STEPS_MAX};
            check_course(&course, &replayed);
            assert_true(has_graphs(replayed.described[STEPS_MAX - 1]));
        }
    }
}

/* One launch for all buckets, or one for each, the last of them when the next step begins. */
static void it_does_not_matter_in_which_order_updates_are_made(void **state)
{
    (void)state;
    static struct outcome downwards, upwards;
    struct course course = {.model = "cnn", .input = {3, 32, 32}, .steps = STEPS_MAX};
    run_course(&course, true, &downwards);
    course.updates_upwards = true;
    run_course(&course, true, &upwards);
    check_alike(&downwards, &upwards, course.model);
}

static void nothing_is_captured_in_the_first_step(void **state)
{
    (void)state;
    static struct outcome replayed;
    check_course(&lenet5, &replayed);
    assert_false(has_graphs(replayed.described[0]));
    assert_true(has_graphs(replayed.described[1]));
    assert_string_equal(replayed.described[1], replayed.described[2]);
}

static void a_pass_that_waits_for_workers_is_not_captured(void **state)
{
    (void)state;
    static struct outcome replayed;
    const struct course course = {
        .model = "resnet20", .input = {3, 8, 8}, .steps = STEPS_MAX, .sums_over_workers = true};
    check_course(&course, &replayed);
    assert_false(has_graphs(replayed.described[2]));            // and one evaluation
    assert_true(has_graphs(replayed.described[STEPS_MAX - 1])); // but those are, from the second on
}

static void passes_beyond_those_that_are_captured_are_launched_one_by_one(void **state)
{
    (void)state;
    static struct outcome replayed;
    struct course course = lenet5;
    course.has_many_scales = true;
    check_course(&course, &replayed);
}

/* It is said once, and what was launched and what comes then is all the same. */
static void check_failure(const char *mode, const char *said)
{
    static struct outcome plain, replayed;
    char before[64], with[128];
    const char *old = getenv(MODE);
    snprintf(before, sizeof(before), "%s", old != NULL ? old : "");
    snprintf(with, sizeof(with), "%s,%s", before, mode);
    run_course(&lenet5, false, &plain);
    assert_int_equal(setenv(MODE, with, 1), 0);
    captured_log_begin();
    run_course(&lenet5, true, &replayed);
    char text[4096];
    snprintf(text, sizeof(text), "%s", captured_log_end());
    assert_int_equal(setenv(MODE, before, 1), 0);
    check_alike(&plain, &replayed, mode);
    for (uint32_t step = 0; step < STEPS_MAX; step++) {
        assert_false(has_graphs(replayed.described[step]));
    }
    const char *at = strstr(text, said);
    if (at == NULL || strstr(at + 1, "CUDA graphs are off") != NULL ||
        strstr(text, "Z error ") != NULL) {
        fail_msg("%s: not as expected: %s", mode, text);
    }
}

static void what_cannot_be_captured_is_launched_one_by_one(void **state)
{
    (void)state;
    log_init("test", LOG_INFO);
    check_failure("allocating", "CUDA graphs are off, and kernels are launched one by one: cannot "
                                "capture: cuDNN cannot run a convolution");
    check_failure("uninstantiable", "CUDA graphs are off, and kernels are launched one by one: "
                                    "cannot instantiate a graph: out of memory");
    check_failure("unlaunchable", "CUDA graphs are off, and kernels are launched one by one: "
                                  "cannot launch a graph: out of memory");
    log_init("test", LOG_WARN);
}

/* Large models take a minute, and come if they are asked for: test_replayed_steps large */
int main(int argc, char **argv)
{
    const struct CMUnitTest large_tests[] = {
        cmocka_unit_test(large_models_end_with_the_same_bits),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_end_with_the_same_bits),
        cmocka_unit_test(it_does_not_matter_who_makes_the_updates),
        cmocka_unit_test(it_does_not_matter_in_which_order_updates_are_made),
        cmocka_unit_test(nothing_is_captured_in_the_first_step),
        cmocka_unit_test(a_pass_that_waits_for_workers_is_not_captured),
        cmocka_unit_test(passes_beyond_those_that_are_captured_are_launched_one_by_one),
        cmocka_unit_test(what_cannot_be_captured_is_launched_one_by_one),
    };
    return argc > 1 && strcmp(argv[1], "large") == 0
               ? cmocka_run_group_tests(large_tests, NULL, NULL)
               : cmocka_run_group_tests(tests, NULL, NULL);
}
