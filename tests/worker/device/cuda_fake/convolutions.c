/* Engines and plans of convolutions, in the place of dnn.c and dnn_engines.c: loops over
 * x (N, H, W, C), w (K, R, S, C) and y (N, P, Q, K).
 *
 * FAKE_ENGINES names the engines there are, as the library would put them, the best first: "41:3000
 * 7:1000 9:broken" has one that takes 3 microseconds of the stream's time, one that takes 1, and
 * one that fails when it runs. They compute the same. */
#include "tests/worker/device/cuda_fake/libraries.h"
#include "tests/worker/device/cuda_fake/stream.h"
#include "worker/device/cuda/dnn/dnn_engines.h"
#include "worker/device/cuda/host/report.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKSPACE_BYTES ((size_t)12345) // the library's to scribble over
#define USUAL_ENGINES   "loops:1000"
#define BROKEN          "broken"

struct convolution {
    struct dnn_conv shape;
    enum dnn_pass pass;
    bool is_bf16;
    struct dnn_operands operands; // of the run
    bool is_loaded, is_broken;
    uint64_t cost_ns;
};

/* As floats. The pass's result is zero at first. */
struct tensors {
    float *x, *w, *y;
};

/* Products with one factor. Compilers take several at once: each sum is another one. */
FAKE_ARITHMETIC static inline void add_products(uint32_t count, float factor,
                                                const float *restrict values, float *restrict sums)
{
    for (uint32_t i = 0; i < count; i++) {
        sums[i] += factor * values[i];
    }
}

/* The products of one pixel of y and one tap, whose first elements these are. Forward, of all
 * outputs. */
FAKE_ARITHMETIC static inline void add_tap(const struct convolution *convolution, float *x,
                                           float *w, float *y)
{
    const struct dnn_conv *s = &convolution->shape;
    if (convolution->pass == DNN_DATA_GRADIENT) {
        add_products(s->inputs, *y, w, x);
    } else if (convolution->pass == DNN_WEIGHT_GRADIENT) {
        add_products(s->inputs, *y, x, w);
    }
    for (uint32_t c = 0; c < s->inputs && convolution->pass == DNN_FORWARD; c++) {
        add_products(s->outputs, x[c], w + (size_t)c * s->outputs, y);
    }
}

/* Forward, k is 0, and w is turned. */
FAKE_ARITHMETIC static void convolve(const struct convolution *convolution,
                                     const struct tensors *tensors, uint32_t n, uint32_t k)
{
    const struct dnn_conv *s = &convolution->shape;
    uint32_t tap_count = s->window * s->window;
    size_t tap_size = (size_t)s->inputs * (convolution->pass == DNN_FORWARD ? s->outputs : 1);
    for (uint32_t at = 0; at < s->y_rows * s->y_columns; at++) {
        uint32_t p = at / s->y_columns, q = at % s->y_columns;
        size_t y = (((size_t)n * s->y_rows + p) * s->y_columns + q) * s->outputs + k;
        for (uint32_t tap = 0; tap < tap_count; tap++) {
            uint32_t row = p * s->stride + tap / s->window - s->padding;
            uint32_t column = q * s->stride + tap % s->window - s->padding; // below 0: very large
            size_t x = (((size_t)n * s->x_rows + row) * s->x_columns + column) * s->inputs;
            size_t w = ((size_t)k * tap_count + tap) * tap_size;
            if (row < s->x_rows && column < s->x_columns) {
                add_tap(convolution, tensors->x + x, tensors->w + w, tensors->y + y);
            }
        }
    }
}

/* Takes w (K, R, S, C), and returns it as (R, S, C, K). */
FAKE_ARITHMETIC static float *turn(float *w, size_t outputs, size_t others)
{
    float *turned = calloc(outputs * others, sizeof(*turned));
    if (turned == NULL) {
        abort();
    }
    for (size_t i = 0; i < outputs * others; i++) {
        turned[i % others * outputs + i / others] = w[i];
    }
    free(w);
    return turned;
}

/* The pass's operands, and zeros for its result. */
static float *take(const struct convolution *c, const void *values, size_t count, bool is_result)
{
    if (!is_result) {
        return fake_take(values, c->is_bf16, count);
    }
    float *zeros = calloc(count, sizeof(*zeros));
    if (zeros == NULL) {
        abort();
    }
    return zeros;
}

static void add_bias_and_relu(const struct convolution *c, float *y, size_t count)
{
    const struct dnn_conv *s = &c->shape;
    float *bias = s->has_bias ? fake_take(c->operands.bias, c->is_bf16, s->outputs) : NULL;
    for (size_t i = 0; i < count; i++) {
        float value = y[i] + (bias != NULL ? bias[i % s->outputs] : 0);
        y[i] = s->has_relu && value < 0 ? 0 : value;
    }
    free(bias);
}

/* Like the library, of what is stored, and onto what is there. */
FAKE_ARITHMETIC static void add_up(const float *y, size_t rows, size_t channels, float *sums,
                                   float *square_sums)
{
    for (size_t i = 0; i < rows * channels; i++) {
        sums[i % channels] += y[i];
        square_sums[i % channels] += y[i] * y[i];
    }
}

static void take_statistics(const struct convolution *c, size_t y_count)
{
    size_t channels = c->shape.outputs;
    float *y = fake_take(c->operands.y, c->is_bf16, y_count);
    float *sums = fake_take(c->operands.sums, false, channels);
    float *square_sums = fake_take(c->operands.square_sums, false, channels);
    add_up(y, y_count / channels, channels, sums, square_sums);
    fake_give(c->operands.sums, false, sums, channels);
    fake_give(c->operands.square_sums, false, square_sums, channels);
    free(y);
    free(sums);
    free(square_sums);
}

