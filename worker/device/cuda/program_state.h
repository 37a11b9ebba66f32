/* What the parts of a program share: program.c (create, memory) and passes.c (forward, backward,
 * updates). */
#ifndef WORKER_DEVICE_CUDA_PROGRAM_STATE_H
#define WORKER_DEVICE_CUDA_PROGRAM_STATE_H

#include "worker/device/cuda/input.h"
#include "worker/device/cuda/node_times.h"
#include "worker/device/cuda/peers.h"
#include "worker/device/cuda/program.h"
#include "worker/device/cuda/replay.h"
#include "worker/device/cuda/transfer.h"
#include "worker/device/cuda/updates.h"

struct cuda_program {
    struct program base;
    struct node_context context;
    struct graph graph;
    struct input input;           // batches
    struct transfer transfer;     // of parameters and gradients
    struct updates updates;       // of parameters, if the program makes them
    struct peers peers;           // with whose gradients those of this program are summed
    struct collective collective; // of NCCL, by which that may be done
    struct replay replay;         // of what passes launch
    bool checks_nodes;            // waits for each, and names it if it fails
    struct node_times times;      // of nodes, where they are measured
    struct recorder recorder;     // of what streams do, where that is asked for
    bool is_exposed;              // to servers: see program_expose
    bool keeps_gradients;         // those of the last forward stay on the GPU
    bool is_waiting;              // backward, from this operation down, for the rest of it
    uint32_t waiting_op;
    uint32_t op_count;
    size_t value_count, statistic_count, pixel_count;
    size_t input_bytes;    // of a batch, as it comes
    void *arena, *vectors; // device memory, owned
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

/* How many units a program runs in, at most: forward from each node on, backward down to each
 * operation, and the whole of forward. */
static inline uint32_t cuda_unit_count(const struct cuda_program *program)
{
    return program->graph.node_count + program->op_count + 1;
}

static inline bool cuda_has_peers(const struct cuda_program *program)
{
    return program->peers.world > 0;
}

/* Of program_ops; sharing.c. */
enum status cuda_program_expose(struct program *base, struct program_exposed *ret_exposed);
enum status cuda_program_share(struct program *base, unsigned char ret_share[PROGRAM_SHARE_BYTES]);
enum status cuda_program_meet(struct program *base, const struct program_peers *options);
enum status cuda_program_join(struct program *base, const struct program_joining *joining);
enum status cuda_program_sum(struct program *base, const struct program_sum *sum);
void cuda_program_stop(struct program *base);
void cuda_program_part(struct program *base);

void cuda_program_destroy(struct program *base);

extern const struct program_ops cuda_program_ops; // passes.c

#endif
