/* How many launches a training step of each model has on the fake runtime, where nothing is run:
 * FAKE_CUDA=idle. */
#include "common/base/log.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_formulas.h"
#include "worker/model/model.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULE      "ringside-cuda.so"
#define CLASSES     10
#define BATCH_MAX   1024
#define WARMUP      3
#define PATH_BYTES  4096
#define BUCKET_SIZE (4 << 20)

struct row {
    const char *model;
    struct shape input;
    uint32_t batch;
    enum precision precision;
    uint32_t launches_max; // of a step, copies among them
};

struct run {
    struct device *device;
    struct model *model;
    struct optimizer *optimizer;
    float *pixels;
    uint32_t labels[BATCH_MAX];
    uint64_t keys[BATCH_MAX];
};

/* What the module beside this program says that it was given to do. */
static uint64_t queued(void)
{
    char program[PATH_BYTES], path[PATH_BYTES + sizeof(MODULE)];
    union {
        void *symbol;
        uint64_t (*function)(void);
    } cast;
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    assert_true(length > 0);
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    snprintf(path, sizeof(path), "%s/%s", program, MODULE);
    void *module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(module); // the device has loaded it
    cast.symbol = dlsym(module, "fake_stream_queued");
    assert_non_null(cast.symbol);
    uint64_t count = cast.function();
    dlclose(module);
    return count;
}

static void open_run(struct run *run, const struct row *row)
{
    const struct device_options device = {.threads = 1, .replays_launches = true};
    const struct model_options options = {
        .name = row->model,
        .input = row->input,
        .class_count = CLASSES,
        .batch_size = row->batch,
        .seed = 7,
        .bucket_bytes = BUCKET_SIZE,
        .precision = row->precision,
    };
    const struct optimizer_settings settings = {.momentum = 0.9};
    size_t pixel_count =
        (size_t)row->batch * row->input.channels * row->input.rows * row->input.columns;
    *run = (struct run){0};
    assert_in_range(row->batch, 1, BATCH_MAX);
    assert_int_equal(device_open("cuda", &device, &run->device), STATUS_OK);
    assert_int_equal(model_create(&options, run->device, &run->model), STATUS_OK);
    assert_int_equal(optimizer_create(OPTIMIZER_MOMENTUM, &settings,
                                      model_layout(run->model)->value_count, &run->optimizer),
                     STATUS_OK);
    assert_int_equal(model_hold(run->model, run->optimizer), STATUS_OK);
    run->pixels = calloc(pixel_count, sizeof(float));
    assert_non_null(run->pixels);
}

static void close_run(struct run *run)
{
    model_destroy(run->model);
    optimizer_destroy(run->optimizer);
    device_close(run->device);
    free(run->pixels);
}

/* As the trainer does it where one worker makes its updates. */
static void train(struct run *run, const struct row *row, uint64_t number)
{
    const struct program_input input = {
        .pixels = run->pixels,
        .labels = run->labels,
        .sample_keys = run->keys,
        .count = row->batch,
        .gradient_scale = 1,
        .is_training = true,
        .keeps_gradients = true,
    };
    uint32_t bucket_count = model_layout(run->model)->bucket_count;
    struct program_result result;
    struct optimizer_update update;
    assert_int_equal(model_begin_forward(run->model, &input), STATUS_OK);
    for (uint32_t bucket = 0; bucket < bucket_count; bucket++) {
        assert_int_equal(model_backward(run->model, bucket), STATUS_OK);
    }
    assert_int_equal(model_await_result(run->model, &result), STATUS_OK);
    optimizer_plan_update(run->optimizer, (struct span){0, 1}, number, 0.1, &update);
    for (uint32_t bucket = 0; bucket < bucket_count; bucket++) {
        assert_int_equal(model_apply(run->model, bucket, &update), STATUS_OK);
    }
}

static uint64_t launches_of_a_step(const struct row *row)
{
    static struct run run;
    char described[4096];
    open_run(&run, row);
    uint64_t number = 1;
    while (number <= WARMUP) {
        train(&run, row, number++);
    }
    uint64_t before = queued();
    train(&run, row, number);
    uint64_t count = queued() - before;
    model_describe(run.model, described, sizeof(described));
    assert_non_null(strstr(described, " in 2 CUDA graphs"));
    close_run(&run);
    return count;
}

static void check(const struct row *row)
{
    uint64_t count = launches_of_a_step(row);
    // Of a step that has become much shorter the bound should follow.
    if (count > row->launches_max || count + count / 4 < row->launches_max) {
        fail_msg("a step of %s at %u images has %llu launches and copies, and may have %u",
                 row->model, row->batch, (unsigned long long)count, row->launches_max);
    }
}

static void a_step_has_few_launches(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"lenet5", {1, 28, 28}, 128, PRECISION_FP32, 40},
        {"cnn", {3, 32, 32}, 128, PRECISION_FP32, 50},
        {"vgg16", {3, 32, 32}, 32, PRECISION_BF16, 103},
        {"resnet20", {3, 32, 32}, 128, PRECISION_BF16, 124},
        {"resnet20", {3, 32, 32}, 1024, PRECISION_FP32, 152}, // more than the cache holds
        {"resnet50v2", {3, 32, 32}, 128, PRECISION_BF16, 308},
        {"resnet50v2", {3, 128, 128}, 256, PRECISION_BF16, 328},
        {"resnet152v2", {3, 32, 32}, 32, PRECISION_BF16, 853},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check(&rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_few_launches),
    };
    log_init("test", LOG_WARN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
