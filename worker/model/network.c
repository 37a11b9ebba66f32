/* Turns a list of layers into operations and tensors. */
#include "worker/model/network.h"

#include "common/base/random.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static uint64_t add_tensor(struct network_plan *plan, uint64_t count, enum tensor_kind kind)
{
    assert(plan->tensor_count < NETWORK_TENSORS_MAX);
    struct network_tensor *tensor = &plan->tensors[plan->tensor_count++];
    tensor->span.offset = plan->value_count;
    tensor->span.count = count;
    tensor->op = plan->op_count;
    tensor->kind = kind;
    plan->value_count += count;
    return tensor->span.offset;
}

static struct shape shape_of(const struct network_plan *plan, struct shape input, uint32_t layer)
{
    return layer == DEVICE_INPUT_PIXELS ? input : plan->ops[layer].y;
}

static bool add_layer(struct network_plan *plan, const struct layer *layer, struct shape x,
                      uint32_t class_count)
{
    assert(plan->op_count < DEVICE_OPS_MAX);
    struct op *op = &plan->ops[plan->op_count];
    if (layer_make_op(layer, x, class_count, op) != STATUS_OK) {
        return false;
    }
    op->input = layer->input;
    op->other = layer->other;

    uint64_t weight_count = layer_weight_count(op);
    if (weight_count > UINT32_MAX) {
        return false; // more than random_element can count
    }
    if (weight_count > 0) {
        op->weight = add_tensor(plan, weight_count,
                                op->kind == OP_BATCH_NORM ? TENSOR_SCALE : TENSOR_WEIGHT);
    }
    if (op->has_bias) {
        op->bias = add_tensor(plan, layer_bias_count(op), TENSOR_BIAS);
    }
    op->statistics = plan->statistic_count;
    plan->statistic_count += layer_statistic_count(op);
    plan->op_count++;
    return true;
}

enum status network_plan_layers(struct network_plan *plan, struct shape input, uint32_t class_count,
                                uint32_t *ret_bad_layer)
{
    plan->op_count = plan->tensor_count = 0;
    plan->value_count = plan->statistic_count = 0;
    uint32_t stream = 0;
    for (uint32_t i = 0; i < plan->layers.count; i++) {
        const struct layer *layer = &plan->layers.list[i];
        if (!add_layer(plan, layer, shape_of(plan, input, layer->input), class_count)) {
            *ret_bad_layer = i;
            return STATUS_INVALID;
        }
        struct op *op = &plan->ops[i];
        if (op->kind == OP_DROPOUT) {
            op->stream = stream++;
        }
    }

    const struct layer loss = {.kind = OP_SOFTMAX_LOSS, .input = plan->op_count - 1};
    struct shape x = shape_of(plan, input, loss.input);
    assert(x.rows == 1 && x.columns == 1 && x.channels == class_count);
    bool fits = add_layer(plan, &loss, x, class_count);
    assert(fits);
    (void)fits;
    return STATUS_OK;
}

enum status network_make_plan(const struct network *network, struct shape input,
                              uint32_t class_count, struct network_plan *ret_plan,
                              uint32_t *ret_bad_layer)
{
    ret_plan->layers.count = 0;
    network->build(&ret_plan->layers);
    return network_plan_layers(ret_plan, input, class_count, ret_bad_layer);
}

uint64_t network_published_count(const struct network *network, const struct network_plan *plan)
{
    return plan->value_count + (network->counts_statistics ? plan->statistic_count : 0);
}

/* sqrt is correctly rounded everywhere, so the limit has the same bits on every machine. */
static float first_weight_limit(const struct op *op)
{
    return (float)sqrt(6.0 / (double)(layer_fan_in(op) + layer_fan_out(op)));
}

static void fill(float *values, uint64_t count, float value)
{
    for (uint64_t i = 0; i < count; i++) {
        values[i] = value;
    }
}

void network_init_statistics(const struct network_plan *plan, float *ret_statistics)
{
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        uint64_t channels = layer_statistic_count(op) / 2;
        fill(ret_statistics + op->statistics, channels, 0);
        fill(ret_statistics + op->statistics + channels, channels, 1);
    }
}

void network_init_params(const struct network_plan *plan, uint64_t seed, float *ret_params)
{
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        const struct network_tensor *tensor = &plan->tensors[t];
        float *values = ret_params + tensor->span.offset;
        if (tensor->kind != TENSOR_WEIGHT) {
            fill(values, tensor->span.count, tensor->kind == TENSOR_SCALE ? 1 : 0);
            continue;
        }
        float limit = first_weight_limit(&plan->ops[tensor->op]);
        uint64_t key = random_key(seed, RANDOM_PARAMS, t, 0);
        for (uint32_t i = 0; i < (uint32_t)tensor->span.count; i++) {
            values[i] = limit * (2 * random_unit_float(random_element(key, i)) - 1);
        }
    }
}

static uint64_t digest_number(uint64_t digest, uint64_t number)
{
    unsigned char bytes[8];
    for (uint32_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(number >> (8 * i));
    }
    return layout_digest_add(digest, bytes, sizeof(bytes));
}

static uint64_t digest_shape(uint64_t digest, struct shape shape)
{
    digest = digest_number(digest, shape.channels);
    digest = digest_number(digest, shape.rows);
    return digest_number(digest, shape.columns);
}

uint64_t network_digest(const struct network *network, const struct network_plan *plan)
{
    assert(plan->op_count >= 1);
    uint64_t digest = LAYOUT_DIGEST_SEED;
    digest = layout_digest_add(digest, network->name, strlen(network->name) + 1);
    digest = digest_shape(digest, plan->ops[0].x);
    digest = digest_shape(digest, plan->ops[plan->op_count - 1].y);
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        const struct op *op = &plan->ops[plan->tensors[t].op];
        digest = digest_number(digest, op->kind);
        digest = digest_shape(digest, op->x);
        digest = digest_number(digest, op->window);
        digest = digest_number(digest, plan->tensors[t].span.count);
    }
    return digest;
}
