/* What the parts of a program share: program.c (create, memory), passes.c (forward, updates),
 * backward.c (backward, sums of gradients) and sharing.c (programs of other processes). */
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
    bool sums_in_unit;            // backward and the sums of gradients are one unit in this step
    bool is_waiting;              // backward, from this operation down, for the rest of it
    uint32_t waiting_op;
    uint32_t op_count;
    uint32_t kept_count; // see program_expose
    float *kept;         // (kept_count, kept_stride) of the vectors
    size_t value_count, statistic_count, pixel_count, kept_stride;
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

/* The parameters of a node's operation: weight and bias. */
static inline struct cuda_span cuda_params_of(const struct node *node)
{
    return (struct cuda_span){node->op.weight, cuda_param_count(&node->op)};
}

/* The units that a program runs in: forward from each node on, and backward down to each operation;
 * or the whole of forward, and the whole of backward with the sums of gradients. */
static inline uint32_t cuda_unit_of_backward(const struct cuda_program *program, uint32_t first_op)
{
    return program->graph.node_count + first_op;
}

static inline uint32_t cuda_unit_of_whole_forward(const struct cuda_program *program)
{
    return program->graph.node_count + program->op_count;
}

static inline uint32_t cuda_unit_of_sums(const struct cuda_program *program)
{
    return program->graph.node_count + program->op_count + 1;
}

static inline uint32_t cuda_unit_count(const struct cuda_program *program)
{
    return program->graph.node_count + program->op_count + 2;
}

static inline bool cuda_has_peers(const struct cuda_program *program)
{
    return program->peers.world > 0;
}

/* Whether all of backward is queued at once, with its last operation. So it is where gradients are
 * nobody's but this program's: then it does not matter when they are there. And so it is where
 * their sums are a part of the same unit. */
static inline bool cuda_is_one_unit(const struct cuda_program *program)
{
    bool is_alone = program->keeps_gradients && !cuda_has_peers(program) && !program->is_exposed;
    return is_alone || program->sums_in_unit;
}

/* What spans say that are queued from here on. */
static inline uint32_t cuda_recorded_bucket(const struct cuda_program *program)
{
    return cuda_is_one_unit(program) ? DEVICE_NO_BUCKET : program->base.recording.bucket;
}

/* A pass of the i-th node: timed, and checked, where that was asked for. passes.c */
enum status cuda_launch_node(struct cuda_program *program, enum node_pass pass, uint32_t i);

/* Of program_ops; backward.c. */
enum status cuda_program_backward(struct program *base, uint32_t last_op, uint32_t first_op);
enum status cuda_program_await(struct program *base, uint32_t first_op);

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
