/* Vectors of a GPU, on a stream of their own. Whichever thread calls takes the GPU first. */
#include "worker/device/cuda/vectors.h"

#include "worker/device/cuda/context.h"
#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/memory/memory_handle.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert(VECTOR_DEVICE_RANKS == CUDA_PEERS_MAX, "kernels take as many vectors");

struct cuda_vectors {
    struct vector_device base;
    int gpu;
    cudaStream_t stream; // owned
};

static struct cuda_vectors *vectors_of(struct vector_device *device)
{
    struct cuda_vectors *vectors = (struct cuda_vectors *)device;
    cudaSetDevice(vectors->gpu); // of this thread
    return vectors;
}

static enum status clear(struct vector_device *device, float *vector, uint64_t count)
{
    const struct cuda_vectors *vectors = vectors_of(device);
    return count == 0 ? STATUS_OK
                      : cuda_check((int)cudaMemsetAsync(vector, 0, count * sizeof(*vector),
                                                        vectors->stream),
                                   "clear a vector");
}

static enum status create(struct vector_device *device, uint64_t count, float **ret_vector)
{
    (void)vectors_of(device);
    int result = (int)cudaMalloc((void **)ret_vector, memory_handle_whole(count * sizeof(float)));
    if (result == (int)cudaErrorMemoryAllocation) {
        (void)cudaGetLastError(); // it has been dealt with
        report_error("the GPU has no memory for a vector of %llu MiB",
                     (unsigned long long)(count * sizeof(float)) >> 20);
        return STATUS_NO_MEMORY;
    }
    enum status status = cuda_check(result, "get memory for a vector");
    return status == STATUS_OK ? clear(device, *ret_vector, count) : status;
}

static enum status await_all(struct vector_device *device)
{
    return cuda_check((int)cudaStreamSynchronize(vectors_of(device)->stream), "compute on vectors");
}

static void destroy(struct vector_device *device, float *vector)
{
    if (vector != NULL) {
        (void)await_all(device);
        cudaFree(vector);
    }
}

static enum status copy(struct vector_device *device, float *to, const float *from, uint64_t count)
{
    const struct cuda_vectors *vectors = vectors_of(device);
    return count == 0 ? STATUS_OK
                      : cuda_check((int)cudaMemcpyAsync(to, from, count * sizeof(*to),
                                                        cudaMemcpyDefault, vectors->stream),
                                   "copy a vector");
}

static enum status add(struct vector_device *device, float *to, const float *from, uint64_t count)
{
    return cuda_check(kernel_add_floats(to, from, count, vectors_of(device)->stream),
                      "add a vector");
}

static enum status scale(struct vector_device *device, float *vector, float factor, uint64_t count)
{
    return cuda_check(kernel_scale_floats(vector, factor, count, vectors_of(device)->stream),
                      "scale a vector");
}

static enum status mean(struct vector_device *device, const struct vector_mean *mean, float *to)
{
    struct cuda_ranks ranks = {
        .count = mean->count,
        .world = mean->world,
        .factor = 1.0f / (float)mean->count,
        .length = mean->length,
    };
    assert(mean->count <= VECTOR_DEVICE_RANKS && mean->world <= VECTOR_DEVICE_RANKS);
    for (uint32_t k = 0; k < mean->count; k++) {
        ranks.vectors[k] = mean->vectors[k];
        ranks.ranks[k] = mean->ranks[k];
    }
    for (uint32_t c = 0; c < mean->world; c++) {
        ranks.chunk_ends[c] = mean->chunk_ends[c];
    }
    return cuda_check(kernel_ranks(&ranks, to, vectors_of(device)->stream), "sum vectors");
}

static enum status update(struct vector_device *device, const struct optimizer_update *update,
                          const struct optimizer_vectors *vectors, uint64_t count)
{
    return cuda_check(kernel_update(update, vectors, count, vectors_of(device)->stream),
                      "update a vector");
}

static enum status share(struct vector_device *device, const float *vector, uint64_t size,
                         unsigned char ret_share[VECTOR_SHARE_BYTES])
{
    (void)vectors_of(device);
    return memory_handle_write(vector, 0, size, ret_share);
}

static enum status map(struct vector_device *device, const unsigned char share[VECTOR_SHARE_BYTES],
                       uint64_t size, void **ret_memory)
{
    void *base, *memory;
    (void)vectors_of(device);
    enum status status = memory_handle_open(share, size, &base, &memory);
    if (status == STATUS_OK && base != memory) {
        cudaIpcCloseMemHandle(base);
        return STATUS_MALFORMED; // what is shared so begins an allocation
    }
    *ret_memory = status == STATUS_OK ? memory : NULL;
    return status;
}

static void unmap(struct vector_device *device, void *memory)
{
    (void)await_all(device);
    cudaIpcCloseMemHandle(memory);
}

static void close_vectors(struct vector_device *device)
{
    struct cuda_vectors *vectors = vectors_of(device);
    if (vectors->stream != NULL) {
        cudaStreamDestroy(vectors->stream);
    }
    free(vectors);
}

static const struct vector_device_ops ops = {
    .create = create,
    .destroy = destroy,
    .copy = copy,
    .clear = clear,
    .add = add,
    .scale = scale,
    .mean = mean,
    .update = update,
    .wait = await_all,
    .share = share,
    .map = map,
    .unmap = unmap,
    .close = close_vectors,
};

enum status cuda_vectors_open(int gpu, struct vector_device **ret_device)
{
    struct cuda_vectors *vectors = calloc(1, sizeof(*vectors));
    if (vectors == NULL) {
        return STATUS_NO_MEMORY;
    }
    vectors->base.ops = &ops;
    vectors->gpu = gpu;
    enum status status = cuda_check((int)cudaSetDevice(gpu), "take a GPU");
    if (status == STATUS_OK) {
        status = cuda_check((int)cudaStreamCreateWithFlags(&vectors->stream, cudaStreamNonBlocking),
                            "create a stream");
    }
    if (status != STATUS_OK) {
        close_vectors(&vectors->base);
        return status;
    }
    *ret_device = &vectors->base;
    return STATUS_OK;
}
