/* How long each operation takes on the GPU, by events around what it launches. For benchmarks:
 * without CUDA graphs, so that what the host needs for a launch shows where that is longer. */
#ifndef WORKER_DEVICE_CUDA_NODE_TIMES_H
#define WORKER_DEVICE_CUDA_NODE_TIMES_H

#include "worker/device/cuda/context.h"

enum node_pass { NODE_FORWARD, NODE_BACKWARD };

/* Zeroed: measures nothing. */
struct node_times {
    cudaEvent_t *events; // (2, node_count, 2): begin and end of each pass of each node; owned
    uint32_t node_count;
};

enum status node_times_init(struct node_times *times, uint32_t node_count);
void node_times_finish(struct node_times *times); // zeroed is fine

/* Before a node launches a pass, and after. Do nothing where nothing is measured. */
enum status node_times_begin(struct node_times *times, enum node_pass pass, uint32_t node,
                             cudaStream_t stream);
enum status node_times_end(struct node_times *times, enum node_pass pass, uint32_t node,
                           cudaStream_t stream);

/* Of the last training step, an element for each operation. What several nodes do for one is added
 * up; what one node does for several is the first one's. Waits. */
enum status node_times_read(struct node_times *times, const struct graph *graph,
                            cudaStream_t stream, uint32_t op_count, struct op_time *ret_times);

#endif
