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
#include "worker/device/device_spans.h"
#include "worker/device/mixed_label.h"
#include "worker/device/op_watch.h"
#include "worker/device/pixels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_OPS_MAX      1024
#define DEVICE_INPUT_PIXELS UINT32_MAX // as op.input: the batch itself

// Of device_choices, with the '\0': as much as a message takes.
#define DEVICE_CHOICES_BYTES ((size_t)64 * 1024)

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
    uint32_t timing_ms_max;       // for timing what a GPU's library offers, and taking the fastest;
                                  // 0: what it puts first is taken. See device_choices

    // Which of the backend's devices; device_open fills it in ("cuda:1").
    bool has_index;
    uint32_t index;
};

/* Borrows ops only for the call, the vectors until program_destroy. */
struct program_options {
    const struct op *ops;
    uint32_t op_count;
    uint32_t batch_size;                // N of every forward
    float *params;                      // flat, host
    float *grads;                       // flat, host; NULL: a program that only evaluates
    uint32_t kept_count;                // see struct program_exposed
    float *statistics;                  // of batch_norm, flat, host; training changes them, see
                                        // program_fetch_statistics
    const struct pixels_source *source; // inputs are bytes; NULL: pixels. See takes_bytes
    enum conv_algorithm conv;
    enum precision precision;
};

/* One batch. Borrowed for forward and the backward calls after it. */
struct program_input {
    const float *pixels;             // (N, C, H, W), host; NULL where the program takes bytes
    const uint8_t *bytes;            // (N, C, H, W) as stored, host; NULL where it does not
    const uint32_t *labels;          // (N), host; each below the channels of the last operation
    const struct mixed_label *mixed; // (N), host: what samples are in part; NULL: none is
    const uint64_t *sample_keys;     // (N); element i of dropout layer s of sample n is dropped if
                                 // random_element(random_mix(sample_keys[n] + s), i) < rate * 2^32,
                                 // i counted in (C, H, W) order
    uint32_t count;       // the first so many samples count; the rest of N is padding
    float gradient_scale; // factor of each sample's gradient of the loss: 1/N for the mean
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

#define PROGRAM_SHARE_BYTES 128
#define PROGRAM_ID_BYTES    128
#define PROGRAM_PEERS_MAX   16 // programs that meet

/* A bucket whose mean over the workers is to be taken. */
struct program_sum {
    uint32_t bucket;        // from 0
    uint32_t first_op;      // that the last of the bucket's gradients come from
    uint64_t offset, count; // of the bucket, in grads
    uint64_t part_offset;   // of what this program sums of it, unless devices are joined
    uint64_t part_count;
};

/* The programs of a host's worker processes, whose devices reach each other's gradients. A program
 * tells each other one by two flags, for each bucket, how far it is: */
enum program_flag {
    PROGRAM_FLAG_READY,  // its gradients of the bucket may be read, and overwritten
    PROGRAM_FLAG_SUMMED, // its part of the bucket holds the mean, in all programs
    PROGRAM_FLAG_COUNT,
};

struct program_peers {
    uint32_t rank, world;
    unsigned char (*shares)[PROGRAM_SHARE_BYTES]; // (world) of each program; not read afterwards

