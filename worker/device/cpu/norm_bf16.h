/* The passes of norm_loops.h over bfloat16. */
#ifndef WORKER_DEVICE_CPU_NORM_BF16_H
#define WORKER_DEVICE_CPU_NORM_BF16_H

#include "worker/device/cpu/norm_loops.h"

void norm_bf16_statistics(const struct norm_plane *plane, const struct norm_lanes *lanes,
                          struct norm_sums *sums);
void norm_bf16_apply(const struct norm_plane *plane, const struct norm_lanes *lanes);
void norm_bf16_reduce(const struct norm_plane *plane, const struct norm_lanes *lanes,
                      struct norm_sums *sums);
void norm_bf16_gradient(const struct norm_plane *plane, const struct norm_lanes *lanes);

#endif
