/* Where tensors live and who computes on them.
 *
 * A backend compiles a list of operations, once, for a fixed batch size, into a program: algorithms
 * and memory layouts picked, neighbours fused where its library fuses, all memory planned. Running
 * it allocates nothing. Backends are rows of a table in device.c:
 *
 *     ref/   plain loops, no dependency; the definition that every other backend is tested against
 *     cpu/   oneDNN
 *     cuda/  cuDNN and cuBLAS
 *
 * Parameters and gradients stay in two flat host vectors that the caller owns; operations say where
 * in them their weights begin. Weights are row-major: conv2d (K, C, R, S), linear (K, C*H*W), each
 * followed by its bias (K), if it has one; batch_norm's are its scale (C), followed by its shift
 * (C). A third vector, the statistics, holds what batch_norm has learned of the data without
 * gradients. */
#ifndef WORKER_DEVICE_DEVICE_H
#define WORKER_DEVICE_DEVICE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_OPS_MAX      1024
#define DEVICE_INPUT_PIXELS UINT32_MAX // as op.input: the batch itself

struct shape {
    uint32_t channels, rows, columns; // of one sample; unused dimensions are 1
};

enum op_kind {
    OP_CONV2D,       // y = w * x + b; square window, zeros as padding on all sides
    OP_LINEAR,       // y = w x + b over the flattened sample, in (C, H, W) order
    OP_RELU,         // y = max(x, 0)
    OP_MAX_POOL,     // over square windows, no padding; floor division
    OP_DROPOUT,      // training: y = x * kept / (1 - rate); otherwise y = x
    OP_BATCH_NORM,   // y = scale (x - mean) / sqrt(variance + epsilon) + shift, for each channel
    OP_ADD,          // y = x + the result of `other`
    OP_SUBSAMPLE,    // every stride-th row and column; channels that x does not have are zero
    OP_PAD,          // zeros around each channel
    OP_GLOBAL_POOL,  // the mean over rows and columns
    OP_SOFTMAX_LOSS, // cross-entropy against the labels, y = softmax(x); a program ends with one
};

/* "conv2d"; static. */
static inline const char *op_kind_name(enum op_kind kind)
{
    static const char *const names[] = {
        [OP_CONV2D] = "conv2d",
        [OP_LINEAR] = "linear",
        [OP_RELU] = "relu",
        [OP_MAX_POOL] = "max_pool",
        [OP_DROPOUT] = "dropout",
        [OP_BATCH_NORM] = "batch_norm",
        [OP_ADD] = "add",
        [OP_SUBSAMPLE] = "subsample",
        [OP_PAD] = "pad",
        [OP_GLOBAL_POOL] = "global_pool",
        [OP_SOFTMAX_LOSS] = "softmax_loss",
    };
    return names[kind];
}

/* One operation. Its result is the input of those that name its index.
 *
 * Batch_norm (Ioffe and Szegedy 2015) in training takes mean and variance over the batch, its rows
 * and its columns, and moves its statistics towards them: by a tenth of the difference, the
 * variance as n / (n - 1) of the batch's, as PyTorch does. Otherwise it takes the statistics. */
struct op {
    enum op_kind kind;
    uint32_t input; // index of an earlier operation, or DEVICE_INPUT_PIXELS
    uint32_t other; // add: likewise, and of the same shape
    struct shape x, y;
    uint32_t window, stride, padding; // conv2d, max_pool, subsample, pad; in pixels
    bool has_bias;                    // conv2d, linear, batch_norm (where it is the shift)
    uint64_t weight, bias;            // of those: offsets into params and grads
    uint64_t statistics;              // batch_norm: offset of mean (C), then variance (C)
    float epsilon;                    // batch_norm
    float rate;                       // dropout: share of elements dropped, in [0, 1)
    uint32_t stream;                  // dropout: which of the job's dropout layers this is
};

/* Length of an operation's weight; 0 if it has none. Its bias, if it has one, is as long as y has
 * channels, and lies behind it. */
static inline uint64_t op_weight_count(const struct op *op)
{
    uint64_t inputs = op->x.channels;
    switch (op->kind) {
    case OP_CONV2D:
        return inputs * op->window * op->window * op->y.channels;
    case OP_LINEAR:
        return inputs * op->x.rows * op->x.columns * op->y.channels;
    case OP_BATCH_NORM:
        return inputs;
    case OP_RELU:
    case OP_MAX_POOL:
    case OP_DROPOUT:
    case OP_ADD:
    case OP_SUBSAMPLE:
    case OP_PAD:
    case OP_GLOBAL_POOL:
    case OP_SOFTMAX_LOSS:
        return 0;
    }
    return 0;
}

