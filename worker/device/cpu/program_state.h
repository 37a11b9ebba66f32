/* What a compiled program is made of: filled by graph.c, placed in memory and run by program.c. */
#ifndef WORKER_DEVICE_CPU_PROGRAM_STATE_H
#define WORKER_DEVICE_CPU_PROGRAM_STATE_H

#include "worker/device/cpu/node.h"

#define NODES_MAX   (2 * DEVICE_OPS_MAX)
#define TENSORS_MAX (NODES_MAX + 1)

struct cpu_program {
    struct program base;
    struct cpu_context context;
    struct node *nodes[NODES_MAX];
    uint32_t node_ops[NODES_MAX]; // the operation that each node belongs to
    uint32_t node_count;
    struct cpu_tensor tensors[TENSORS_MAX]; // 0: the pixels
    uint32_t tensor_count;

    /* Nodes that can only write a gradient which they ought to add write it into a stand-in, which
     * is then added to the real one. */
    struct cpu_tensor *targets[NODES_MAX]; // the real tensor; NULL for most nodes
    char *arena;
    size_t arena_bytes;
};

/* Turns operations into nodes and tensors, without memory. */
enum status cpu_graph_build(struct cpu_program *program, const struct program_options *options);

#endif
