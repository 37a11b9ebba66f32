/* Decides which passes of a convolution use Winograd's algorithm, F(4x4, 3x3) (Lavin and Gray
 * 2016). */
#ifndef WORKER_DEVICE_CPU_WINOGRAD_H
#define WORKER_DEVICE_CPU_WINOGRAD_H

#include "worker/device/cpu/node.h"

#include <oneapi/dnnl/dnnl.h>

/* A rule on shapes, never a timing: all workers of a job, and all modes that are compared, must
 * compute the same bits. `kind` is dnnl_forward_training, dnnl_backward_data or
 * dnnl_backward_weights. False for what the algorithm cannot do: it needs windows of 3x3, stride 1
 * and float32. The library may still lack it: oneDNN 3 has no Winograd for x86-64. */
bool winograd_is_wanted(const struct node *node, dnnl_prop_kind_t kind);

#endif
