/* Batch normalisation (Ioffe and Szegedy 2015).
 *
 *     training    z = (x - mean) / sqrt(variance + epsilon), y = scale z + shift
 *     backward    dscale = sum dy z, dshift = sum dy
 *                 dx = scale / sqrt(variance + epsilon) (dy - mean of dy - z mean of dy z)
 *
 * Means are over the samples that count, their rows and columns; with sum_over_workers over those
 * of all workers. dscale and dshift are the worker's own share, for they are exchanged like any
 * other gradient. */
#include "worker/device/ref/kernels.h"

#include <math.h>

/* Channel c of sample n begins here. */
static size_t plane_at(const struct op *op, size_t n, size_t c)
{
    return (n * op->x.channels + c) * op->x.rows * op->x.columns;
}

static size_t plane_size(const struct op *op)
{
    return (size_t)op->x.rows * op->x.columns;
}

/* Sums over all workers, where there are more that count. */
static void sum_over_workers(const struct ref_call *call, double *values, uint32_t count)
{
    const struct program_input *input = call->input;
    if (input->sum_over_workers == NULL) {
        return;
    }
    enum status status = input->sum_over_workers(input->context, values, count);
    if (status != STATUS_OK) {
        *call->status = status;
    }
}

static void move_statistics(const struct ref_call *call, uint32_t c, double variance, double count)
{
    const struct op *op = call->op;
    float *mean_at = call->statistics + op->statistics + c;
    float *variance_at = mean_at + op->x.channels;
    const double rate = (double)DEVICE_STATISTICS_RATE;
    double unbiased = count > 1 ? variance * count / (count - 1) : variance;
    *mean_at = (float)((1 - rate) * (double)*mean_at + rate * call->saved[c]);
    *variance_at = (float)((1 - rate) * (double)*variance_at + rate * unbiased);
}

/* Mean and deviation of the batch, into saved. */
static void take_batch_statistics(const struct ref_call *call)
{
    const struct op *op = call->op;
    uint32_t channels = op->x.channels;
    double *sums = call->scratch, *squares = sums + channels, *count = squares + channels;
    *count = (double)call->input->count * (double)plane_size(op);
    for (uint32_t c = 0; c < channels; c++) {
        sums[c] = squares[c] = 0;
        for (uint32_t n = 0; n < call->input->count; n++) {
            const float *x = call->x + plane_at(op, n, c);
            for (size_t i = 0; i < plane_size(op); i++) {
                sums[c] += (double)x[i];
                squares[c] += (double)x[i] * (double)x[i];
            }
        }
    }
    sum_over_workers(call, sums, 2 * channels + 1);
    for (uint32_t c = 0; c < channels; c++) {
        double mean = sums[c] / *count;
        double variance = fmax(0, squares[c] / *count - mean * mean);
        call->saved[c] = mean;
        call->saved[channels + c] = 1 / sqrt(variance + (double)op->epsilon);
        move_statistics(call, c, variance, *count);
    }
}

static void recall_statistics(const struct ref_call *call)
{
    const struct op *op = call->op;
    const float *mean = call->statistics + op->statistics, *variance = mean + op->x.channels;
    for (uint32_t c = 0; c < op->x.channels; c++) {
        call->saved[c] = (double)mean[c];
        call->saved[op->x.channels + c] = 1 / sqrt((double)variance[c] + (double)op->epsilon);
    }
}

static void forward(const struct ref_call *call)
{
    const struct op *op = call->op;
    if (call->input->is_training) {
        take_batch_statistics(call);
    } else {
        recall_statistics(call);
    }
    for (size_t i = 0; i < (size_t)call->batch_size * op->x.channels; i++) {
        size_t c = i % op->x.channels;
        double factor = call->saved[op->x.channels + c] * (double)call->params[op->weight + c];
        double shift = (double)call->params[op->bias + c];
        for (size_t j = i * plane_size(op); j < (i + 1) * plane_size(op); j++) {
            call->y[j] = (float)(((double)call->x[j] - call->saved[c]) * factor + shift);
        }
    }
}

/* dscale and dshift; the sums over all workers are then in scratch: of dy (C), of dy z (C), and
 * their count. */
static void param_gradients(const struct ref_call *call)
{
    const struct op *op = call->op;
    uint32_t channels = op->x.channels;
    double *sums = call->scratch, *products = sums + channels;
    for (uint32_t c = 0; c < channels; c++) {
        double mean = call->saved[c], inverse = call->saved[channels + c];
        sums[c] = products[c] = 0;
        for (uint32_t n = 0; n < call->input->count; n++) {
            size_t first = plane_at(op, n, c);
            for (size_t i = first; i < first + plane_size(op); i++) {
                double dy = (double)call->dy[i];
                sums[c] += dy;
                products[c] += dy * ((double)call->x[i] - mean) * inverse;
            }
        }
        call->grads[op->weight + c] = (float)products[c];
        call->grads[op->bias + c] = (float)sums[c];
    }
    products[channels] = (double)call->input->count * (double)plane_size(op);
    sum_over_workers(call, sums, 2 * channels + 1);
}

static void backward(const struct ref_call *call)
{
    const struct op *op = call->op;
    uint32_t channels = op->x.channels;
    param_gradients(call);
    const double *sums = call->scratch, *products = sums + channels;
    double count = products[channels];
    for (size_t i = 0; call->dx != NULL && i < (size_t)call->batch_size * channels; i++) {
        size_t c = i % channels;
        bool is_padding = i / channels >= call->input->count;
        double mean = call->saved[c], inverse = call->saved[channels + c];
        double factor = inverse * (double)call->params[op->weight + c];
        for (size_t j = i * plane_size(op); j < (i + 1) * plane_size(op); j++) {
            double z = ((double)call->x[j] - mean) * inverse;
            double dx = factor * ((double)call->dy[j] - sums[c] / count - z * products[c] / count);
            call->dx[j] = is_padding ? 0 : (float)dx;
        }
    }
}

const struct ref_kernel ref_batch_norm = {
    .forward = forward,
    .backward = backward,
};
