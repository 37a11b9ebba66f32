/* Every model makes three steps on GPUs that are only described: cuDNN plans and packs, cuBLASLt
 * lays out, and what they would launch is examined. Needs no GPU, and no driver. */
#include "tests/worker/device/cuda_described/launches.h"
#include "tests/worker/device/described_gpus.h"
#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/program.h"
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dlfcn.h>
#include <stdlib.h>

#define STEPS    3
#define RESNET20 4 // of programs

static const struct {
    const char *model;
    uint32_t channels, size, batch;
} programs[] = {
    {"lenet5", 1, 28, 64},    {"lenet5", 1, 28, 3},      {"cnn", 3, 32, 128},
    {"cnn", 3, 32, 5},        {"resnet20", 3, 32, 128},  {"resnet50v2", 3, 128, 32},
    {"resnet50v2", 3, 32, 3}, {"resnet152v2", 3, 64, 8}, {"vgg16", 3, 32, 16},
};

static const char *const precisions[] = {"fp32", "tf32", "bf16"};

static void print_line(enum log_level level, const char *sentence)
{
    (void)level;
    print_message("%s\n", sentence);
}

/* The host's side of a program. */
struct batch {
    float *params, *grads, *statistics, *pixels;
    uint32_t *labels;
    uint64_t *sample_keys;
};

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count + 1, bytes);
    assert_non_null(memory);
    return memory;
}

static void create_batch(const struct network_plan *plan, uint32_t batch_size,
                         struct batch *ret_batch)
{
    const struct shape x = plan->ops[0].x;
    *ret_batch = (struct batch){
        .params = allocate(plan->value_count, sizeof(float)),
        .grads = allocate(plan->value_count, sizeof(float)),
        .statistics = allocate(plan->statistic_count, sizeof(float)),
        .pixels = allocate((size_t)batch_size * x.channels * x.rows * x.columns, sizeof(float)),
        .labels = allocate(batch_size, sizeof(uint32_t)),
        .sample_keys = allocate(batch_size, sizeof(uint64_t)),
    };
}

static void destroy_batch(struct batch *batch)
{
    free(batch->params);
    free(batch->grads);
    free(batch->statistics);
    free(batch->pixels);
    free(batch->labels);
    free(batch->sample_keys);
}

/* One program on one GPU. */
struct trial {
    size_t program; // of programs
    enum precision precision;
    bool is_trained;
};

static void run_steps(const struct trial *trial, struct program *program, const struct batch *batch,
                      uint32_t op_count)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        const struct program_input input = {
            .pixels = batch->pixels,
            .labels = batch->labels,
            .sample_keys = batch->sample_keys,
            .count = programs[trial->program].batch,
            .gradient_scale = 1,
            .is_training = trial->is_trained,
        };
        struct program_result result;
        assert_int_equal(program->ops->forward(program, &input, &result), STATUS_OK);
        if (trial->is_trained) {
            assert_int_equal(program->ops->backward(program, op_count - 1, 0), STATUS_OK);
            assert_int_equal(program->ops->await(program, 0), STATUS_OK);
        }
    }
}

/* Convolutions of a step, and matrix products: forward, and the gradients of weights and of x but
 * for the first operation. Statistics, where they may be, are of convolutions without a bias: a
 * normalisation follows these. */
static struct launches expected(const struct network_plan *plan, bool is_trained)
{
    struct launches expected = {0};
    for (uint32_t i = 0; i < plan->op_count; i++) {
        uint32_t gradients = i == 0 ? 1 : 2, passes = is_trained ? 1 + gradients : 1;
        expected.convolutions += plan->ops[i].kind == OP_CONV2D ? passes : 0;
        expected.products += plan->ops[i].kind == OP_LINEAR ? passes : 0;
        expected.statistics += plan->ops[i].kind == OP_CONV2D && !plan->ops[i].has_bias ? 1 : 0;
    }
    return expected;
}

static void plan_network(const struct trial *trial, struct network_plan *ret_plan)
{
    uint32_t bad_layer, size = programs[trial->program].size;
    const struct shape input = {programs[trial->program].channels, size, size};
    const struct network *network = models_find(programs[trial->program].model);
    assert_int_equal(network_make_plan(network, input, 10, ret_plan, &bad_layer), STATUS_OK);
}

static void check_launches(const struct trial *trial, const struct network_plan *plan,
                           bool has_statistics, const char *gpu)
{
    const struct launches found = launches_take(), once = expected(plan, trial->is_trained);
    if (found.defect[0] != '\0') {
        fail_msg("%s, batch %u, %s, %s: %s", programs[trial->program].model,
                 programs[trial->program].batch, precisions[trial->precision], gpu, found.defect);
    }
    assert_int_equal(found.convolutions, STEPS * once.convolutions);
    assert_int_equal(found.products, STEPS * once.products);
    assert_int_equal(found.statistics, has_statistics ? STEPS * once.statistics : 0);
}

static void run_trial(const struct trial *trial, const struct dnn_target *target, const char *gpu)
{
    static struct network_plan plan;
    struct batch batch;
    struct program *program;
    plan_network(trial, &plan);
    create_batch(&plan, programs[trial->program].batch, &batch);
    const struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = programs[trial->program].batch,
        .params = batch.params,
        .grads = trial->is_trained ? batch.grads : NULL,
        .statistics = batch.statistics,
        .precision = trial->precision,
    };
    // The handle is an address: nobody looks behind it.
    struct cuda_place place = {.dnn = target, .blas = (cublasLtHandle_t)&batch};
    assert_int_equal(cudaStreamCreateWithFlags(&place.stream, cudaStreamNonBlocking), cudaSuccess);
    launches_take();
    assert_int_equal(cuda_program_create(&options, &place, &program), STATUS_OK);
    run_steps(trial, program, &batch, plan.op_count);
    check_launches(trial, &plan, target->allows_nondeterministic, gpu);
    program->ops->destroy(program);
    cudaStreamDestroy(place.stream);
    destroy_batch(&batch);
}

static void every_model_hands_the_libraries_what_they_were_told(void **state)
{
    (void)state;
    report_set(print_line);
    for (size_t i = 0; i < DESCRIBED_GPU_COUNT; i++) {
        struct dnn_target target = {0};
        assert_int_equal(described_gpu_create(&described_gpus[i], &target.described), STATUS_OK);
        for (size_t k = 0; k < 6 * (sizeof(programs) / sizeof(programs[0])); k++) {
            const struct trial trial = {.program = k / 6,
                                        .precision = (enum precision)(k / 2 % 3),
                                        .is_trained = k % 2 == 0};
            run_trial(&trial, &target, described_gpus[i].name);
        }
        dnn_forget_device(target.described);
    }
}

/* Those of resnet20, which cuDNN compiles: that wants a driver to give them to. */
static void statistics_are_handed_over_with_their_convolutions(void **state)
{
    (void)state;
    if (dlopen(CUDA_DRIVER, RTLD_NOW) == NULL) { // found by its name when cuDNN looks for it
        fail_msg("cannot load the driver: %s", dlerror());
    }
    struct dnn_target target = {.allows_nondeterministic = true};
    const struct trial trial = {
        .program = RESNET20, .precision = PRECISION_BF16, .is_trained = true};
    assert_int_equal(described_gpu_create(&described_gpus[2], &target.described), STATUS_OK);
    run_trial(&trial, &target, described_gpus[2].name);
    dnn_forget_device(target.described);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_hands_the_libraries_what_they_were_told),
        cmocka_unit_test(statistics_are_handed_over_with_their_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
