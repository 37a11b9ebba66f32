/* From a list of layers to operations and tensors. */
#include "worker/model/network.h"

#include "common/random.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void add_tensor(struct network_plan *plan, uint32_t op, uint64_t count, bool is_bias)
{
    assert(plan->tensor_count < NETWORK_TENSORS_MAX);
    struct network_tensor *tensor = &plan->tensors[plan->tensor_count++];
    tensor->span.offset = plan->value_count;
    tensor->span.count = count;
    tensor->op = op;
    tensor->is_bias = is_bias;
    plan->value_count += count;
}

static bool add_layer(struct network_plan *plan, const struct layer *layer, struct shape x,
                      uint32_t class_count)
{
    assert(plan->op_count < DEVICE_OPS_MAX);
    uint32_t index = plan->op_count;
    struct op *op = &plan->ops[index];
    if (layer_make_op(layer, x, class_count, op) != STATUS_OK) {
        return false;
    }
    op->input = index == 0 ? DEVICE_INPUT_PIXELS : index - 1;
    plan->op_count++;

    uint64_t weight_count = layer_weight_count(op);
    if (weight_count > UINT32_MAX) {
        return false; // more than random_element can count
    }
    if (weight_count > 0) {
        op->weight = plan->value_count;
        add_tensor(plan, index, weight_count, false);
        op->bias = plan->value_count;
        add_tensor(plan, index, layer_bias_count(op), true);
    }
    return true;
}

enum status network_make_plan(const struct network *network, struct shape input,
                              uint32_t class_count, struct network_plan *ret_plan,
                              uint32_t *ret_bad_layer)
{
    assert(network->layer_count < DEVICE_OPS_MAX);
    struct network_plan *plan = ret_plan;
    plan->op_count = 0;
    plan->tensor_count = 0;
    plan->value_count = 0;

    struct shape x = input;
    uint32_t stream = 0;
    for (uint32_t i = 0; i < network->layer_count; i++) {
        if (!add_layer(plan, &network->layers[i], x, class_count)) {
            *ret_bad_layer = i;
            return STATUS_INVALID;
        }
        struct op *op = &plan->ops[i];
        if (op->kind == OP_DROPOUT) {
            op->stream = stream++;
        }
        x = op->y;
    }

    static const struct layer loss = {.kind = OP_SOFTMAX_LOSS};
    assert(x.rows == 1 && x.columns == 1 && x.channels == class_count);
    bool fits = add_layer(plan, &loss, x, class_count);
    assert(fits);
    (void)fits;
    return STATUS_OK;
}

/* sqrt is correctly rounded everywhere, so the limit has the same bits on every machine. */
static float first_weight_limit(const struct op *op)
{
    return (float)sqrt(6.0 / (double)(layer_fan_in(op) + layer_fan_out(op)));
}

void network_init_params(const struct network_plan *plan, uint64_t seed, float *ret_params)
{
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        const struct network_tensor *tensor = &plan->tensors[t];
        float *values = ret_params + tensor->span.offset;
        if (tensor->is_bias) {
            memset(values, 0, tensor->span.count * sizeof(*values));
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