#define DEVICE_STATISTICS_RATE 0.1f // of batch_norm's statistics, a step

/* Of what is computed; parameters, gradients and sums are float in all of them. */
enum precision {
    PRECISION_FP32, // float
    PRECISION_TF32, // float, whose products take 10 bits of the fraction on tensor cores
    PRECISION_BF16, // bfloat16 from layer to layer, 7 bits of the fraction
};

enum conv_algorithm { CONV_AUTO, CONV_DIRECT, CONV_WINOGRAD };

struct device_options {
    uint32_t threads;             // at least 1
    uint32_t local_rank;          // of the process on this host: picks one of several devices
    bool allows_nondeterministic; // algorithms whose bits differ from run to run, where faster
    bool replays_launches;        // steps that are alike are captured once (CUDA graphs)
    bool checks_operations;       // waits for each on a GPU, so that a fault is reported with it
    bool times_operations;        // for program_read_times, on a GPU

    // Which of the backend's devices; device_open fills it in ("cuda:1").
    bool has_index;
    uint32_t index;
};

/* Borrows ops only for the call, the vectors until program_destroy. */
struct program_options {
    const struct op *ops;
    uint32_t op_count;
    uint32_t batch_size; // N of every forward
    float *params;       // flat, host
    float *grads;        // flat, host; NULL: a program that only evaluates
    float *statistics;   // of batch_norm, flat, host; training changes them
    enum conv_algorithm conv;
    enum precision precision;
};

/* One batch. Borrowed for forward and the backward calls after it. */
struct program_input {
    const float *pixels;         // (N, C, H, W), host
    const uint32_t *labels;      // (N), host; each below the channels of the last operation
    const uint64_t *sample_keys; // (N); element i of dropout layer s of sample n is dropped if
                                 // random_element(random_mix(sample_keys[n] + s), i) < rate * 2^32,
                                 // i counted in (C, H, W) order
    uint32_t count;              // the first so many samples count; the rest of N is padding
    float gradient_scale;        // factor of each sample's gradient of the loss: 1/N for the mean
    bool is_training;
    bool keeps_gradients; // backward may leave them where apply takes them: nobody awaits them

    /* Batch_norm over the batches of all workers (--sync-bn): adds up `values` over them, in place.
     * Waits. Called in every training forward and backward, in the same order on all workers. NULL:
     * each worker normalises its own batch. */
    enum status (*sum_over_workers)(void *context, double *values, uint32_t count);

    /* Waits until so many parameters from `offset` on are those of this step. Forward calls it
     * before it reads them. NULL: all are there. */
    enum status (*await_params)(void *context, uint64_t offset, uint64_t count);
    void *context;
};

struct program_result {
    double loss_sum;        // over `count` samples, natural logarithm
    uint32_t correct_count; // samples whose largest output is their label's
};

/* What an operation has taken in a step. */
struct op_time {
    float forward_us, backward_us;
};

struct device;
struct program;
struct optimizer_update; // common/optimizer/optimizer_formulas.h

struct program_ops {
    /* Whether forward awaits parameters operation by operation (program_await_params). Otherwise
     * all of them are awaited before it is called. */
    bool awaits_params;

    /* Runs every operation. Waits. */
    enum status (*forward)(struct program *program, const struct program_input *input,
                           struct program_result *ret_result);

    /* Of a device that computes while the host goes on: the two halves of forward. begin_forward
     * only queues, and borrows what forward does until await_result, once, which waits. Backward
     * may be queued in between. NULL, both: there is nothing to gain. */
    enum status (*begin_forward)(struct program *program, const struct program_input *input);
    enum status (*await_result)(struct program *program, struct program_result *ret_result);

    /* After a training forward: operations last_op down to first_op, each once, from the end of the
     * program to its start over several calls. Their gradients are then in grads (overwritten, not
     * added). Waits, unless there is an await. */
    enum status (*backward)(struct program *program, uint32_t last_op, uint32_t first_op);

    /* Of a device that computes while the host goes on: backward only queues, and this waits until
     * the gradients of a backward down to first_op are in grads, once for each, in their order.
     * NULL: there is nothing left to wait for. */
    enum status (*await)(struct program *program, uint32_t first_op);

    /* Of a device that updates parameters itself; NULL for others. Once, before the first apply:
     * makes room for the optimizer's states. Borrows the vectors, flat like params, host, until
     * destroy. */
    enum status (*hold)(struct program *program, float *const *states, uint32_t state_count);

