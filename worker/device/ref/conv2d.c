/* Convolution, tap by tap.
 *
 * A tap is one element (r, s) of the window. Position (p, q) of the result meets row
 * p * stride + r - padding of the input, and likewise a column; for each tap there is a range of
 * positions for which that lies inside the input. All three passes walk those ranges, so padding is
 * never stored and never read:
 *
 *     forward           y[k][p][q]   += w[k][c][r][s] * x[c][row][column]
 *     weight gradient   dw[k][c][r][s] = sum of dy[k][p][q] * x[c][row][column]
 *     input gradient    dx[c][row][column] += w[k][c][r][s] * dy[k][p][q]
 *
 * Loops along rows have a form for steps of one, which compilers vectorise.
 *
 * In builds with a sanitizer, both ends of a row are read before its loop, which the sanitizer
 * leaves alone: it would look at every element, and jobs would take two to three times as long.
 * Other builds do not read them. */
#include "worker/device/ref/kernels.h"
#include "worker/device/ref/sanitized.h"

#include <string.h>

struct range {
    uint32_t begin, end;
};

/* Where a tap lands inside the input. */
struct tap {
    struct range p, q;
    uint32_t r, s;
};

static struct range range_inside(uint32_t x_size, uint32_t y_size, uint32_t offset,
                                 const struct op *op)
{
    struct range range = {0, 0};
    if (offset < op->padding) {
        range.begin = (op->padding - offset + op->stride - 1) / op->stride;
    }
    if (x_size + op->padding > offset) {
        range.end = (x_size - 1 + op->padding - offset) / op->stride + 1;
    }
    range.end = range.end < y_size ? range.end : y_size;
    range.begin = range.begin < range.end ? range.begin : range.end;
    return range;
}

static struct tap tap_at(const struct op *op, uint32_t r, uint32_t s)
{
    struct tap tap = {
        .p = range_inside(op->x.rows, op->y.rows, r, op),
        .q = range_inside(op->x.columns, op->y.columns, s, op),
        .r = r,
        .s = s,
    };
    return tap;
}

/* Index in the input's plane of what position (p, q.begin) meets. */
static size_t first_in_row(const struct op *op, const struct tap *tap, uint32_t p)
{
    size_t row = (size_t)p * op->stride + tap->r - op->padding;
    size_t column = (size_t)tap->q.begin * op->stride + tap->s - op->padding;
    return row * op->x.columns + column;
}

#define ROW_LOOP __attribute__((no_sanitize("address", "thread", "undefined")))

/* Shows a sanitizer what a row's loop reaches: the values in it and the sums that it adds to. */
static void see_ends(const float *first, const float *last, const double *first_sum,
                     const double *last_sum)
{
    if (!IS_SANITIZED) {
        return;
    }
    (void)*(const volatile float *)first;
    (void)*(const volatile float *)last;
    (void)*(const volatile double *)first_sum;
    (void)*(const volatile double *)last_sum;
}

ROW_LOOP static void add_row_forward(uint32_t count, uint32_t stride, double weight,
                                     const float *x_row, double *y_row)
{
    if (stride == 1) {
        for (uint32_t q = 0; q < count; q++) {
            y_row[q] += weight * (double)x_row[q];
        }
        return;
    }
    for (uint32_t q = 0; q < count; q++) {
        y_row[q] += weight * (double)x_row[(size_t)q * stride];
    }
}

/* y += weight * x, of one plane each */
static void add_forward(const struct op *op, const struct tap *tap, double weight, const float *x,
                        double *y)
{
    uint32_t count = tap->q.end - tap->q.begin;
    for (uint32_t p = tap->p.begin; p < tap->p.end && count > 0; p++) {
        const float *x_row = x + first_in_row(op, tap, p);
        double *y_row = y + (size_t)p * op->y.columns + tap->q.begin;
        see_ends(x_row, x_row + (size_t)(count - 1) * op->stride, y_row, y_row + count - 1);
        add_row_forward(count, op->stride, weight, x_row, y_row);
    }
}

ROW_LOOP static void add_row_input(uint32_t count, uint32_t stride, double weight,
                                   const float *dy_row, double *dx_row)
{
    if (stride == 1) {
        for (uint32_t q = 0; q < count; q++) {
            dx_row[q] += weight * (double)dy_row[q];
        }
        return;
    }
    for (uint32_t q = 0; q < count; q++) {
        dx_row[(size_t)q * stride] += weight * (double)dy_row[q];
    }
}

/* dx += weight * dy, of one plane each */
static void add_input_gradient(const struct op *op, const struct tap *tap, double weight,
                               const float *dy, double *dx)
{
    uint32_t count = tap->q.end - tap->q.begin;
    for (uint32_t p = tap->p.begin; p < tap->p.end && count > 0; p++) {
        const float *dy_row = dy + (size_t)p * op->y.columns + tap->q.begin;
        double *dx_row = dx + first_in_row(op, tap, p);
        see_ends(dy_row, dy_row + count - 1, dx_row, dx_row + (size_t)(count - 1) * op->stride);
        add_row_input(count, op->stride, weight, dy_row, dx_row);
    }
}

ROW_LOOP static void add_row_weight(uint32_t count, uint32_t stride, const float *dy_row,
                                    const float *x_row, double *sums)
{
    if (stride == 1) {
        for (uint32_t q = 0; q < count; q++) {
            sums[q] += (double)dy_row[q] * (double)x_row[q];
        }
        return;
    }
    for (uint32_t q = 0; q < count; q++) {
        sums[q] += (double)dy_row[q] * (double)x_row[(size_t)q * stride];
    }
}

