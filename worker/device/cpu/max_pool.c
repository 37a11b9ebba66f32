/* Max pooling on blocked or plain channels.
 *
 * Forward keeps which element of its window each maximum was, so backward need not look again.
 * Where x is the result of a relu that the node before took along, its gradient is masked here as
 * well: a maximum of 0 passes nothing on, and what is no maximum gets nothing anyway. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/vector/variants.h"
#include "worker/device/cpu/bf16.h"
#include "worker/device/cpu/loops.h"
#include "worker/device/cpu/node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_MAX 16 // so that an index fits into a byte
#define BLOCK_MAX  16

struct max_pool {
    struct node base;
    uint8_t *indices; // like y
    size_t bytes;
};

/* What the loops need, in numbers. Loops over the lanes of a block say that they are to be
 * vectorised: the compiler, left alone, did not, and pooling took a fifth of a step. */
struct geometry {
    size_t x_rows, x_columns, y_rows, y_columns;
    uint32_t window, stride;
    bool is_masked; // no gradient where the maximum is not positive
};

/* One plane of blocked channels: x and dx (H, W, B), the rest (P, Q, B). */
struct plane {
    const float *x, *dy;
    float *y, *dx;
    uint8_t *indices;
};

/* The maximum of one window for each lane, and where in the window it is. The compiler unrolls over
 * constant blocks and windows. */
VARIANT_BODY void find_maxima(const struct geometry *g, uint32_t window, uint32_t block,
                              const float *corner, float *y, uint8_t *indices)
{
    float best[BLOCK_MAX];
    uint32_t index[BLOCK_MAX];
#pragma omp simd
    for (uint32_t lane = 0; lane < block; lane++) {
        best[lane] = corner[lane];
        index[lane] = 0;
    }
    for (uint32_t i = 1; i < window * window; i++) {
        const float *at = corner + (i / window * g->x_columns + i % window) * block;
#pragma omp simd
        for (uint32_t lane = 0; lane < block; lane++) {
            // Of equal ones the first; not-a-number wins, so that the loss shows it.
            bool is_better = !(at[lane] <= best[lane]);
            best[lane] = is_better ? at[lane] : best[lane];
            index[lane] = is_better ? i : index[lane];
        }
    }
#pragma omp simd
    for (uint32_t lane = 0; lane < block; lane++) {
        y[lane] = best[lane];
        indices[lane] = (uint8_t)index[lane];
    }
}

/* One plane of blocked channels: (H, W, B) to (P, Q, B). */
VARIANT_BODY void forward_body(const struct geometry *g, uint32_t window, uint32_t block,
                               const struct plane *plane)
{
    for (size_t p = 0; p < g->y_rows; p++) {
        for (size_t q = 0; q < g->y_columns; q++) {
            size_t from = (p * g->stride * g->x_columns + q * g->stride) * block;
            size_t to = (p * g->y_columns + q) * block;
            find_maxima(g, window, block, plane->x + from, plane->y + to, plane->indices + to);
        }
    }
}

/* The gradient of one window, lane by lane, to where its maximum was. Windows that do not overlap
 * write their elements of dx; others add to them. */
VARIANT_BODY void put_gradients(const struct geometry *g, uint32_t window, uint32_t block,
                                const float *restrict grad, const uint32_t *restrict index,
                                float *restrict corner)
{
    bool adds = g->stride < window;
    for (uint32_t i = 0; i < window * window; i++) {
        float *restrict at = corner + (i / window * g->x_columns + i % window) * block;
#pragma omp simd
        for (uint32_t lane = 0; lane < block; lane++) {
            float before = adds ? at[lane] : 0;
            at[lane] = before + (index[lane] == i ? grad[lane] : 0);
        }
    }
}

/* (P, Q, B) to (H, W, B). */
VARIANT_BODY void backward_body(const struct geometry *g, uint32_t window, uint32_t block,
                                const struct plane *plane)
{
    bool is_covered = g->stride == window && g->y_rows * window == g->x_rows &&
                      g->y_columns * window == g->x_columns;
    assert(plane->dy != NULL);
    const float *restrict y = plane->y, *restrict dy = plane->dy;
    const uint8_t *restrict indices = plane->indices;
    if (!is_covered) {
        memset(plane->dx, 0, g->x_rows * g->x_columns * block * sizeof(float));
    }
    for (size_t p = 0; p < g->y_rows; p++) {
        for (size_t q = 0; q < g->y_columns; q++) {
            size_t at = (p * g->y_columns + q) * block;
            float grad[BLOCK_MAX];
            uint32_t index[BLOCK_MAX];
            // Out of memory that bytes might alias, so that the loops below are vectorised.
#pragma omp simd
            for (uint32_t lane = 0; lane < block; lane++) {
                grad[lane] = dy[at + lane];
                grad[lane] = !g->is_masked || y[at + lane] > 0 ? grad[lane] : 0;
                index[lane] = indices[at + lane];
            }
            put_gradients(g, window, block, grad, index,
                          plane->dx + (p * g->stride * g->x_columns + q * g->stride) * block);
        }
    }
}

