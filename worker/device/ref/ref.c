/* The reference backend: plain loops on the calling thread. Slow, and there to be believed. */
#include "worker/device/backends.h"
#include "worker/device/ref/program.h"

#include <stdlib.h>

static bool is_available(char *ret_why, size_t why_size)
{
    if (why_size > 0) {
        ret_why[0] = '\0';
    }
    return true;
}

static enum status open_ref(const struct device_options *options, struct device **ret_device)
{
    (void)options; // it has one thread, whatever it may use
    struct device *device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return STATUS_NO_MEMORY;
    }
    device->ops = &device_ref_ops;
    *ret_device = device;
    return STATUS_OK;
}

static enum status compile(struct device *device, const struct program_options *options,
                           struct program **ret_program)
{
    (void)device; // programs need nothing of it
    return ref_program_create(options, ret_program);
}

static void close_ref(struct device *device)
{
    free(device);
}

const struct device_ops device_ref_ops = {
    .name = "ref",
    .summary = "plain loops, one thread; the definition of right",
    .is_available = is_available,
    .open = open_ref,
    .compile = compile,
    .describe = ref_program_describe,
    .close = close_ref,
};
