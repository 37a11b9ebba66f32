/* What the parts of a program share: program.c (create, memory) and passes.c (forward, backward,
 * updates). */
#ifndef WORKER_DEVICE_CUDA_PROGRAM_STATE_H
#define WORKER_DEVICE_CUDA_PROGRAM_STATE_H

#include "worker/device/cuda/node_times.h"
#include "worker/device/cuda/program.h"
#include "worker/device/cuda/replay.h"
#include "worker/device/cuda/transfer.h"
#include "worker/device/cuda/updates.h"

struct cuda_program {
    struct program base;
    struct node_context context;
    struct graph graph;
    struct transfer transfer; // of parameters and gradients
    struct updates updates;   // of parameters, if the program makes them
    struct replay replay;     // of what passes launch
    bool checks_nodes;        // waits for each, and names it if it fails
    struct node_times times;  // of nodes, where they are measured
    bool keeps_gradients;     // those of the last forward stay on the GPU
    float *statistics;        // host, borrowed
    uint32_t op_count;
    size_t value_count, statistic_count, pixel_count;
    float *pixels; // (N, C, H, W), device memory, owned, as is all that follows
    void *arena, *vectors;
    size_t arena_bytes, vector_bytes;

    // Pinned, on the host: what a forward brings back, and when.
    cudaEvent_t result_is_there;
    double *losses;
    uint32_t *hits;
};

/* Lengths of weight and bias of an operation, which lie behind each other. */
static inline size_t cuda_param_count(const struct op *op)
{
    return op_weight_count(op) + (op->has_bias ? op->y.channels : 0);
}

/* How many units a program runs in, at most. */
static inline uint32_t cuda_unit_count(const struct cuda_program *program)
{
    return program->graph.node_count + program->op_count;
}

void cuda_program_destroy(struct program *base);

extern const struct program_ops cuda_program_ops; // passes.c

#endif
