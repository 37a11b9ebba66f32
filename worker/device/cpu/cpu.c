/* The oneDNN backend. */
#include "worker/device/backends.h"
#include "worker/device/cpu/onednn.h"
#include "worker/device/cpu/program.h"

#include <omp.h>

#include <stdlib.h>

struct cpu_device {
    struct device base;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint32_t threads;
};

static bool is_available(char *ret_why, size_t why_size)
{
    (void)ret_why;
    (void)why_size;
    return true; // oneDNN has code for every x86-64, and references for the rest
}

static bool has_precision(enum precision precision)
{
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    bool has_bf16 = (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
    return precision == PRECISION_BF16 && has_bf16;
}

static void close_cpu(struct device *base)
{
    struct cpu_device *device = (struct cpu_device *)base;
    if (device->stream != NULL) {
        dnnl_stream_destroy(device->stream);
    }
    if (device->engine != NULL) {
        dnnl_engine_destroy(device->engine);
    }
    free(device);
}

static enum status open_cpu(const struct device_options *options, struct device **ret_device)
{
    struct cpu_device *device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return STATUS_NO_MEMORY;
    }
    device->base.ops = &device_cpu_ops;
    device->threads = options->threads;
    // oneDNN takes its teams from OpenMP. With one thread no team is ever made.
    omp_set_num_threads((int)options->threads);
    enum status status =
        onednn_status(dnnl_engine_create(&device->engine, dnnl_cpu, 0), "create an engine");
    if (status == STATUS_OK) {
        status = onednn_status(
            dnnl_stream_create(&device->stream, device->engine, dnnl_stream_default_flags),
            "create a stream");
    }
    if (status != STATUS_OK) {
        close_cpu(&device->base);
        return status;
    }
    *ret_device = &device->base;
    return STATUS_OK;
}

static enum status compile(struct device *base, const struct program_options *options,
                           struct program **ret_program)
{
    const struct cpu_device *device = (const struct cpu_device *)base;
    omp_set_num_threads((int)device->threads);
    return cpu_program_create(options, device->engine, device->stream, device->threads,
                              ret_program);
}

const struct device_ops device_cpu_ops = {
    .name = "cpu",
    .summary = "oneDNN, blocked layouts",
    .is_available = is_available,
    .has_precision = has_precision,
    .has_conv_choice = true,
    .open = open_cpu,
    .compile = compile,
    .describe = cpu_program_describe,
    .close = close_cpu,
};
