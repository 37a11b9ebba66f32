/* From operations to nodes: what is fused, what works in place, which gradients share memory.
 *
 *     a relu behind a convolution, a linear layer, a normalisation or an add is part of that node
 *     an add behind a normalisation is part of that node, too
 *     other relus and dropout work in place, an add in the place of one operand
 *     the gradient of an add is that of both operands: they share its memory
 *     a linear layer behind blocked channels gets a flatten node before it */
#include "worker/device/cpu/program_state.h"

#include <assert.h>
#include <stdlib.h>

#define NO_OP UINT32_MAX

/* What is known of each operation while nodes are made. */
struct builder {
    struct cpu_program *program;
    const struct op *ops;
    uint32_t op_count;
    uint32_t readers[DEVICE_OPS_MAX]; // how many operations read the result
    uint32_t reader[DEVICE_OPS_MAX];  // the last of them
    struct cpu_tensor *results[DEVICE_OPS_MAX];
};

static enum status (*const creators[])(struct node *base, struct node **ret_node) = {
    [OP_CONV2D] = node_create_conv2d,
    [OP_LINEAR] = node_create_linear,
    [OP_RELU] = node_create_relu,
    [OP_MAX_POOL] = node_create_max_pool,
    [OP_DROPOUT] = node_create_dropout,
    [OP_BATCH_NORM] = node_create_batch_norm,
    [OP_ADD] = node_create_add,
    [OP_SUBSAMPLE] = node_create_subsample,
    [OP_PAD] = node_create_pad,
    [OP_GLOBAL_POOL] = node_create_global_pool,
    [OP_SOFTMAX_LOSS] = node_create_softmax_loss,
};

enum status node_create_plain(const struct node *base, const struct node_ops *ops,
                              struct node **ret_node)
{
    struct node *node = malloc(sizeof(*node));
    if (node == NULL) {
        return STATUS_NO_MEMORY;
    }
    *node = *base;
    node->ops = ops;
    *ret_node = node;
    return STATUS_OK;
}

void node_destroy_plain(struct node *node)
{
    free(node);
}

static void count_reader(struct builder *builder, uint32_t input, uint32_t reader)
{
    if (input != DEVICE_INPUT_PIXELS) {
        builder->readers[input]++;
        builder->reader[input] = reader;
    }
}

/* The only operation that reads the result, if it is of this kind. */
static uint32_t only_reader(const struct builder *builder, uint32_t op, enum op_kind kind)
{
    uint32_t reader = builder->reader[op];
    bool is_it = builder->readers[op] == 1 && builder->ops[reader].kind == kind;
    return is_it ? reader : NO_OP;
}

static bool takes_relu(enum op_kind kind)
{
    return kind == OP_CONV2D || kind == OP_LINEAR || kind == OP_BATCH_NORM || kind == OP_ADD;
}

/* Whether the operation is the relu of the node that it reads. */
static bool is_taken_relu(const struct builder *builder, uint32_t index)
{
    const struct op *op = &builder->ops[index];
    return op->kind == OP_RELU && op->input != DEVICE_INPUT_PIXELS &&
           builder->readers[op->input] == 1 && takes_relu(builder->ops[op->input].kind);
}

/* The normalisation that an add takes with it: the later of its operands, if it is one that nobody
 * else reads. The other operand is there by then. */
static uint32_t norm_of_add(const struct builder *builder, uint32_t add)
{
    const struct op *op = &builder->ops[add];
    uint32_t later = op->input > op->other ? op->input : op->other;
    bool is_norm = builder->ops[later].kind == OP_BATCH_NORM && builder->readers[later] == 1;
    if (is_norm) {
        return later;
    }
    // A shortcut's own operations may come between.
    uint32_t earlier = op->input > op->other ? op->other : op->input;
    is_norm = builder->ops[earlier].kind == OP_BATCH_NORM && builder->readers[earlier] == 1;
    return is_norm ? earlier : NO_OP;
}

static bool is_taken_norm(const struct builder *builder, uint32_t index)
{
    if (builder->ops[index].kind != OP_BATCH_NORM) {
        return false;
    }
    uint32_t add = only_reader(builder, index, OP_ADD);
    return add != NO_OP && norm_of_add(builder, add) == index;
}

static struct cpu_tensor *add_tensor(struct cpu_program *program, struct shape shape)
{
    assert(program->tensor_count < TENSORS_MAX);
    struct cpu_tensor *tensor = &program->tensors[program->tensor_count++];
    *tensor = (struct cpu_tensor){.shape = shape, .batch = program->context.batch, .block = 1};
    return tensor;
}

static struct cpu_tensor *input_of(const struct builder *builder, uint32_t input)
{
    return input == DEVICE_INPUT_PIXELS ? &builder->program->tensors[0] : builder->results[input];
}

/* Adds a node that reads x, and perhaps other, and writes y. */
static enum status add_node(struct cpu_program *program, uint32_t op_index, const struct node *base,
                            enum status (*create)(struct node *base, struct node **ret_node))
{
    struct node node = *base;
    node.context = &program->context;
    uint32_t index = program->node_count;
    assert(index < NODES_MAX);
    if (base->x != base->y) {
        base->y->producer = index;
    }
    base->x->last = base->y->last = index;
    if (base->other != NULL) {
        base->other->last = index;
    }
    enum status status = create(&node, &program->nodes[index]);
    if (status == STATUS_OK) {
        base->y->is_kept |= program->nodes[index]->keeps_y;
        program->node_ops[index] = op_index;
        program->node_count++;
    }
    return status;
}

