/* A program of the CUDA backend: a graph in the GPU's memory, and the copies to and from the host.
 */
#ifndef WORKER_DEVICE_CUDA_PROGRAM_H
#define WORKER_DEVICE_CUDA_PROGRAM_H

#include "worker/device/cuda/context.h"

/* Where a program runs. Handles and the stream are borrowed until it is destroyed. */
struct cuda_place {
    const struct dnn_target *dnn;
    cublasLtHandle_t blas;
    cudaStream_t stream;
    bool replays_launches; // as CUDA graphs
    bool checks_nodes;     // see node_check.h; then nothing is replayed
    bool times_nodes;      // see node_times.h; likewise
};

/* Reports. */
enum status cuda_program_create(const struct program_options *options,
                                const struct cuda_place *place, struct program **ret_program);

uint64_t cuda_program_memory(const struct program *base); // of the GPU, in bytes
void cuda_program_describe(const struct program *base, char *ret_text, size_t text_size);

/* Makes the graph of a program, all plans included, for a device that is only described, and how
 * much of its memory the program would take. Reports what has no engine. */
enum status cuda_program_try(const struct program_options *options, const struct dnn_target *dnn,
                             size_t *ret_bytes);

#endif
