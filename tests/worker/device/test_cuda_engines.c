/* Every model on GPUs that are only described: cuDNN has a plan for every convolution, and the
 * program has a place in memory. Needs no GPU, and no driver. */
#include "worker/device/cuda/module.h"
#include "worker/device/cuda/program.h"
#include "worker/device/cuda/report.h"
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define GPU_FORMAT                                                                                \
    "{\"deviceVer\":%u,\"driverVer\":13000,\"maxGridSize\":[2147483647,65535,65535],"             \
    "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"multiProcessorCount\":%u,"          \
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":%u,\"warpSize\":32,"  \
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%u,"                      \
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,"        \
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"isTccDriver\":0," \
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":85899345920,\"cudaDeviceId\":0,"                  \
    "\"deviceName\":\"%s\"}"

static const struct gpu {
    const char *name;
    unsigned version, processors, cache_bytes, shared_bytes;
} gpus[] = {
    {"A100", 800, 108, 41943040, 166912},
    {"H200", 900, 132, 62914560, 232448},
};

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
    for (size_t i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++) {
        const struct gpu *gpu = &gpus[i];
        struct dnn_target target = {0};
        char json[1024];
        snprintf(json, sizeof(json), GPU_FORMAT, gpu->version, gpu->processors, gpu->cache_bytes,
                 gpu->shared_bytes, gpu->name);
        assert_int_equal(dnn_describe_device(json, &target.described), STATUS_OK);
        try_programs(&target, gpu->name);
        dnn_forget_device(target.described);
    }
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
    if (!ops->is_available(why, sizeof(why))) {
        const struct device_options options = {.threads = 1};
        struct device *device = NULL;
        assert_true(why[0] != '\0');
        assert_int_equal(ops->open(&options, &device), STATUS_UNSUPPORTED);
        assert_null(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_engines_on_every_architecture),
        cmocka_unit_test(what_is_no_description_is_refused),
        cmocka_unit_test(the_backend_starts_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
