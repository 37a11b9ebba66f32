/* The kernels of the CUDA backend: launches, for C. Only what no library has, or what would cost a
 * pass of its own there. Arguments are device memory unless said otherwise; `type` says what
 * activations are. Launches return at once, on a stream of CUDA's (cudaStream_t, as void *). */
#ifndef WORKER_DEVICE_CUDA_KERNELS_H
#define WORKER_DEVICE_CUDA_KERNELS_H

#include "common/optimizer/optimizer_formulas.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_type { CUDA_TYPE_FLOAT, CUDA_TYPE_BF16 };

struct cuda_shape {
    size_t channels, pixels; // rows times columns
};

struct cuda_weights {
    size_t inputs, taps; // C, R S
};

struct cuda_window {
    unsigned x_channels, x_rows, x_columns, y_channels, y_rows, y_columns;
    unsigned window, stride, padding;
};

struct cuda_dropout {
    uint64_t stream;
    uint32_t threshold; // dropped if random < rate 2^32
    float scale;
};

struct cuda_loss {
    uint32_t classes, count; // count: samples that are not padding
    float gradient_scale;
};

#define CUDA_NORM_RUN 16 // rows that are added up in float

enum cuda_mask { CUDA_NO_MASK, CUDA_MASK_X, CUDA_MASK_Y };

#define CUDA_FINISH_THREADS 256 // that add up the parts of a channel

/* What follows from the sums of a channel, in the launch that ends them. */
enum cuda_finish {
    CUDA_FINISH_UNCENTRE,  // before sums of workers are added up: from around the centre to zero
    CUDA_FINISH_FORWARD,   // mean, deviation, statistics
    CUDA_FINISH_GRADIENTS, // of scale and bias; before sums of workers are added up
    CUDA_FINISH_BACKWARD,  // these, and what the gradient of x takes
    CUDA_FINISH_BIAS,      // dbias alone: the first sums as floats
};

/* Over rows of (rows, C). */
struct cuda_norm {
    size_t channels, rows, counted; // counted: rows that are not padding
    size_t parts;                   // threads that share a channel's sums
    enum cuda_mask mask;
    bool has_relu, adds_x;
};

struct cuda_norm_operands {
    const void *x, *other; // NULL where there is none
    void *y, *dy, *dx;
    const float *centre, *factor, *shift, *slope, *offset; // (C)
    float *new_centre; // (C), or NULL: the first row is the centre, and is written here
    double *parts;     // (parts, C, 2)
};

/* What follows from sums: one thread for each channel. */
struct cuda_norm_channel {
    const float *scale, *bias;                       // (C) parameters
    float *statistic_mean, *statistic_variance;      // (C)
    float *centre, *factor, *shift, *slope, *offset; // (C), written
    float *dscale, *dbias;                           // (C), written by backward
    double *inverse;                                 // (C) 1 / deviation
    const float *x_sums, *x_square_sums;             // (C), or NULL: see kernel_norm_take
    double *sums;                                    // (2C + 1): first, second, count
    double count;                                    // of this worker
    float epsilon, rate;
    bool is_around_zero; // sums are, with their count: of all workers, or of a convolution
};

/* How a launch ended: 0, or CUDA's error. */
int kernel_pixels(enum cuda_type type, const struct cuda_shape *shape, const float *from, void *to,
                  size_t count, void *stream);
int kernel_weights_in(enum cuda_type type, const struct cuda_weights *weights, const float *from,
                      void *to, size_t count, void *stream);
int kernel_weights_out(enum cuda_type type, const struct cuda_weights *weights, const void *from,
                       float *to, size_t count, void *stream);
int kernel_relu(enum cuda_type type, void *y, size_t count, void *stream);
int kernel_mask_positive(enum cuda_type type, void *grad, const void *data, size_t count,
                         void *stream);
int kernel_add(enum cuda_type type, const void *x, const void *other, void *y, bool has_relu,
               size_t count, void *stream);
int kernel_subsample(enum cuda_type type, const struct cuda_window *window, const void *x, void *y,
                     size_t count, void *stream);
int kernel_subsample_back(enum cuda_type type, const struct cuda_window *window, const void *dy,
                          void *dx, size_t count, void *stream);
int kernel_pad(enum cuda_type type, const struct cuda_window *window, const void *x, void *y,
               size_t count, void *stream);
int kernel_pad_back(enum cuda_type type, const struct cuda_window *window, const void *dy, void *dx,
                    size_t count, void *stream);
int kernel_max_pool(enum cuda_type type, const struct cuda_window *window, const void *x, void *y,
                    unsigned char *indices, size_t count, void *stream);
int kernel_max_pool_back(enum cuda_type type, const struct cuda_window *window, const void *dy,
                         const unsigned char *indices, void *dx, size_t count, void *stream);
int kernel_global_pool(enum cuda_type type, const struct cuda_shape *shape, const void *x, void *y,
                       size_t count, void *stream);
int kernel_global_pool_back(enum cuda_type type, const struct cuda_shape *shape, const void *dy,
                            void *dx, size_t count, void *stream);
int kernel_dropout(enum cuda_type type, const struct cuda_shape *shape,
                   const struct cuda_dropout *dropout, const uint64_t *sample_keys,
                   const void *from, void *to, size_t count, void *stream);
int kernel_loss(enum cuda_type type, const struct cuda_loss *loss, const void *x,
                const uint32_t *labels, float *probabilities, double *losses, uint32_t *hits,
                size_t samples, void *stream);
int kernel_loss_back(enum cuda_type type, const struct cuda_loss *loss, const float *probabilities,
                     const uint32_t *labels, void *dx, size_t count, void *stream);
int kernel_bias(enum cuda_type type, const float *bias, void *y, size_t outputs, bool has_relu,
                size_t count, void *stream);

/* Sums of all rows in two launches, in an order that depends on the shape alone: parts; then the
 * sums of these, into channel->sums, and what follows from them. */
int kernel_norm_parts(enum cuda_type type, const struct cuda_norm *norm,
                      const struct cuda_norm_operands *operands, void *stream);
int kernel_norm_finish(const struct cuda_norm *norm, const double *parts,
                       const struct cuda_norm_channel *channel, enum cuda_finish finish,
                       void *stream);
int kernel_norm_apply(enum cuda_type type, const struct cuda_norm *norm,
                      const struct cuda_norm_operands *operands, void *stream);
int kernel_norm_gradient(enum cuda_type type, const struct cuda_norm *norm,
                         const struct cuda_norm_operands *operands, void *stream);

/* Sums around zero of what a convolution has added up: no row is read. */
int kernel_norm_take(const struct cuda_norm_channel *channel, size_t channels, void *stream);

/* After sums of workers were added up, or of what a convolution has. */
int kernel_norm_forward(const struct cuda_norm_channel *channel, size_t channels, void *stream);
int kernel_norm_recall(const struct cuda_norm_channel *channel, size_t channels, void *stream);
int kernel_norm_backward(const struct cuda_norm_channel *channel, size_t channels, void *stream);

/* One update of `count` parameters; the vectors begin with the first of them. */
int kernel_update(const struct optimizer_update *update, const struct optimizer_vectors *vectors,
                  size_t count, void *stream);

#ifdef __cplusplus
}
#endif

#endif
