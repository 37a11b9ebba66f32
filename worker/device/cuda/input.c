/* Copies batches to a GPU into two buffers by turns, and keeps both streams in step by events. */
#include "worker/device/cuda/input.h"

static size_t sample_count(struct shape shape)
{
    return (size_t)shape.channels * shape.rows * shape.columns;
}

size_t input_bytes(const struct program_options *options)
{
    return options->batch_size * (options->source != NULL
                                      ? pixels_bytes(options->source)
                                      : sample_count(options->ops[0].x) * sizeof(float));
}

static int create_buffers(struct input *input)
{
    int result = (int)cudaStreamCreateWithFlags(&input->stream, cudaStreamNonBlocking);
    for (uint32_t i = 0; i < INPUT_BUFFERS && result == 0; i++) {
        struct input_buffer *buffer = &input->buffers[i];
        result = (int)cudaEventCreateWithFlags(&buffer->brought, cudaEventDisableTiming);
        if (result == 0) {
            result = (int)cudaEventCreateWithFlags(&buffer->taken, cudaEventDisableTiming);
        }
    }
    return result;
}

/* How rows and columns lie between the stored ones. */
static int send_taps(struct input *input, const struct pixels_source *source)
{
    struct cuda_images *images = &input->images;
    size_t row_bytes = images->rows * sizeof(*input->taps);
    size_t column_bytes = images->columns * sizeof(*input->taps);
    int result = (int)cudaMalloc((void **)&input->taps, row_bytes + column_bytes);
    if (result != 0) {
        return result;
    }
    images->row_taps = input->taps;
    images->column_taps = input->taps + images->rows;
    result = (int)cudaMemcpyAsync(input->taps, source->row_taps, row_bytes, cudaMemcpyHostToDevice,
                                  input->context->stream);
    if (result == 0) {
        result = (int)cudaMemcpyAsync(input->taps + images->rows, source->column_taps, column_bytes,
                                      cudaMemcpyHostToDevice, input->context->stream);
    }
    return result == 0 ? (int)cudaStreamSynchronize(input->context->stream) : result;
}

static int describe_images(struct input *input, const struct program_options *options)
{
    const struct pixels_source *source = options->source;
    const struct shape *sample = &options->ops[0].x;
    input->takes_bytes = true;
    input->images = (struct cuda_images){
        .channels = source->channels,
        .stored_rows = source->rows,
        .stored_columns = source->columns,
        .rows = sample->rows,
        .columns = sample->columns,
    };
    for (uint32_t c = 0; c < PIXELS_CHANNELS_MAX; c++) {
        input->images.scale[c] = source->scale[c];
        input->images.shift[c] = source->shift[c];
    }
    return source->row_taps != NULL ? send_taps(input, source) : 0;
}

enum status input_init(struct input *input, const struct node_context *context,
                       const struct program_options *options)
{
    input->context = context;
    input->bytes = input_bytes(options);
    int result = create_buffers(input);
    if (result == 0 && options->source != NULL) {
        result = describe_images(input, options);
    }
    return cuda_check(result, "prepare for batches");
}

void input_finish(struct input *input)
{
    if (input->stream != NULL) {
        cudaStreamSynchronize(input->stream);
        cudaStreamDestroy(input->stream);
    }
    for (uint32_t i = 0; i < INPUT_BUFFERS; i++) {
        struct input_buffer *buffer = &input->buffers[i];
        if (buffer->brought != NULL) {
            cudaEventDestroy(buffer->brought);
        }
        if (buffer->taken != NULL) {
            cudaEventDestroy(buffer->taken);
        }
    }
    cudaFree(input->taps);
    *input = (struct input){0};
}

static enum status make_pixels(const struct input *input, const void *from, const struct tensor *to)
{
    const struct node_context *context = input->context;
    size_t count = context->batch * sample_count(to->shape);
    const struct cuda_shape shape = {.channels = to->shape.channels,
                                     .pixels = (size_t)to->shape.rows * to->shape.columns};
    int result =
        input->takes_bytes
            ? kernel_images(context->type, &input->images, from, to->data, count, context->stream)
            : kernel_pixels(context->type, &shape, from, to->data, count, context->stream);
    return cuda_check(result, "make pixels");
}

enum status input_bring(struct input *input, const struct program_input *from,
                        const struct tensor *to)
{
    struct input_buffer *buffer = &input->buffers[input->next];
    cudaStream_t compute = input->context->stream;
    const void *values = input->takes_bytes ? (const void *)from->bytes : from->pixels;
    input->next = (input->next + 1) % INPUT_BUFFERS;
    int result =
        (int)cudaStreamWaitEvent(input->stream, buffer->taken, 0); // at first there is none
    struct recorder *recorder = input->context->recorder;
    if (result == 0) {
        result =
            recorder_begin(recorder, DEVICE_BATCHES, DEVICE_COPY, DEVICE_NO_BUCKET, input->stream);
    }
    if (result == 0) {
        result = (int)cudaMemcpyAsync(buffer->values, values, input->bytes, cudaMemcpyHostToDevice,
                                      input->stream);
    }
    if (result == 0) {
        result = recorder_end(recorder, DEVICE_BATCHES, input->stream);
    }
    if (result == 0) {
        result = (int)cudaEventRecord(buffer->brought, input->stream);
    }
    if (result == 0) {
        result = (int)cudaStreamWaitEvent(compute, buffer->brought, 0);
    }
    enum status status = cuda_check(result, "copy a batch");
    if (status == STATUS_OK) {
        status = make_pixels(input, buffer->values, to);
    }
    return status == STATUS_OK
               ? cuda_check((int)cudaEventRecord(buffer->taken, compute), "take a batch")
               : status;
}