/* A linear layer reads channels that are not in blocks. */
static enum status add_flatten(struct cpu_program *program, uint32_t op_index,
                               struct cpu_tensor **x)
{
    struct node node = {.x = *x, .y = add_tensor(program, (*x)->shape)};
    *x = node.y;
    return add_node(program, op_index, &node, node_create_flatten);
}

/* Whether a node may write its result where its input is: nobody else reads that, and the node that
 * wrote it does not need it again. */
static bool may_overwrite(const struct cpu_tensor *tensor)
{
    return !tensor->is_pixels && !tensor->is_shared && !tensor->is_kept;
}

static bool is_in_place(enum op_kind kind, const struct cpu_tensor *x)
{
    if (kind == OP_ADD) {
        return may_overwrite(x);
    }
    // These leave it recognisable for a mask: zero or positive stays so.
    bool may_be = kind == OP_RELU || kind == OP_DROPOUT || kind == OP_SOFTMAX_LOSS;
    return may_be && !x->is_pixels && !x->is_shared;
}

/* The node of an operation, with what it takes along, before it has a result. */
static void describe_node(const struct builder *builder, uint32_t index, struct node *ret_node)
{
    const struct op *op = &builder->ops[index];
    struct node node = {.op = *op, .x = input_of(builder, op->input)};
    if (op->kind == OP_ADD) {
        uint32_t norm = norm_of_add(builder, index);
        node.other = input_of(builder, op->other);
        if (norm != NO_OP) {
            node.other = input_of(builder, norm == op->input ? op->other : op->input);
            node.op = builder->ops[norm];
            node.x = input_of(builder, node.op.input);
        } else if (!may_overwrite(node.x) && may_overwrite(node.other)) {
            struct cpu_tensor *x = node.x;
            node.x = node.other;
            node.other = x;
        }
    }
    *ret_node = node;
}

static enum status add_operation(struct builder *builder, uint32_t index)
{
    struct cpu_program *program = builder->program;
    if (is_taken_norm(builder, index)) {
        return STATUS_OK;
    }
    if (is_taken_relu(builder, index)) {
        builder->results[index] = builder->results[builder->ops[index].input];
        builder->results[index]->is_shared = builder->readers[index] > 1;
        return STATUS_OK;
    }
    struct node node;
    describe_node(builder, index, &node);
    if (node.op.kind == OP_LINEAR && node.x->block != 1) {
        enum status status = add_flatten(program, index, &node.x);
        if (status != STATUS_OK) {
            return status;
        }
    }
    node.has_relu = takes_relu(node.op.kind) && only_reader(builder, index, OP_RELU) != NO_OP;
    node.y = node.x;
    if (!is_in_place(node.op.kind, node.x)) {
        node.y = add_tensor(program, node.op.y);
    }
    node.y->is_rectified =
        node.has_relu || (node.y == node.x && node.x->is_rectified && node.op.kind != OP_ADD);
    node.y->is_shared = builder->readers[index] > 1;
    builder->results[index] = node.y;
    return add_node(program, index, &node, creators[node.op.kind]);
}

/* Whether the node's other operand may have its gradient where that of the sum is: the node is the
 * first to write it, and whoever wrote x has read it before anybody else changes it. */
static bool may_share_gradient(const struct cpu_program *program, uint32_t index)
{
    const struct node *node = program->nodes[index];
    if (node->other->is_pixels || node->other->last != index) {
        return false;
    }
    if (node->op.kind == OP_BATCH_NORM) {
        return true; // it has read all of it before it ends
    }
    for (uint32_t i = node->x->producer + 1; i < index; i++) {
        const struct node *between = program->nodes[i];
        if (between->x == node->other || between->other == node->other || between->x == node->x) {
            return false;
        }
    }
    return node->y == node->x && node->other->producer < node->x->producer;
}

/* A node that is not the last to read a tensor adds to its gradient. */
static void share_gradients(struct cpu_program *program)
{
    for (uint32_t i = 0; i < program->node_count; i++) {
        struct node *node = program->nodes[i];
        node->adds_x = node->x->last != i && node->x != node->y && !node->x->is_pixels;
        if (node->other != NULL && may_share_gradient(program, i)) {
            node->other->grad_of = node->y;
        } else if (node->other != NULL) {
            node->adds_other = node->other->last != i;
        }
        if (node->adds_x && !node->ops->adds_gradients) {
            struct cpu_tensor *stand_in = add_tensor(program, node->x->shape);
            *stand_in = *node->x;
            stand_in->is_stand_in = true;
            program->targets[i] = node->x;
            node->x = stand_in;
        }
    }
}

enum status cpu_graph_build(struct cpu_program *program, const struct program_options *options)
{
    struct builder *builder = calloc(1, sizeof(*builder));
    if (builder == NULL) {
        return STATUS_NO_MEMORY;
    }
    builder->program = program;
    builder->ops = options->ops;
    builder->op_count = options->op_count;
    for (uint32_t i = 0; i < options->op_count; i++) {
        count_reader(builder, options->ops[i].input, i);
        if (options->ops[i].kind == OP_ADD) {
            count_reader(builder, options->ops[i].other, i);
        }
    }
    add_tensor(program, options->ops[0].x)->is_pixels = true;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < options->op_count && status == STATUS_OK; i++) {
        status = add_operation(builder, i);
    }
    if (status == STATUS_OK && options->grads != NULL) {
        share_gradients(program);
    }
    free(builder);
    return status;
}
