/* Ties a fault of the GPU to the operation that caused it (--cuda-sync-check). */
#ifndef WORKER_DEVICE_CUDA_NODE_CHECK_H
#define WORKER_DEVICE_CUDA_NODE_CHECK_H

#include "worker/device/cuda/node_times.h"

/* After a node has queued its work, with the status of that: waits until the GPU has done it. What
 * failed is reported with the node's operation, its number and its shapes. */
enum status node_check(const struct node *node, uint32_t op_index, enum node_pass pass,
                       enum status queued);

#endif