    /* Updates the parameters from `offset` on, and their states, from the gradients in grads, or
     * those that backward kept. Queues. The device's parameters and states are those that count
     * from here, and the host's are old, until a fetch. */
    enum status (*apply)(struct program *program, const struct optimizer_update *update,
                         uint64_t offset, uint64_t count);

    /* Parameters and states to the host, whose vectors count again. Waits. */
    enum status (*fetch)(struct program *program);

    /* Of a device that was opened with times_operations: see program_read_times. NULL: it has no
     * clock. */
    enum status (*read_times)(struct program *program, struct op_time *ret_times);
    void (*destroy)(struct program *program);
};

/* First member of every backend's own struct. */
struct program {
    const struct program_ops *ops;

    /* Of copies of parameters and gradients between host and device that a backend has found to be
     * over, those for evaluations not counted. It looks when it has waited anyway. */
    uint64_t copy_ns;

    struct program_result result; // of a forward that was begun on a device that has no halves
};

struct device_ops {
    const char *name;
    const char *summary; // for --help and `ringside check`

    /* Whether this machine can run it; if not, writes why. */
    bool (*is_available)(char *ret_why, size_t why_size);

    /* Whether some device of the backend has it. NULL: PRECISION_FP32 alone. */
    bool (*has_precision)(enum precision precision);

    /* Whether enum conv_algorithm is the caller's to choose. */
    bool has_conv_choice;

    /* What devices there are, and versions, in one line. NULL: there is nothing to say. */
    void (*list)(char *ret_text, size_t text_size);
    enum status (*open)(const struct device_options *options, struct device **ret_device);
    enum status (*compile)(struct device *device, const struct program_options *options,
                           struct program **ret_program);

    /* One line on the algorithms and memory of a program, for the log. */
    void (*describe)(const struct program *program, char *ret_text, size_t text_size);

    /* See device_lock_memory. NULL, both: the device reads memory of the host as it lies. */
    bool (*lock_memory)(struct device *device, void *memory, size_t bytes);
    void (*unlock_memory)(struct device *device, void *memory);
    void (*close)(struct device *device);
};

struct device {
    const struct device_ops *ops;
};

/* "auto", "ref", "cpu", "cuda", "cuda:1". Logs why it cannot. auto: the fastest available. */
enum status device_open(const char *name, const struct device_options *options,
                        struct device **ret_device);
void device_close(struct device *device); // NULL is fine; after its programs

/* Prepares memory of the host for copies to the device, which are then made while both go on.
 * Whether that was done: then it is to be undone before the memory is freed, and before the device
 * is closed. */
bool device_lock_memory(struct device *device, void *memory, size_t bytes);
void device_unlock_memory(struct device *device, void *memory);

enum status device_compile(struct device *device, const struct program_options *options,
                           struct program **ret_program);
void device_describe(const struct device *device, const struct program *program, char *ret_text,
                     size_t text_size);

/* Every backend of this build, NULL-terminated. */
const struct device_ops *const *device_backends(void);

enum status program_forward(struct program *program, const struct program_input *input,
                            struct program_result *ret_result);

/* Forward in two halves: the result is waited for when it is needed, and a device that computes by
 * itself has backward queued before that. On other devices the first half does it all. */
enum status program_begin_forward(struct program *program, const struct program_input *input);
enum status program_await_result(struct program *program, struct program_result *ret_result);

/* For backends: the parameters of an operation of a forward are there from here. */
enum status program_await_params(const struct program_input *input, const struct op *op);
enum status program_backward(struct program *program, uint32_t last_op, uint32_t first_op);
enum status program_await(struct program *program, uint32_t first_op);

/* Whether program_backward returns before the gradients are there. */
bool program_runs_ahead(const struct program *program);

/* Whether it updates parameters itself: program_hold, and program_apply after that. */
bool program_may_update(const struct program *program);
enum status program_hold(struct program *program, float *const *states, uint32_t state_count);
enum status program_apply(struct program *program, const struct optimizer_update *update,
                          uint64_t offset, uint64_t count);
enum status
program_fetch(struct program *program); // does nothing if the host's are those that count
uint64_t program_take_copy_ns(struct program *program); // since the last call

/* Of the last training step, forward and the whole of backward: an element for each operation.
 * STATUS_UNSUPPORTED if the device has no clock, or was opened without. Waits. */
enum status program_read_times(struct program *program, struct op_time *ret_times);
void program_destroy(struct program *program); // NULL is fine

#endif