    // (world, bucket_count, PROGRAM_FLAG_COUNT, world) words of 32 bits, host: the same pages for
    // all processes, and of nothing else, zeroed at first. To whom, of what, and from whom: 1 from
    // when it has been said until it has been heard, otherwise 0.
    void *flags;
    size_t flag_bytes;              // whole pages; 0 for more programs than PROGRAM_PEERS_MAX
    const struct program_sum *sums; // (bucket_count) in the order of backward; not read afterwards
    uint32_t bucket_count;
};

/* What a worker says of its device before those of all workers are joined by a library. */
struct device_introduction {
    uint32_t version;                   // of the library
    unsigned char gpu[16];              // which it is, in all the world
    unsigned char id[PROGRAM_ID_BYTES]; // of the first worker: where it waits for the others
};

/* All programs of a job, whose devices are joined. */
struct program_joining {
    uint32_t rank, world, bucket_count;
    const unsigned char *id; // (PROGRAM_ID_BYTES) that the first one's device has introduced
    bool (*is_stopped)(void *context);
    void *context;
};

/* A program's vectors as others of the device see them. */
struct program_exposed {
    void *memory; // of the device; holds all vectors
    size_t size;  // bytes
    float *params, *grads;
    float *kept; // (kept_count, kept_stride) of the options: room for gradients of other slices
    uint64_t kept_stride;
    uint32_t gpu; // which of the host's
};

/* What an operation has taken in a step. */
struct op_time {
    float forward_us, backward_us;
};

struct device;
struct program;
struct optimizer_update; // common/optimizer/optimizer_formulas.h
struct vector_device;    // common/vector/vector_device.h

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

    /* Of a device that keeps statistics from one training forward to the next: to the host, whose
     * vector counts again, and may be changed. Waits. NULL: the host's always count. */
    enum status (*fetch_statistics)(struct program *program);

    /* Of a device whose memory others of its kind can reach; NULL, all three: it is not such a one.
     * See program_share. */
    enum status (*share)(struct program *program, unsigned char ret_share[PROGRAM_SHARE_BYTES]);
    enum status (*meet)(struct program *program, const struct program_peers *peers);
    void (*part)(struct program *program);

    /* See program_join. NULL, all three: there is no library for it. */
    enum status (*join)(struct program *program, const struct program_joining *joining);
    enum status (*sum)(struct program *program, const struct program_sum *sum);
    void (*stop)(struct program *program);

    /* See program_expose. NULL: it cannot. */
    enum status (*expose)(struct program *program, struct program_exposed *ret_exposed);

    /* Of a device that was opened with times_operations: see program_read_times. NULL: it has no
     * clock. */
    enum status (*read_times)(struct program *program, struct op_time *ret_times);

    /* See program_read_spans. NULL: it has no streams that go on beside the host. */
    enum status (*read_spans)(struct program *program, struct device_span *ret_spans,
                              size_t span_max, size_t *ret_count, uint64_t *ret_dropped);
    void (*destroy)(struct program *program);
};

/* First member of every backend's own struct. */
struct program {
    const struct program_ops *ops;

    /* Of copies of parameters and gradients between host and device that a backend has found to be
     * over, those for evaluations not counted. It looks when it has waited anyway. */
    uint64_t copy_ns;
    struct device_recording recording; // of what the device's streams do
    const struct op_watch *watch;      // borrowed; NULL: nobody watches its operations

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

    bool takes_bytes; // makes pixels of stored images itself, where a program is compiled for that

    /* What devices there are, and versions, in one line. NULL: there is nothing to say. */
    void (*list)(char *ret_text, size_t text_size);
    enum status (*open)(const struct device_options *options, struct device **ret_device);
    enum status (*compile)(struct device *device, const struct program_options *options,
                           struct program **ret_program);

    /* One line on the algorithms and memory of a program, for the log. */
    void (*describe)(const struct program *program, char *ret_text, size_t text_size);

    /* Bytes of the device's own memory that a program has taken; what the device's libraries take
     * beside it is not known. NULL: the device computes in memory of the host. */
    uint64_t (*memory)(const struct program *program);

    /* See device_open_vectors. NULL: it keeps none. */
    enum status (*open_vectors)(const struct device_options *options,
                                struct vector_device **ret_vectors);