static void run_pass(void *context)
{
    const struct convolution *c = context;
    const struct dnn_conv *s = &c->shape;
    size_t x_count = (size_t)s->batch * s->x_rows * s->x_columns * s->inputs;
    size_t w_count = (size_t)s->outputs * s->window * s->window * s->inputs;
    size_t y_count = (size_t)s->batch * s->y_rows * s->y_columns * s->outputs;
    struct tensors tensors = {
        .x = take(c, c->operands.x, x_count, c->pass == DNN_DATA_GRADIENT),
        .w = take(c, c->operands.w, w_count, c->pass == DNN_WEIGHT_GRADIENT),
        .y = take(c, c->operands.y, y_count, c->pass == DNN_FORWARD),
    };
    memset(c->operands.workspace, 0xFF, WORKSPACE_BYTES);
    uint32_t turns = s->outputs;
    if (c->pass == DNN_FORWARD) {
        tensors.w = turn(tensors.w, s->outputs, w_count / s->outputs);
        turns = 1;
    }
    for (uint32_t i = 0; i < s->batch * turns; i++) {
        convolve(c, &tensors, i / turns, i % turns);
    }
    if (c->pass == DNN_FORWARD) {
        add_bias_and_relu(c, tensors.y, y_count);
        fake_give(c->operands.y, c->is_bf16, tensors.y, y_count);
        if (s->has_statistics) {
            take_statistics(c, y_count);
        }
    } else if (c->pass == DNN_DATA_GRADIENT) {
        fake_give(c->operands.x, c->is_bf16, tensors.x, x_count);
    } else {
        fake_give(c->operands.w, c->is_bf16, tensors.w, w_count);
    }
    free(tensors.x);
    free(tensors.w);
    free(tensors.y);
}

/* The engines of this process: "NUMBER:COST ...". */
static const char *engines(void)
{
    const char *list = getenv("FAKE_ENGINES");
    return list != NULL ? list : USUAL_ENGINES;
}

/* Every second one is of the second heuristics alone. */
void dnn_propose(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                 enum dnn_lists lists, struct dnn_proposals *proposals)
{
    (void)target;
    (void)conv;
    (void)pass;
    uint32_t index = 0;
    proposals->count = 0;
    for (const char *at = engines(); *at != '\0' && lists != DNN_LIST_FALLBACKS; index++) {
        if (index % 2 == 0 || lists == DNN_LISTS_BEST) {
            snprintf(proposals->list[proposals->count++].text, DNN_ENGINE_BYTES, "%.*s",
                     (int)strcspn(at, ":"), at);
            proposals->proposed++;
        }
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
}

/* What stands behind an engine's number; NULL if it is not there. */
static const char *find_engine(const char *number)
{
    size_t length = strlen(number);
    for (const char *at = engines(); *at != '\0';) {
        if (strncmp(at, number, length) == 0 && at[length] == ':') {
            return at + length + 1;
        }
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return NULL;
}

bool dnn_plan_engine(const struct dnn_target *target, const struct dnn_conv *conv,
                     enum dnn_pass pass, const struct dnn_engine *engine, struct dnn_plan *ret_plan,
                     char failure[DNN_FAILURE_BYTES])
{
    const char *facts = find_engine(engine->text);
    struct convolution *convolution = facts != NULL ? calloc(1, sizeof(*convolution)) : NULL;
    if (convolution == NULL) {
        snprintf(failure, DNN_FAILURE_BYTES, "there is no such engine");
        return false;
    }
    *convolution = (struct convolution){
        .shape = *conv,
        .pass = pass,
        .is_bf16 = target->precision == PRECISION_BF16,
        .is_broken = strncmp(facts, BROKEN, strlen(BROKEN)) == 0,
        .cost_ns = strtoull(facts, NULL, 10),
    };
    *ret_plan = (struct dnn_plan){.plan = convolution, .workspace_bytes = WORKSPACE_BYTES};
    snprintf(ret_plan->engine, sizeof(ret_plan->engine), "%.*s", (int)sizeof(ret_plan->engine) - 1,
             engine->text);
    return true;
}

void dnn_keep_plan(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                   const struct dnn_engine *engine, const struct dnn_plan *plan)
{
    (void)target; // planning takes no time here
    (void)conv;
    (void)pass;
    (void)engine;
    (void)plan;
}

void dnn_plan_destroy(struct dnn_plan *plan)
{
    free(plan->plan);
    *plan = (struct dnn_plan){0};
}

enum status dnn_plan_run(const struct dnn_target *target, const struct dnn_plan *plan,
                         const struct dnn_operands *operands)
{
    struct convolution *planned = plan->plan;
    cudaError_t error = fake_library_run(&planned->is_loaded);
    struct convolution run = *planned;
    run.operands = *operands;
    if (error == cudaSuccess && planned->is_broken) {
        error = cudaErrorLaunchFailure;
    }
    const struct fake_task task = {run_pass, &run, sizeof(run), planned->cost_ns};
    if (error == cudaSuccess) {
        error = fake_stream_launch_task(target->handle->stream, &task);
    }
    if (error != cudaSuccess) {
        report_error("cuDNN cannot run a convolution: %s", cudaGetErrorString(error));
        return STATUS_DEVICE;
    }
    return STATUS_OK;
}
