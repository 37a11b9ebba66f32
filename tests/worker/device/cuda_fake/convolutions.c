/* Plans of convolutions, in the place of dnn.c: loops over x (N, H, W, C), w (K, R, S, C) and
 * y (N, P, Q, K). */
#include "tests/worker/device/cuda_fake/libraries.h"
#include "tests/worker/device/cuda_fake/stream.h"
#include "worker/device/cuda/dnn.h"

#include <stdlib.h>

#define WORKSPACE_BYTES ((size_t)12345) // the library's to scribble over

struct convolution {
    struct dnn_conv shape;
    enum dnn_pass pass;
    bool is_bf16;
    struct dnn_operands operands; // of the run
};

/* Calls visit for every product of the convolution: indices into x, w and y. */
static void visit_sample(const struct convolution *convolution, uint32_t n, uint32_t k,
                         void (*visit)(void *context, size_t x, size_t w, size_t y), void *context)
{
    const struct dnn_conv *s = &convolution->shape;
    uint32_t tap_count = s->window * s->window;
    for (uint32_t at = 0; at < s->y_rows * s->y_columns; at++) {
        uint32_t p = at / s->y_columns, q = at % s->y_columns;
        for (uint32_t tap = 0; tap < tap_count; tap++) {
            uint32_t row = p * s->stride + tap / s->window - s->padding;
            uint32_t column = q * s->stride + tap % s->window - s->padding; // below 0: very large
            if (row >= s->x_rows || column >= s->x_columns) {
                continue;
            }
            size_t x = (((size_t)n * s->x_rows + row) * s->x_columns + column) * s->inputs;
            size_t w = ((size_t)k * tap_count + tap) * s->inputs;
            size_t y = (((size_t)n * s->y_rows + p) * s->y_columns + q) * s->outputs + k;
            for (uint32_t c = 0; c < s->inputs; c++) {
                visit(context, x + c, w + c, y);
            }
        }
    }
}

struct sums {
    const struct convolution *convolution;
    float *sums; // of the result
};

static void add_forward(void *context, size_t x, size_t w, size_t y)
{
    const struct sums *sums = context;
    const struct convolution *c = sums->convolution;
    sums->sums[y] +=
        fake_load(c->operands.x, c->is_bf16, x) * fake_load(c->operands.w, c->is_bf16, w);
}

static void add_data_gradient(void *context, size_t x, size_t w, size_t y)
{
    const struct sums *sums = context;
    const struct convolution *c = sums->convolution;
    sums->sums[x] +=
        fake_load(c->operands.y, c->is_bf16, y) * fake_load(c->operands.w, c->is_bf16, w);
}

static void add_weight_gradient(void *context, size_t x, size_t w, size_t y)
{
    const struct sums *sums = context;
    const struct convolution *c = sums->convolution;
    sums->sums[w] +=
        fake_load(c->operands.y, c->is_bf16, y) * fake_load(c->operands.x, c->is_bf16, x);
}

static size_t result_count(const struct convolution *convolution)
{
    const struct dnn_conv *s = &convolution->shape;
    switch (convolution->pass) {
    case DNN_FORWARD:
        return (size_t)s->batch * s->y_rows * s->y_columns * s->outputs;
    case DNN_DATA_GRADIENT:
        return (size_t)s->batch * s->x_rows * s->x_columns * s->inputs;
    case DNN_WEIGHT_GRADIENT:
        return (size_t)s->outputs * s->window * s->window * s->inputs;
    }
    abort();
}

static void finish_forward(const struct convolution *c, const float *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value = sums[i];
        if (c->shape.has_bias) {
            value += fake_load(c->operands.bias, c->is_bf16, i % c->shape.outputs);
        }
        fake_store(c->operands.y, c->is_bf16, i, c->shape.has_relu && value < 0 ? 0 : value);
    }
}

static void run_pass(void *context)
{
    static void (*const visits[])(void *, size_t, size_t, size_t) = {
        [DNN_FORWARD] = add_forward,
        [DNN_DATA_GRADIENT] = add_data_gradient,
        [DNN_WEIGHT_GRADIENT] = add_weight_gradient,
    };
    const struct convolution *c = context;
    size_t count = result_count(c);
    struct sums sums = {.convolution = c, .sums = calloc(count, sizeof(float))};
    if (sums.sums == NULL) {
        abort();
    }
    memset(c->operands.workspace, 0xFF, WORKSPACE_BYTES);
    for (uint32_t n = 0; n < c->shape.batch; n++) {
        for (uint32_t k = 0; k < c->shape.outputs; k++) {
            visit_sample(c, n, k, visits[c->pass], &sums);
        }
    }
    void *result = c->pass == DNN_DATA_GRADIENT ? c->operands.x : c->operands.w;
    for (size_t i = 0; i < count && c->pass != DNN_FORWARD; i++) {
        fake_store(result, c->is_bf16, i, sums.sums[i]);
    }
    if (c->pass == DNN_FORWARD) {
        finish_forward(c, sums.sums, count);
    }
    free(sums.sums);
}

enum status dnn_plan_conv(const struct dnn_target *target, const struct dnn_conv *conv,
                          enum dnn_pass pass, struct dnn_plan *ret_plan)
{
    struct convolution *convolution = calloc(1, sizeof(*convolution));
    if (convolution == NULL) {
        return STATUS_NO_MEMORY;
    }
    *convolution = (struct convolution){
        .shape = *conv, .pass = pass, .is_bf16 = target->precision == PRECISION_BF16};
    *ret_plan = (struct dnn_plan){
        .plan = convolution, .workspace_bytes = WORKSPACE_BYTES, .engine = "loops"};
    return STATUS_OK;
}

void dnn_plan_destroy(struct dnn_plan *plan)
{
    free(plan->plan);
    *plan = (struct dnn_plan){0};
}

enum status dnn_plan_run(const struct dnn_target *target, struct dnn_plan *plan,
                         const struct dnn_operands *operands)
{
    struct convolution run = *(const struct convolution *)plan->plan;
    run.operands = *operands;
    fake_stream_queue_copy(target->handle->stream, run_pass, &run, sizeof(run));
    return STATUS_OK;
}