/* sums[q] += dy * x along each row of one plane: a sum per column, so that compilers vectorise. */
static void add_weight_gradient(const struct op *op, const struct tap *tap, const float *dy,
                                const float *x, double *sums)
{
    uint32_t count = tap->q.end - tap->q.begin;
    for (uint32_t p = tap->p.begin; p < tap->p.end && count > 0; p++) {
        const float *dy_row = dy + (size_t)p * op->y.columns + tap->q.begin;
        const float *x_row = x + first_in_row(op, tap, p);
        see_ends(dy_row, dy_row + count - 1, sums, sums + count - 1);
        see_ends(x_row, x_row + (size_t)(count - 1) * op->stride, sums, sums);
        add_row_weight(count, op->stride, dy_row, x_row, sums);
    }
}

/* Plane `channel` of sample n. */
static size_t plane_offset(struct shape shape, uint32_t n, uint32_t channel)
{
    return ((size_t)n * shape.channels + channel) * shape.rows * shape.columns;
}

/* Index of w[k][c][r][s]. */
static size_t weight_offset(const struct op *op, uint32_t k, uint32_t c, const struct tap *tap)
{
    return ((((size_t)k * op->x.channels + c) * op->window) + tap->r) * op->window + tap->s;
}

static void forward_plane(const struct ref_call *call, uint32_t n, uint32_t k)
{
    const struct op *op = call->op;
    const float *weight = call->params + op->weight; // (K, C, R, S)
    double *sums = call->scratch;                    // (P, Q)
    size_t plane = (size_t)op->y.rows * op->y.columns;

    for (size_t i = 0; i < plane; i++) {
        sums[i] = op->has_bias ? (double)call->params[op->bias + k] : 0;
    }
    for (uint32_t c = 0; c < op->x.channels; c++) {
        for (uint32_t i = 0; i < op->window * op->window; i++) {
            struct tap tap = tap_at(op, i / op->window, i % op->window);
            add_forward(op, &tap, (double)weight[weight_offset(op, k, c, &tap)],
                        call->x + plane_offset(op->x, n, c), sums);
        }
    }
    float *y = call->y + plane_offset(op->y, n, k);
    for (size_t i = 0; i < plane; i++) {
        y[i] = (float)sums[i];
    }
}

static void forward(const struct ref_call *call)
{
    for (uint32_t n = 0; n < call->batch_size; n++) {
        for (uint32_t k = 0; k < call->op->y.channels; k++) {
            forward_plane(call, n, k);
        }
    }
}

static void input_gradient_plane(const struct ref_call *call, uint32_t n, uint32_t c)
{
    const struct op *op = call->op;
    const float *weight = call->params + op->weight; // (K, C, R, S)
    double *sums = call->scratch;                    // (H, W)
    size_t plane = (size_t)op->x.rows * op->x.columns;

    memset(sums, 0, plane * sizeof(*sums));
    for (uint32_t k = 0; k < op->y.channels; k++) {
        for (uint32_t i = 0; i < op->window * op->window; i++) {
            struct tap tap = tap_at(op, i / op->window, i % op->window);
            add_input_gradient(op, &tap, (double)weight[weight_offset(op, k, c, &tap)],
                               call->dy + plane_offset(op->y, n, k), sums);
        }
    }
    float *dx = call->dx + plane_offset(op->x, n, c);
    for (size_t i = 0; i < plane; i++) {
        dx[i] = (float)sums[i];
    }
}

static void weight_gradient(const struct ref_call *call, uint32_t k, uint32_t c)
{
    const struct op *op = call->op;
    float *weight = call->grads + op->weight; // (K, C, R, S)
    double *sums = call->scratch;             // (Q)

    for (uint32_t i = 0; i < op->window * op->window; i++) {
        struct tap tap = tap_at(op, i / op->window, i % op->window);
        memset(sums, 0, op->y.columns * sizeof(*sums));
        for (uint32_t n = 0; n < call->batch_size; n++) {
            add_weight_gradient(op, &tap, call->dy + plane_offset(op->y, n, k),
                                call->x + plane_offset(op->x, n, c), sums);
        }
        double sum = 0;
        for (uint32_t q = 0; q < op->y.columns; q++) {
            sum += sums[q];
        }
        weight[weight_offset(op, k, c, &tap)] = (float)sum;
    }
}

static void bias_gradient(const struct ref_call *call, uint32_t k)
{
    const struct op *op = call->op;
    size_t plane = (size_t)op->y.rows * op->y.columns;
    double sum = 0;
    for (uint32_t n = 0; n < call->batch_size; n++) {
        const float *dy = call->dy + plane_offset(op->y, n, k);
        for (size_t i = 0; i < plane; i++) {
            sum += (double)dy[i];
        }
    }
    call->grads[op->bias + k] = (float)sum;
}

static void backward(const struct ref_call *call)
{
    const struct op *op = call->op;
    for (uint32_t k = 0; k < op->y.channels; k++) {
        for (uint32_t c = 0; c < op->x.channels; c++) {
            weight_gradient(call, k, c);
        }
        if (op->has_bias) {
            bias_gradient(call, k);
        }
    }
    if (call->dx == NULL) {
        return;
    }
    for (uint32_t n = 0; n < call->batch_size; n++) {
        for (uint32_t c = 0; c < op->x.channels; c++) {
            input_gradient_plane(call, n, c);
        }
    }
}

const struct ref_kernel ref_conv2d = {
    .forward = forward,
    .backward = backward,
};
