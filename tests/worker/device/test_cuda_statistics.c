/* Convolutions with statistics on GPUs that are only described: cuDNN has an engine for each that
 * stands before a normalisation, in bfloat16. It compiles them, and then wants a driver to give
 * them to: see cuda_fake/driver.c. */
#include "tests/worker/device/described_gpus.h"
#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/program.h"
#include "worker/model/models.h"

#include <dlfcn.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define SHAPES_MAX 32

static const struct {
    const char *model;
    uint32_t size, batch;
} programs[] = {{"resnet20", 32, 128}, {"resnet50v2", 128, 32}};

static void plan_model(size_t program, struct network_plan *ret_plan)
{
    const struct shape input = {3, programs[program].size, programs[program].size};
    uint32_t bad_layer;
    assert_int_equal(
        network_make_plan(models_find(programs[program].model), input, 10, ret_plan, &bad_layer),
        STATUS_OK);
}

/* The shapes of convolutions before a normalisation, each once; returns how many. In these models
 * they are those without a bias. */
static uint32_t list_shapes(const struct network_plan *plan, uint32_t batch,
                            struct dnn_conv ret_shapes[SHAPES_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        struct dnn_conv shape;
        memset(&shape, 0, sizeof(shape)); // padding, too, which is compared
        shape.batch = batch;
        shape.inputs = op->x.channels;
        shape.outputs = op->y.channels;
        shape.x_rows = op->x.rows;
        shape.x_columns = op->x.columns;
        shape.y_rows = op->y.rows;
        shape.y_columns = op->y.columns;
        shape.window = op->window;
        shape.stride = op->stride;
        shape.padding = op->padding;
        shape.has_statistics = true;
        bool is_known = op->kind != OP_CONV2D || op->has_bias;
        for (uint32_t k = 0; k < count && !is_known; k++) {
            is_known = memcmp(&shape, &ret_shapes[k], sizeof(shape)) == 0;
        }
        if (!is_known) {
            assert_true(count < SHAPES_MAX && plan->ops[i + 1].kind == OP_BATCH_NORM);
            memcpy(&ret_shapes[count++], &shape, sizeof(shape));
        }
    }
    return count;
}

static void plan_shape(const struct dnn_target *target, const char *gpu,
                       const struct dnn_conv *shape)
{
    struct dnn_plan plan;
    char why[DNN_WHY_BYTES];
    if (dnn_plan_conv(target, shape, DNN_FORWARD, &plan, why, sizeof(why)) != STATUS_OK) {
        fail_msg("%s has no statistics of %ux%u from %u to %u channels of %ux%u: %s", gpu,
                 shape->window, shape->window, shape->inputs, shape->outputs, shape->x_rows,
                 shape->x_columns, why);
    }
    print_message("%s, %ux%u %u->%u of %ux%u: engine %s\n", gpu, shape->window, shape->window,
                  shape->inputs, shape->outputs, shape->x_rows, shape->x_columns, plan.engine);
    dnn_plan_destroy(&plan);
}

static void convolutions_before_a_normalisation_have_statistics_in_bfloat16(void **state)
{
    (void)state;
    static struct network_plan plan;
    static struct dnn_conv shapes[SHAPES_MAX];
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        plan_model(i, &plan);
        uint32_t count = list_shapes(&plan, programs[i].batch, shapes);
        assert_true(count >= 6);
        for (size_t g = 0; g < DESCRIBED_GPU_COUNT; g++) {
            struct dnn_target target = {.precision = PRECISION_BF16};
            assert_int_equal(described_gpu_create(&described_gpus[g], &target.described),
                             STATUS_OK);
            for (uint32_t k = 0; k < count; k++) {
                plan_shape(&target, described_gpus[g].name, &shapes[k]);
            }
            dnn_forget_device(target.described);
        }
    }
}

static void convolutions_in_full_float_have_none(void **state)
{
    (void)state;
    static struct network_plan plan;
    static struct dnn_conv shapes[SHAPES_MAX];
    plan_model(0, &plan);
    list_shapes(&plan, programs[0].batch, shapes);
    for (size_t g = 0; g < DESCRIBED_GPU_COUNT; g++) {
        struct dnn_target target = {.precision = PRECISION_FP32};
        struct dnn_plan none;
        assert_int_equal(described_gpu_create(&described_gpus[g], &target.described), STATUS_OK);
        char why[DNN_WHY_BYTES] = "";
        assert_int_equal(dnn_plan_conv(&target, &shapes[1], DNN_FORWARD, &none, why, sizeof(why)),
                         STATUS_UNSUPPORTED);
        print_message("%s: %s\n", described_gpus[g].name, why);
        assert_non_null(strstr(why, "proposes"));
        assert_null(none.plan);
        dnn_forget_device(target.described);
    }
}

/* All plans of a program, those with statistics among them. */
static void a_program_with_statistics_is_made(void **state)
{
    (void)state;
    static struct network_plan plan;
    static float vector[1]; // an address; nothing is run
    plan_model(0, &plan);
    const struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = programs[0].batch,
        .params = vector,
        .grads = vector,
        .statistics = vector,
        .precision = PRECISION_BF16,
    };
    for (size_t g = 0; g < DESCRIBED_GPU_COUNT; g++) {
        struct dnn_target target = {.allows_nondeterministic = true};
        size_t bytes = 0;
        assert_int_equal(described_gpu_create(&described_gpus[g], &target.described), STATUS_OK);
        assert_int_equal(cuda_program_try(&options, &target, &bytes), STATUS_OK);
        assert_true(bytes > 0);
        dnn_forget_device(target.described);
    }
}

int main(void)
{
    // Found by its name when cuDNN looks for the driver.
    if (dlopen(CUDA_DRIVER, RTLD_NOW) == NULL) {
        print_message("cannot load the driver: %s\n", dlerror());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_before_a_normalisation_have_statistics_in_bfloat16),
        cmocka_unit_test(convolutions_in_full_float_have_none),
        cmocka_unit_test(a_program_with_statistics_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