    /* See device_choices. NULL, both: there is nothing to choose. */
    const char *(*list_choices)(const struct device *device);
    enum status (*take_choices)(struct device *device, const char *text);
    /* See device_introduce. NULL: it has no library for that. */
    enum status (*introduce)(struct device *device, bool is_first,
                             struct device_introduction *ret_introduction);

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

/* What a device has chosen, for the programs that were compiled on it so far, among algorithms that
 * compute the same with other bits: lines of printable characters. A device that takes them up
 * computes alike, as far as it has the same algorithms; it says for what it has not. For programs
 * that are compiled later. device_choices: NULL where there is nothing to choose, "" where nothing
 * was, or too much to be written down. Borrowed until the next program is compiled. */
const char *device_choices(const struct device *device);
enum status device_take_choices(struct device *device, const char *text);

/* Prepares memory of the host for copies to the device, which are then made while both go on.
 * Whether that was done: then it is to be undone before the memory is freed, and before the device
 * is closed. */
bool device_lock_memory(struct device *device, void *memory, size_t bytes);
void device_unlock_memory(struct device *device, void *memory);

/* For vectors in the memory of the device that has this name ("cuda", "cuda:1"); of the options the
 * local rank counts. STATUS_UNSUPPORTED, logged, if it keeps none, or is not there. */
enum status device_open_vectors(const char *name, const struct device_options *options,
                                struct vector_device **ret_vectors);

/* Before the devices of a job's workers, wherever they are, are joined by a library that sums for
 * them (program_join): what the others have to know of this one. The first worker's waits for them
 * from here on. STATUS_UNSUPPORTED, logged: the device has no such library, or it is not there. */
enum status device_introduce(struct device *device, bool is_first,
                             struct device_introduction *ret_introduction);

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

/* Before the host's statistics are read or changed. Likewise. */
enum status program_fetch_statistics(struct program *program);
uint64_t program_take_copy_ns(struct program *program); // since the last call

/* Sums of gradients among the devices of a host, each in its own process, without the host. Each
 * program writes its share, and meets the others when it has all of theirs. From then on, until it
 * parts from them, a backward whose input said keeps_gradients takes the mean of each bucket as
 * soon as the bucket is complete, and all programs run such backwards in step. A part of each
 * bucket is added up by this program, in the order of ranks from its own, and becomes the mean in
 * all programs; an apply takes the mean of the bucket.
 *
 * share and meet: STATUS_UNSUPPORTED, logged, if that cannot be done here. Backward only queues,
 * also the waits for others. Whoever ends them early sets all flags to this program, on any thread,
 * and what was queued by then waits for nobody; those sums are void. part does the same, for as
 * long as something is queued, and waits for that. */
bool program_may_share(const struct program *program);
enum status program_share(struct program *program, unsigned char ret_share[PROGRAM_SHARE_BYTES]);
enum status program_meet(struct program *program, const struct program_peers *peers);
void program_part(struct program *program); // does nothing before a meet

/* Sums of gradients among the devices of all workers, wherever they are, by a library that connects
 * them: in an order of its own, so with bits of its own, but the same ones for all. Joins them,
 * once all have been introduced, and again where the buckets have become others. From then on a
 * backward whose input said keeps_gradients is followed by a sum of each bucket, in the same order
 * everywhere, which only queues; an apply takes the mean, and part does not undo it. Waits, and
 * asks is_stopped meanwhile: STATUS_INTERRUPTED if that says so.
 *
 * program_stop, on any thread, ends what waits for other programs, now and later: the sums are
 * void, and each further one says STATUS_INTERRUPTED. */
enum status program_join(struct program *program, const struct program_joining *joining);
enum status program_sum(struct program *program, const struct program_sum *sum);
void program_stop(struct program *program);

/* For a server that takes gradients where they are, and gives parameters there: the host's are
 * copied, and from here on the device's are those that count, until a fetch. A backward whose input
 * said keeps_gradients is then awaited like others. STATUS_UNSUPPORTED: the device cannot. */
enum status program_expose(struct program *program, struct program_exposed *ret_exposed);

/* Of the last training step, forward and the whole of backward: an element for each operation.
 * STATUS_UNSUPPORTED if the device has no clock, or was opened without. Waits. */
enum status program_read_times(struct program *program, struct op_time *ret_times);
void program_destroy(struct program *program); // NULL is fine

#endif
