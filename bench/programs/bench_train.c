/* Speed of training in one process: forward, backward and optimizer over batches in memory.
 *
 *     bench_train MODEL BATCH THREADS [CONV [DEVICE [ROUNDS [SIZE [PRECISION [GRAPHS [BITS [ENGINES
 * [profile]]]]]]]]]
 *
 * SIZE: rows and columns of the images; 0: 32 (lenet5: 28). GRAPHS: on or off, CUDA graphs. BITS:
 * same (as in every run) or any (--allow-nondeterministic). ENGINES: heuristic or timed
 * (--cuda-engines). With `profile` it prints what each operation takes of a step on a GPU instead,
 * and the operations and bytes that it has for that.
 *
 * Prints a line of JSON for each round of about half a second, so that a script can interleave it
 * with a peer. */
#include "bench/programs/work.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_formulas.h"
#include "worker/model/model.h"
#include "worker/model/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CLASSES        10
#define ROUND_NS       500000000
#define WARMUP_STEPS   5
#define WARMUP_ON_GPU  20 // until its clocks are up, as of the peer
#define BATCHES        4  // in memory, taken in turn
#define LEARNING_RATE  0.01
#define PROFILED_STEPS 10
#define TIMING_MS_MAX  120000 // of engines, as in a job

struct bench {
    struct device *device;
    struct model *model;
    struct optimizer *optimizer;
    struct program_input inputs[BATCHES];
    struct work work; // of an image
    bool device_updates;
    uint32_t batch;
    uint64_t step;
    uint64_t forward_ns, backward_ns, optimizer_ns;
    char program[512]; // what was compiled, and captured in the warm-up
};

static void fill_batch(struct bench *bench, struct shape shape, uint32_t index)
{
    size_t pixels = (size_t)shape.channels * shape.rows * shape.columns * bench->batch;
    size_t pixel_bytes = (pixels * sizeof(float) + 63) / 64 * 64;
    size_t bytes = pixel_bytes + bench->batch * (sizeof(uint64_t) + sizeof(uint32_t));
    float *values = memory_create_large(bytes); // as a batcher has it, and until the end
    if (values == NULL) {
        abort();
    }
    uint64_t *keys = (void *)((char *)values + pixel_bytes);
    uint32_t *labels = (void *)(keys + bench->batch);
    device_lock_memory(bench->device, values, bytes);
    uint64_t key = random_key(1, RANDOM_SYNTHETIC, index, 0);
    for (size_t i = 0; i < pixels; i++) {
        values[i] = 2 * random_unit_float(random_element(key, (uint32_t)i)) - 1;
    }
    for (uint32_t n = 0; n < bench->batch; n++) {
        labels[n] = random_element(key, n) % CLASSES;
        keys[n] = random_key(1, RANDOM_DROPOUT, index, n);
    }
    bench->inputs[index] = (struct program_input){.pixels = values,
                                                  .labels = labels,
                                                  .sample_keys = keys,
                                                  .count = bench->batch,
                                                  .gradient_scale = 1.0f / (float)bench->batch,
                                                  .is_training = true,
                                                  .keeps_gradients = bench->device_updates};
}

static enum status update(struct bench *bench)
{
    const struct layout *layout = model_layout(bench->model);
    struct optimizer_update plan;
    enum status status = STATUS_OK;
    bench->step++;
    if (!bench->device_updates) {
        optimizer_apply(bench->optimizer, (struct span){0, layout->value_count},
                        model_params(bench->model), model_grads(bench->model), bench->step,
                        LEARNING_RATE);
        return STATUS_OK;
    }
    optimizer_plan_update(bench->optimizer, (struct span){0, layout->value_count}, bench->step,
                          LEARNING_RATE, &plan);
    for (uint32_t i = 0; i < layout->bucket_count && status == STATUS_OK; i++) {
        status = model_apply(bench->model, i, &plan);
    }
    return status;
}

/* A device that goes on by itself is still at work when a step ends: then it is in the next one,
 * whose first wait is for its loss. So what the first step of a round has too much its last one has
 * too little. */
