/* Builds nodes from operations; shares the memory of gradients. */
#include "worker/device/graph.h"

#include <assert.h>
#include <stdlib.h>

#define NO_OP UINT32_MAX

/* What is known of each operation while nodes are made. */
struct builder {
    struct graph *graph;
    const struct graph_options *options;
    const struct op *ops;
    uint32_t readers[DEVICE_OPS_MAX]; // how many operations read the result
    uint32_t reader[DEVICE_OPS_MAX];  // the last of them
    struct tensor *results[DEVICE_OPS_MAX];
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

/* Whether an operand of an add is a normalisation that nobody else reads, and of something else
 * than the other operand: a node has one gradient for each tensor. */
static bool is_norm_of_add(const struct builder *builder, uint32_t operand, uint32_t other)
{
    const struct op *op = &builder->ops[operand];
    return op->kind == OP_BATCH_NORM && builder->readers[operand] == 1 && op->input != other;
}

/* The normalisation that an add takes with it: the later of its operands, if it is one. The other
 * operand is there by then. */
static uint32_t norm_of_add(const struct builder *builder, uint32_t add)
{
    const struct op *op = &builder->ops[add];
    uint32_t later = op->input > op->other ? op->input : op->other;
    uint32_t earlier = op->input > op->other ? op->other : op->input;
    if (is_norm_of_add(builder, later, earlier)) {
        return later;
    }
    // A shortcut's own operations may come between.
    return is_norm_of_add(builder, earlier, later) ? earlier : NO_OP;
}

static bool is_taken_norm(const struct builder *builder, uint32_t index)
{
    if (builder->ops[index].kind != OP_BATCH_NORM) {
        return false;
    }
    uint32_t add = only_reader(builder, index, OP_ADD);
    return add != NO_OP && norm_of_add(builder, add) == index;
}

static struct tensor *add_tensor(struct graph *graph, struct shape shape, uint32_t batch)
{
    assert(graph->tensor_count < GRAPH_TENSORS_MAX);
    struct tensor *tensor = &graph->tensors[graph->tensor_count++];
    *tensor = (struct tensor){.shape = shape, .batch = batch, .block = 1};
    return tensor;
}

static struct tensor *input_of(const struct builder *builder, uint32_t input)
{
    return input == DEVICE_INPUT_PIXELS ? &builder->graph->tensors[0] : builder->results[input];
}

/* Adds a node that reads x, and perhaps other, and writes y. */
static enum status add_node(const struct builder *builder, uint32_t op_index,
                            const struct node *base,
                            enum status (*create)(struct node *base, struct node **ret_node))
{
    struct graph *graph = builder->graph;
    struct node node = *base;
    node.context = builder->options->context;
    uint32_t index = graph->node_count;
    assert(index < GRAPH_NODES_MAX);
    if (base->x != base->y) {
        base->y->producer = index;
    }
    base->x->last = base->y->last = index;
    if (base->other != NULL) {
        base->other->last = index;
    }
    enum status status = create(&node, &graph->nodes[index]);
    if (status == STATUS_OK) {
        base->y->is_kept |= graph->nodes[index]->keeps_y;
        graph->node_ops[index] = op_index;
        graph->node_count++;
    }
    return status;
}

/* A linear layer reads channels that are not in blocks. */
static enum status add_flatten(const struct builder *builder, uint32_t op_index, struct tensor **x)
{
    struct node node = {.x = *x, .y = add_tensor(builder->graph, (*x)->shape, (*x)->batch)};
    *x = node.y;
    return add_node(builder, op_index, &node, builder->options->flatten);
}

/* Whether a node may write its result where its input is: nobody else reads that, and the node that
 * wrote it does not need it again. */
static bool may_overwrite(const struct tensor *tensor)
{
    return !tensor->is_pixels && !tensor->is_shared && !tensor->is_kept;
}

static bool is_in_place(enum op_kind kind, const struct tensor *x)
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
            struct tensor *x = node.x;
            node.x = node.other;
            node.other = x;
        }
    }
    *ret_node = node;
}

static enum status add_operation(struct builder *builder, uint32_t index)
{
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
    bool is_plain = node.x->block == 1 && node.x->element_bytes == 0;
    if (node.op.kind == OP_LINEAR && !is_plain && builder->options->flatten != NULL) {
        enum status status = add_flatten(builder, index, &node.x);
        if (status != STATUS_OK) {
            return status;
        }
    }
    node.has_relu = takes_relu(node.op.kind) && only_reader(builder, index, OP_RELU) != NO_OP;
    node.feeds_norm = only_reader(builder, index, OP_BATCH_NORM) != NO_OP;
    node.y = node.x;
    if (!is_in_place(node.op.kind, node.x)) {
        node.y = add_tensor(builder->graph, node.op.y, builder->options->batch);
    }
    node.y->is_rectified =
        node.has_relu || (node.y == node.x && node.x->is_rectified && node.op.kind != OP_ADD);
    node.y->is_shared = builder->readers[index] > 1;
    builder->results[index] = node.y;
    return add_node(builder, index, &node, builder->options->kinds[node.op.kind]);
}

/* Whether the node's other operand may have its gradient where that of the sum is: the node is the
 * first to write it, and whoever wrote x has read it before anybody else changes it. */
static bool may_share_gradient(const struct graph *graph, uint32_t index)
{
    const struct node *node = graph->nodes[index];
    if (node->other->is_pixels || node->other->last != index) {
        return false;
    }
    if (node->op.kind == OP_BATCH_NORM) {
        return true; // it has read all of it before it ends
    }
    for (uint32_t i = node->x->producer + 1; i < index; i++) {
        const struct node *between = graph->nodes[i];
        if (between->x == node->other || between->other == node->other || between->x == node->x) {
            return false;
        }
    }
    return node->y == node->x && node->other->producer < node->x->producer;
}

/* A node that is not the last to read a tensor adds to its gradient. */
static void share_gradients(struct graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct node *node = graph->nodes[i];
        node->adds_x = node->x->last != i && node->x != node->y && !node->x->is_pixels;
        if (node->other != NULL && may_share_gradient(graph, i)) {
            node->other->grad_of = node->y;
        } else if (node->other != NULL) {
            node->adds_other = node->other->last != i;
        }
        if (node->adds_x && !node->ops->adds_gradients) {
            struct tensor *stand_in = add_tensor(graph, node->x->shape, node->x->batch);
            *stand_in = *node->x;
            stand_in->is_stand_in = true;
            graph->targets[i] = node->x;
            node->x = stand_in;
        }
    }
}

enum status graph_build(const struct graph_options *options, struct graph *ret_graph)
{
    struct builder *builder = calloc(1, sizeof(*builder));
    if (builder == NULL) {
        return STATUS_NO_MEMORY;
    }
    builder->graph = ret_graph;
    builder->options = options;
    builder->ops = options->ops;
    for (uint32_t i = 0; i < options->op_count; i++) {
        count_reader(builder, options->ops[i].input, i);
        if (options->ops[i].kind == OP_ADD) {
            count_reader(builder, options->ops[i].other, i);
        }
    }
    add_tensor(ret_graph, options->ops[0].x, options->batch)->is_pixels = true;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < options->op_count && status == STATUS_OK; i++) {
        status = add_operation(builder, i);
    }
    if (status == STATUS_OK && options->is_trained) {
        share_gradients(ret_graph);
    }
    free(builder);
    return status;
}

void graph_destroy_nodes(struct graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        graph->nodes[i]->ops->destroy(graph->nodes[i]);
    }
    graph->node_count = 0;
}
