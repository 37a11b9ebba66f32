/* Dropout, in place. The mask is a function of the sample's key and of the element's number in
 * (C, H, W) order, whatever the layout; backward draws it again. */
#include "common/base/random.h"
#include "common/vector/variants.h"
#include "worker/device/cpu/bf16.h"
#include "worker/device/cpu/loops.h"
#include "worker/device/cpu/node.h"

#include <math.h>

/* What is dropped of one sample, and what becomes of the rest. */
struct mask {
    uint64_t key;
    uint32_t
        threshold; // dropped if random < rate * 2^32; whole numbers: below the rounded-up bound
    float scale;
};

/* One block of channels of one sample, (H, W, B); first_channel is that of lane 0. */
VARIANT_BODY void apply_body(const struct mask *mask, float *values, uint32_t first_channel,
                             uint32_t plane, uint32_t block)
{
    uint64_t key = mask->key;
    uint32_t threshold = mask->threshold;
    float scale = mask->scale;
    for (uint32_t i = 0; i < plane; i++) {
        for (uint32_t lane = 0; lane < block; lane++) {
            uint32_t element = (first_channel + lane) * plane + i;
            bool is_dropped = random_element(key, element) < threshold;
            values[lane] = is_dropped ? 0 : values[lane] * scale;
        }
        values += block;
    }
}

/* Plain layout: one long run. */
VARIANT_BODY void apply_plain_body(const struct mask *mask, float *values, uint32_t count)
{
    uint64_t key = mask->key;
    uint32_t threshold = mask->threshold;
    float scale = mask->scale;
    for (uint32_t i = 0; i < count; i++) {
        bool is_dropped = random_element(key, i) < threshold;
        values[i] = is_dropped ? 0 : values[i] * scale;
    }
}

/* bfloat16, (H, W, C). */
VARIANT_TARGET_AVX512 static void apply_bf16(const struct mask *mask, uint16_t *values,
                                             uint32_t channels, uint32_t plane)
{
    uint64_t key = mask->key;
    uint32_t threshold = mask->threshold;
    float scale = mask->scale;
    for (uint32_t i = 0; i < plane; i++) {
        for (uint32_t c = 0; c < channels; c++) {
            bool is_dropped = random_element(key, c * plane + i) < threshold;
            float value = is_dropped ? 0 : bf16_load(values[c]) * scale;
            values[c] = bf16_store(value);
        }
        values += channels;
    }
}

#define BLOCKED(suffix, target, block)                                        \
    target static void apply_##suffix(const struct mask *mask, float *values, \
                                      uint32_t first_channel, uint32_t plane) \
    {                                                                         \
        apply_body(mask, values, first_channel, plane, block);                \
    }

#define PLAIN(suffix, target)                                                       \
    target static void apply_plain_##suffix(const struct mask *mask, float *values, \
                                            uint32_t count)                         \
    {                                                                               \
        apply_plain_body(mask, values, count);                                      \
    }

// A block of 16 only comes with AVX-512, one of 8 with AVX2: see onednn_block.
BLOCKED(block8, VARIANT_TARGET_AVX2, 8)
BLOCKED(block16, VARIANT_TARGET_AVX512, 16)
PLAIN(portable, )
PLAIN(avx2, VARIANT_TARGET_AVX2)
PLAIN(avx512, VARIANT_TARGET_AVX512)

static void apply_sample(const struct node *node, float *values, uint64_t key)
{
    static void (*const plain_variants[VARIANT_COUNT])(const struct mask *, float *, uint32_t) = {
        [VARIANT_PORTABLE] = apply_plain_portable,
        [VARIANT_AVX2] = apply_plain_avx2,
        [VARIANT_AVX512] = apply_plain_avx512,
    };
    const struct tensor *tensor = node->y;
    uint32_t plane = tensor->shape.rows * tensor->shape.columns, block = tensor->block;
    const struct mask mask = {
        .key = key,
        .threshold = (uint32_t)ceil((double)node->op.rate * 0x1p32),
        .scale = 1 / (1 - node->op.rate),
    };
    if (tensor_is_bf16(tensor)) {
        apply_bf16(&mask, (void *)values, tensor->shape.channels, plane);
        return;
    }
    if (block == 1) {
        plain_variants[variant_best()](&mask, values, plane * tensor->shape.channels);
        return;
    }
    for (uint32_t channel = 0; channel < tensor->shape.channels; channel += block) {
        float *run = values + (size_t)channel * plane;
        if (block == 16) {
            apply_block16(&mask, run, channel, plane);
        } else {
            apply_block8(&mask, run, channel, plane);
        }
    }
}

static void apply(struct node *node, float *values)
{
    const uint64_t *keys = node->context->input->sample_keys;
    size_t stride = tensor_stride(node->y) * loops_element_bytes(node->y);
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (uint32_t n = 0; n < node->y->batch; n++) {
        char *sample = (char *)values + n * stride;
        apply_sample(node, (void *)sample, random_mix(keys[n] + node->op.stream));
    }
}

static enum status dropout_forward(struct node *node)
{
    if (node->x != node->y) {
        loops_copy(node->y, node->y->data, node->x->data);
    }
    if (node->context->input->is_training && node->op.rate > 0) {
        apply(node, node->y->data);
    }
    return STATUS_OK;
}

static enum status dropout_backward(struct node *node)
{
    if (node->x != node->y && !node->x->is_pixels) {
        loops_copy(node->y, node->x->grad, node->y->grad);
    }
    if (!node->x->is_pixels && node->op.rate > 0) {
        apply(node, node->x->grad);
    }
    return STATUS_OK;
}

static const struct node_ops dropout_ops = {
    .forward = dropout_forward,
    .backward = dropout_backward,
    .destroy = node_destroy_plain,
};

enum status node_create_dropout(struct node *base, struct node **ret_node)
{
    base->y->block = base->x->block;
    base->y->element_bytes = base->x->element_bytes;
    return node_create_plain(base, &dropout_ops, ret_node);
}