static enum status step(struct bench *bench)
{
    struct program_result result;
    const struct layout *layout = model_layout(bench->model);
    uint64_t start_ns = clock_now_ns();
    enum status status = model_begin_forward(bench->model, &bench->inputs[bench->step % BATCHES]);
    uint64_t forward_ns = clock_now_ns();
    for (uint32_t i = 0; i < layout->bucket_count && status == STATUS_OK; i++) {
        status = model_backward(bench->model, i);
    }
    status = status == STATUS_OK ? model_await_result(bench->model, &result) : status;
    for (uint32_t i = 0; i < layout->bucket_count && status == STATUS_OK && !bench->device_updates;
         i++) {
        status = model_await_gradients(bench->model, i);
    }
    uint64_t backward_ns = clock_now_ns();
    status = status == STATUS_OK ? update(bench) : status;
    uint64_t end_ns = clock_now_ns();
    bench->forward_ns += forward_ns - start_ns;
    bench->backward_ns += backward_ns - forward_ns;
    bench->optimizer_ns += end_ns - backward_ns;
    return status;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* The most memory that the process has had. */
static double largest_memory_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static enum status run_round(struct bench *bench, const char *model, uint32_t threads)
{
    uint64_t start_ns = clock_now_ns(), steps = 0;
    double start_cpu = cpu_seconds();
    bench->forward_ns = bench->backward_ns = bench->optimizer_ns = 0;
    while (clock_now_ns() - start_ns < ROUND_NS) {
        enum status status = step(bench);
        if (status != STATUS_OK) {
            return status;
        }
        steps++;
    }
    double seconds = (double)(clock_now_ns() - start_ns) / 1e9,
           images = (double)(steps * bench->batch);
    double per_step = 1e6 * (double)steps;
    printf("{\"model\":\"%s\",\"batch\":%u,\"threads\":%u,\"images_per_second\":%.1f,"
           "\"images_per_cpu_second\":%.1f,\"memory_mb\":%.0f,\"operations_per_image\":%.4g,"
           "\"bytes_per_image\":%.4g,\"ms\":{\"forward\":%.3f,\"backward\":%.3f,"
           "\"optimizer\":%.3f},\"program\":\"%s\"}\n",
           model, bench->batch, threads, images / seconds, images / (cpu_seconds() - start_cpu),
           largest_memory_mb(), bench->work.operations, bench->work.bytes,
           (double)bench->forward_ns / per_step, (double)bench->backward_ns / per_step,
           (double)bench->optimizer_ns / per_step, bench->program);
    fflush(stdout);
    return STATUS_OK;
}

static struct shape shape_of(const char *model, uint32_t size)
{
    bool is_lenet5 = strcmp(model, "lenet5") == 0;
    uint32_t pixels = size > 0 ? size : is_lenet5 ? 28 : 32;
    return (struct shape){is_lenet5 ? 1 : 3, pixels, pixels};
}

static struct work count_work(const char *name, struct shape shape, enum precision precision)
{
    static struct network_plan plan;
    uint32_t bad_layer;
    if (network_make_plan(models_find(name), shape, CLASSES, &plan, &bad_layer) != STATUS_OK) {
        abort(); // the model has been made
    }
    return work_of(plan.ops, plan.op_count, precision == PRECISION_BF16 ? 2 : 4);
}

/* Prints what each operation takes of a step, and what it has to do for that. */
static enum status profile(struct bench *bench, const char *model, struct shape shape,
                           const char *precision)
{
    static struct network_plan plan;
    static struct op_time sums[DEVICE_OPS_MAX], times[DEVICE_OPS_MAX];
    uint32_t bad_layer, element_bytes = strcmp(precision, "bf16") == 0 ? 2 : 4;
    if (network_make_plan(models_find(model), shape, CLASSES, &plan, &bad_layer) != STATUS_OK) {
        abort(); // the model has been made
    }
    for (uint32_t k = 0; k < PROFILED_STEPS; k++) {
        enum status status = step(bench);
        if (status == STATUS_OK) {
            status = model_read_times(bench->model, times);
        }
        if (status != STATUS_OK) {
            fprintf(stderr, "bench_train: the device does not time its operations: %s\n",
                    status_text(status));
            return status;
        }
        for (uint32_t i = 0; i < plan.op_count; i++) {
            sums[i].forward_us += times[i].forward_us / PROFILED_STEPS;
            sums[i].backward_us += times[i].backward_us / PROFILED_STEPS;
        }
    }
    printf("{\"model\":\"%s\",\"batch\":%u,\"operations\":[", model, bench->batch);
    for (uint32_t i = 0; i < plan.op_count; i++) {
        const struct op *op = &plan.ops[i];
        const struct work work = work_of(op, 1, element_bytes);
        printf("%s{\"operation\":%u,\"kind\":\"%s\",\"window\":%u,\"x\":[%u,%u,%u],"
               "\"y\":[%u,%u,%u],\"us\":%.2f,\"forward_us\":%.2f,\"backward_us\":%.2f,"
               "\"operations\":%.4g,\"bytes\":%.4g}",
               i > 0 ? "," : "", i, op_kind_name(op->kind), op->window, op->x.channels, op->x.rows,
               op->x.columns, op->y.channels, op->y.rows, op->y.columns,
               (double)sums[i].forward_us + (double)sums[i].backward_us, (double)sums[i].forward_us,
               (double)sums[i].backward_us, work.operations * bench->batch,
               work.bytes * bench->batch);
    }
    printf("]}\n");
    return STATUS_OK;
}

static enum status open_bench(struct bench *bench, const char *name, struct shape shape,
                              uint32_t threads, const char *const algorithms[7])
{
    const char *conv = algorithms[0], *device_name = algorithms[1], *precision = algorithms[2];
    struct device_options device = {.threads = threads,
                                    .replays_launches = strcmp(algorithms[3], "off") != 0,
                                    .allows_nondeterministic = strcmp(algorithms[4], "any") == 0,
                                    .timing_ms_max =
                                        strcmp(algorithms[5], "timed") == 0 ? TIMING_MS_MAX : 0,
                                    .times_operations = algorithms[6] != NULL};
    enum status status = device_open(device_name, &device, &bench->device);
    if (status != STATUS_OK) {
        return status;
    }
    struct model_options options = {
        .name = name,
        .input = shape,
        .class_count = CLASSES,
        .batch_size = bench->batch,
        .seed = 1,
        .bucket_bytes = 4 << 20,
        .conv = strcmp(conv, "direct") == 0     ? CONV_DIRECT
                : strcmp(conv, "winograd") == 0 ? CONV_WINOGRAD
                                                : CONV_AUTO,
        .precision = strcmp(precision, "bf16") == 0   ? PRECISION_BF16
                     : strcmp(precision, "tf32") == 0 ? PRECISION_TF32
                                                      : PRECISION_FP32,
    };
    status = model_create(&options, bench->device, &bench->model);
    if (status != STATUS_OK) {
        return status;
    }
    struct optimizer_settings settings = {.momentum = 0.9};
    status = optimizer_create(OPTIMIZER_MOMENTUM, &settings,
                              model_layout(bench->model)->value_count, &bench->optimizer);
    bench->device_updates = model_may_update(bench->model);
    if (status == STATUS_OK && bench->device_updates) {
        status = model_hold(bench->model, bench->optimizer);
    }
    bench->work = count_work(name, shape, options.precision);
    for (uint32_t i = 0; i < BATCHES; i++) {
        fill_batch(bench, shape, i);
    }
    return status;
}

int main(int argc, char **argv)
{
    memory_keep_heap();
    log_init("bench_train", LOG_WARN);
    if (argc < 4) {
        fprintf(stderr, "usage: bench_train MODEL BATCH THREADS [CONV [DEVICE [ROUNDS [SIZE "
                        "[PRECISION [GRAPHS [BITS [ENGINES [profile]]]]]]]]]\n");
        return 2;
    }
    static struct bench bench;
    bench.batch = (uint32_t)strtoul(argv[2], NULL, 10);
    uint32_t threads = (uint32_t)strtoul(argv[3], NULL, 10);
    unsigned long rounds = argc > 6 ? strtoul(argv[6], NULL, 10) : 1;
    struct shape shape = shape_of(argv[1], argc > 7 ? (uint32_t)strtoul(argv[7], NULL, 10) : 0);
    const char *const algorithms[] = {
        argc > 4 ? argv[4] : "auto",   argc > 5 ? argv[5] : "cpu",
        argc > 8 ? argv[8] : "fp32",   argc > 9 ? argv[9] : "on",
        argc > 10 ? argv[10] : "same", argc > 11 ? argv[11] : "heuristic",
        argc > 12 ? argv[12] : NULL};
    if (open_bench(&bench, argv[1], shape, threads, algorithms) != STATUS_OK) {
        return 1;
    }
    unsigned warmup = strncmp(algorithms[1], "cuda", 4) == 0 ? WARMUP_ON_GPU : WARMUP_STEPS;
    for (unsigned i = 0; i < warmup; i++) {
        if (step(&bench) != STATUS_OK) {
            return 1;
        }
    }
    if (algorithms[6] != NULL) {
        return profile(&bench, argv[1], shape, algorithms[2]) == STATUS_OK ? 0 : 1;
    }
    model_describe(bench.model, bench.program, sizeof(bench.program));
    for (unsigned long i = 0; i < rounds; i++) {
        if (run_round(&bench, argv[1], threads) != STATUS_OK) {
            return 1;
        }
    }
    return 0;
}
