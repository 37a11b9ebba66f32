/* Batches on their way to the GPU: on a stream of their own, into two buffers by turns, so that one
 * travels while the GPU computes with the other. What arrives are pixels, or images as they are
 * stored, of which the GPU makes pixels. */
#ifndef WORKER_DEVICE_CUDA_INPUT_H
#define WORKER_DEVICE_CUDA_INPUT_H

#include "worker/device/cuda/context.h"

#define INPUT_BUFFERS 2

struct input_buffer {
    void *values;               // (bytes), device, borrowed
    cudaEvent_t brought, taken; // owned: it is full, it may be filled again
};

/* Zeroed: there is none. */
struct input {
    const struct node_context *context; // borrowed
    struct input_buffer buffers[INPUT_BUFFERS];
    uint32_t next;       // buffer
    size_t bytes;        // of a batch, as it travels
    cudaStream_t stream; // owned
    bool takes_bytes;
    struct cuda_images images;
    struct pixels_tap *taps; // device, of rows, then of columns, owned
};

/* Bytes of a batch, as it travels. */
size_t input_bytes(const struct program_options *options);

/* Zeroed before, but for the values of the buffers. What it holds is input_finish's, also if it
 * fails. Reports. */
enum status input_init(struct input *input, const struct node_context *context,
                       const struct program_options *options);
void input_finish(struct input *input); // waits; zeroed is fine

/* Queues the pixels of a batch into a tensor, behind what has been queued to compute. The host's
 * are read until the computing stream has come so far. */
enum status input_bring(struct input *input, const struct program_input *from,
                        const struct tensor *to);

#endif
