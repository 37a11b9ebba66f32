/* The seam between a program and the CUDA backend, which is a library of its own: loaded when it is
 * asked for, so that a build with CUDA runs where CUDA's libraries are not. */
#ifndef WORKER_DEVICE_CUDA_MODULE_H
#define WORKER_DEVICE_CUDA_MODULE_H

#include "common/base/log.h"
#include "worker/device/device.h"

#define CUDA_MODULE_ENTRY "ringside_cuda_module"

/* The backend. Its lines for the log go to `write`. */
const struct device_ops *ringside_cuda_module(void (*write)(enum log_level level,
                                                            const char *sentence));

#endif
