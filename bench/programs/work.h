/* How much a training step asks of a machine at least: what a measured speed is put beside. */
#ifndef BENCH_PROGRAMS_WORK_H
#define BENCH_PROGRAMS_WORK_H

#include "worker/device/device.h"

/* Of one image in a training step, forward and backward. */
struct work {
    double operations; // of the products of convolutions and linear layers, two for each
    double bytes;      // of tensors between operations, each read and written once each way
};

/* element_bytes: of what lies between operations. */
struct work work_of(const struct op *ops, uint32_t op_count, uint32_t element_bytes);

#endif
