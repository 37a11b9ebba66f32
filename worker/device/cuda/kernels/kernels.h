/* The kernels of the CUDA backend: launches, for C. Only what no library has, or what would cost a
 * pass of its own there. Arguments are device memory unless said otherwise; `type` says what
 * activations are. Launches return at once, on a stream of CUDA's (cudaStream_t, as void *). */
#ifndef WORKER_DEVICE_CUDA_KERNELS_KERNELS_H
#define WORKER_DEVICE_CUDA_KERNELS_KERNELS_H

#include "common/optimizer/optimizer_formulas.h"
#include "worker/device/mixed_label.h"
#include "worker/device/pixels.h"

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

/* Stored images, and the pixels that become of them: see worker/device/pixels.h. */
struct cuda_images {
    unsigned channels, stored_rows, stored_columns, rows, columns;
    const struct pixels_tap *row_taps, *column_taps; // NULL, both: rows and columns are as stored
    float scale[PIXELS_CHANNELS_MAX], shift[PIXELS_CHANNELS_MAX];
};

/* Weights (K, C, R S) of the flat vector, and their place in the library's layout, (K, R S, C). A
 * bias has one input and one tap. */
struct cuda_weight_row {
    size_t flat;  // of the flat vector, in floats
    size_t place; // of the library's, in bytes
    size_t begin; // elements of the rows before it
    size_t count; // elements
    size_t inputs, taps;
    bool is_float; // the library's, whatever the type of activations
};

/* Rows in the order of `begin`, without gaps. */
struct cuda_weight_copy {
    const struct cuda_weight_row *rows;
    size_t row_count;
    float *flat; // parameters, which are copied to the library's, or gradients, which come back
    void *library;
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
    bool is_mixed; // samples have two labels; otherwise `mixed` is not read
};

#define CUDA_NORM_RUN  16 // rows that are added up in float
#define CUDA_NORM_ROWS 4  // that a thread waits for at once, at most; divides a run

enum cuda_mask { CUDA_NO_MASK, CUDA_MASK_X, CUDA_MASK_Y };

#define CUDA_FINISH_THREADS 256 // that add up the parts of a channel

/* What follows from the sums of a channel, from whoever ends them. */
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
    unsigned rows_at_once;          // of a thread; set by launches, and of no matter for the bits
    enum cuda_mask mask;
    bool has_relu, adds_x;
};

struct cuda_norm_operands {
    const void *x, *other; // NULL where there is none
    const void *addend;    // of the parts of sums alone, or NULL: x and this are added up first,
    void *sum;             // and the sum, which may lie where x does, is written here
    void *y, *dy, *dx;
    const float *centre, *factor, *shift, *slope, *offset; // (C)
    float *new_centre; // (C), or NULL: the first row, of addend if any, is the centre; written here
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

/* Sums of rows, and what follows from them. */
struct cuda_norm_sums {
    struct cuda_norm_operands rows;
    struct cuda_norm_channel channel;
    enum cuda_finish finish;
};

#define CUDA_PEERS_MAX 16

/* A span of several flat vectors, each in the memory of a GPU that this one reaches. */
struct cuda_mean {
    float *vectors[CUDA_PEERS_MAX]; // (world) in the order of summation
    uint32_t world;
    float factor; // of the sum
    size_t offset, count;
};

/* A part of a bucket, of which several ranks have a vector each: see struct vector_mean. */
struct cuda_ranks {
    const float *vectors[CUDA_PEERS_MAX]; // (count)
    uint32_t ranks[CUDA_PEERS_MAX];       // (count)
    uint32_t count, world;
    float factor;                      // of the sum
    size_t chunk_ends[CUDA_PEERS_MAX]; // (world)
    size_t length;                     // of the part
};

/* How a launch ended: 0, or CUDA's error. */
int kernel_pixels(enum cuda_type type, const struct cuda_shape *shape, const float *from, void *to,
                  size_t count, void *stream);
int kernel_images(enum cuda_type type, const struct cuda_images *images, const void *bytes,
                  void *to, size_t count, void *stream);
int kernel_weights_in(enum cuda_type type, const struct cuda_weight_copy *copy, size_t count,
                      void *stream);
int kernel_weights_out(enum cuda_type type, const struct cuda_weight_copy *copy, size_t count,
                       void *stream);
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
                const uint32_t *labels, const struct mixed_label *mixed, float *probabilities,
                double *losses, uint32_t *hits, size_t samples, void *stream);
int kernel_loss_back(enum cuda_type type, const struct cuda_loss *loss, const float *probabilities,
                     const uint32_t *labels, const struct mixed_label *mixed, void *dx,
                     size_t count, void *stream);
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

/* The same in one launch, and in it what takes the sums: apply, gradient, or nothing else. Equal
 * bits. Rows that are looked at twice should lie in the GPU's cache the second time. */
int kernel_sums(enum cuda_type type, const struct cuda_norm *norm,
                const struct cuda_norm_sums *sums, void *stream);
int kernel_sums_apply(enum cuda_type type, const struct cuda_norm *norm,
                      const struct cuda_norm_sums *sums, const struct cuda_norm_operands *operands,
                      void *stream);
int kernel_sums_gradient(enum cuda_type type, const struct cuda_norm *norm,
                         const struct cuda_norm_sums *sums,
                         const struct cuda_norm_operands *operands, void *stream);

/* Sums around zero of what a convolution has added up: no row is read. */
int kernel_norm_take(const struct cuda_norm_channel *channel, size_t channels, void *stream);

/* After sums of workers were added up, or of what a convolution has. */
int kernel_norm_forward(const struct cuda_norm_channel *channel, size_t channels, void *stream);
int kernel_norm_recall(const struct cuda_norm_channel *channel, size_t channels, void *stream);
int kernel_norm_backward(const struct cuda_norm_channel *channel, size_t channels, void *stream);

int kernel_mean(const struct cuda_mean *mean, void *stream); // into each of the vectors
int kernel_ranks(const struct cuda_ranks *ranks, float *to, void *stream);
int kernel_add_floats(float *to, const float *from, size_t count, void *stream);
int kernel_scale_floats(float *vector, float factor, size_t count, void *stream);

/* One update of `count` parameters; the vectors begin with the first of them. */
int kernel_update(const struct optimizer_update *update, const struct optimizer_vectors *vectors,
                  size_t count, void *stream);

/* And of the library's copy of those that are in rows of it, if there are any.
 * `vectors->params` lies in `copy->flat`. */
int kernel_update_both(enum cuda_type type, const struct optimizer_update *update,
                       const struct optimizer_vectors *vectors, const struct cuda_weight_copy *copy,
                       size_t count, void *stream);

#ifdef __cplusplus
}
#endif

#endif
