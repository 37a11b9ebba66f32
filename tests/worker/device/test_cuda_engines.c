/* Every model on GPUs that are only described: cuDNN has a plan for every convolution, and the
 * program has a place in memory. Needs no GPU, and no driver. */
#include "tests/worker/device/described_gpus.h"
#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/module.h"
#include "worker/device/cuda/program.h"
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct {
    const char *model;
    uint32_t channels, size, batch;
} programs[] = {
    {"lenet5", 1, 28, 64},     {"cnn", 3, 32, 128},        {"cnn", 3, 32, 5},
    {"resnet20", 3, 32, 128},  {"resnet50v2", 3, 128, 32}, {"resnet50v2", 3, 32, 3},
    {"resnet152v2", 3, 64, 8}, {"vgg16", 3, 32, 16},
};

static const char *const precisions[] = {"fp32", "tf32", "bf16"};

static void print_line(enum log_level level, const char *sentence)
{
    (void)level;
    print_message("%s\n", sentence);
}

static uint32_t missed[LOG_DEBUG + 1]; // lines about statistics that are left out, by level

static void count_missed(enum log_level level, const char *sentence)
{
    print_line(level, sentence);
    missed[level] += strstr(sentence, "leaves its statistics") != NULL ? 1 : 0;
}

static void try_programs(const struct dnn_target *target, const char *name)
{
    static struct network_plan plan;
    static float vector[1]; // an address; nothing is run
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        uint32_t bad_layer, size = programs[i].size;
        const struct shape input = {programs[i].channels, size, size};
        assert_int_equal(
            network_make_plan(models_find(programs[i].model), input, 10, &plan, &bad_layer),
            STATUS_OK);
        for (uint32_t precision = 0; precision < 3; precision++) {
            const struct program_options options = {
                .ops = plan.ops,
                .op_count = plan.op_count,
                .batch_size = programs[i].batch,
                .params = vector,
                .grads = vector,
                .statistics = vector,
                .precision = (enum precision)precision,
            };
            size_t bytes = 0;
            if (cuda_program_try(&options, target, &bytes) != STATUS_OK || bytes == 0) {
                fail_msg("%s at a batch of %u in %s has no program on %s", programs[i].model,
                         programs[i].batch, precisions[precision], name);
            }
            print_message("%s, %s, batch %u, %s: %zu MiB\n", name, programs[i].model,
                          programs[i].batch, precisions[precision], bytes >> 20);
        }
    }
}

static void every_model_has_engines_on_every_architecture(void **state)
{
    (void)state;
    report_set(print_line);
    for (size_t i = 0; i < DESCRIBED_GPU_COUNT; i++) {
        struct dnn_target target = {0};
        assert_int_equal(described_gpu_create(&described_gpus[i], &target.described), STATUS_OK);
        try_programs(&target, described_gpus[i].name);
        dnn_forget_device(target.described);
    }
}

/* Which it is without a driver, at least: see test_cuda_statistics.c. Who looks at warnings alone
 * is told once. */
static void statistics_are_left_out_where_they_have_no_engine(void **state)
{
    (void)state;
    static struct network_plan plan;
    static float vector[1];
    uint32_t bad_layer;
    assert_int_equal(network_make_plan(models_find("resnet20"), (struct shape){3, 32, 32}, 10,
                                       &plan, &bad_layer),
                     STATUS_OK);
    const struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = 128,
        .params = vector,
        .grads = vector,
        .statistics = vector,
        .precision = PRECISION_BF16,
    };
    struct dnn_target target = {.allows_nondeterministic = true};
    size_t bytes = 0;
    report_set(count_missed);
    assert_int_equal(described_gpu_create(&described_gpus[0], &target.described), STATUS_OK);
    assert_int_equal(cuda_program_try(&options, &target, &bytes), STATUS_OK);
    // With a driver's library at hand, cuDNN has engines, and nothing is left out.
    assert_int_equal(missed[LOG_WARN], missed[LOG_WARN] + missed[LOG_INFO] > 0);
    assert_true(missed[LOG_WARN] == 0 || missed[LOG_INFO] > 1);
    dnn_forget_device(target.described);
}

static void what_is_no_description_is_refused(void **state)
{
    (void)state;
    cudnnBackendDescriptor_t described = NULL;
    report_set(NULL);
    assert_int_equal(dnn_describe_device("{}", &described), STATUS_UNSUPPORTED);
    assert_null(described);
}

/* Without a GPU the backend says why; with one it opens. */
static void the_backend_starts_or_says_why_not(void **state)
{
    (void)state;
    const struct device_ops *ops = ringside_cuda_module(print_line);
    char why[256] = "", text[512] = "";
    ops->list(text, sizeof(text));
    assert_non_null(strstr(text, "cuDNN"));
    const struct device_options options = {.threads = 1};
    struct device *device = NULL;
    if (ops->is_available(why, sizeof(why))) {
        assert_int_equal(ops->open(&options, &device), STATUS_OK);
        ops->close(device);
    } else {
        assert_true(why[0] != '\0');
        assert_int_equal(ops->open(&options, &device), STATUS_UNSUPPORTED);
        assert_null(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_engines_on_every_architecture),
        cmocka_unit_test(statistics_are_left_out_where_they_have_no_engine),
        cmocka_unit_test(what_is_no_description_is_refused),
        cmocka_unit_test(the_backend_starts_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