typedef void plane_fn(const struct geometry *g, const struct plane *plane);

/* Windows of two by two, which nearly all are, get loops of their own. */
#define PLANES(suffix, target, block)                                                         \
    target static void forward_##suffix(const struct geometry *g, const struct plane *plane)  \
    {                                                                                         \
        if (g->window == 2) {                                                                 \
            forward_body(g, 2, block, plane);                                                 \
        } else {                                                                              \
            forward_body(g, g->window, block, plane);                                         \
        }                                                                                     \
    }                                                                                         \
    target static void backward_##suffix(const struct geometry *g, const struct plane *plane) \
    {                                                                                         \
        if (g->window == 2) {                                                                 \
            backward_body(g, 2, block, plane);                                                \
        } else {                                                                              \
            backward_body(g, g->window, block, plane);                                        \
        }                                                                                     \
    }

// A block of 16 only comes with AVX-512, one of 8 with AVX2: see onednn_block.
PLANES(plain, , 1)
PLANES(block8, VARIANT_TARGET_AVX2, 8)
PLANES(block16, VARIANT_TARGET_AVX512, 16)

static struct geometry geometry_of(const struct node *node)
{
    return (struct geometry){
        .x_rows = node->op.x.rows,
        .x_columns = node->op.x.columns,
        .y_rows = node->op.y.rows,
        .y_columns = node->op.y.columns,
        .window = node->op.window,
        .stride = node->op.stride,
        .is_masked = node->x->is_grad_masked,
    };
}

/* Runs over all planes: samples times blocks of channels. */
static void run_planes(struct node *node, plane_fn *run)
{
    const struct max_pool *pool = (const struct max_pool *)node;
    struct geometry g = geometry_of(node);
    size_t x_plane = g.x_rows * g.x_columns * node->x->block;
    size_t y_plane = g.y_rows * g.y_columns * node->x->block;
    size_t planes = tensor_count(node->x) / x_plane;
#pragma omp parallel for num_threads(node->context->threads) if (node->context->threads > 1)
    for (size_t i = 0; i < planes; i++) {
        const struct plane plane = {
            .x = node->x->data + i * x_plane,
            .y = node->y->data + i * y_plane,
            .indices = pool->indices + i * y_plane,
            .dy = node->y->grad != NULL ? node->y->grad + i * y_plane : NULL,
            .dx = node->x->grad != NULL ? node->x->grad + i * x_plane : NULL,
        };
        run(&g, &plane);
    }
}

static struct bf16_pool halves_of(const struct node *node)
{
    return (struct bf16_pool){.op = &node->op,
                              .batch = node->x->batch,
                              .threads = node->context->threads,
                              .indices = ((const struct max_pool *)node)->indices};
}

static enum status max_pool_forward(struct node *node)
{
    if (tensor_is_bf16(node->x)) {
        const struct bf16_pool halves = halves_of(node);
        bf16_max_pool(&halves, (const void *)node->x->data, (void *)node->y->data);
        return STATUS_OK;
    }
    uint32_t block = node->x->block;
    run_planes(node, block == 16 ? forward_block16 : block == 8 ? forward_block8 : forward_plain);
    return STATUS_OK;
}

static enum status max_pool_backward(struct node *node)
{
    if (tensor_is_bf16(node->x)) {
        const struct bf16_pool halves = halves_of(node);
        if (node->x->is_grad_masked) { // what is no maximum gets nothing anyway
            loops_mask_positive(node->y, node->y->grad, node->y->data, node->context->threads);
        }
        bf16_max_pool_back(&halves, (const void *)node->y->grad, (void *)node->x->grad);
        return STATUS_OK;
    }
    uint32_t block = node->x->block;
    if (node->x->grad != NULL) {
        run_planes(node, block == 16  ? backward_block16
                         : block == 8 ? backward_block8
                                      : backward_plain);
    }
    return STATUS_OK;
}

static void max_pool_destroy(struct node *node)
{
    struct max_pool *pool = (struct max_pool *)node;
    memory_destroy_large(pool->indices, pool->bytes);
    free(pool);
}

static const struct node_ops max_pool_ops = {
    .forward = max_pool_forward,
    .backward = max_pool_backward,
    .destroy = max_pool_destroy,
};

enum status node_create_max_pool(struct node *base, struct node **ret_node)
{
    if (base->op.window > WINDOW_MAX) {
        log_error("max pooling over windows larger than %d is not supported on cpu", WINDOW_MAX);
        return STATUS_UNSUPPORTED;
    }
    struct max_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return STATUS_NO_MEMORY;
    }
    pool->base = *base;
    pool->base.ops = &max_pool_ops;
    base->y->block = base->x->block;
    base->y->element_bytes = base->x->element_bytes;
    base->x->is_grad_masked = base->x->is_rectified && !base->x->is_shared;
    pool->base.keeps_y = base->x->is_grad_masked;
    pool->bytes = tensor_count(base->y);
    pool->indices = memory_create_large(pool->bytes);
    if (pool->indices == NULL) {
        free(pool);
        return STATUS_NO_MEMORY;
    }
    *ret_node = &pool->base;
    return STATUS_OK;
}
