/* Vectors on a GPU, and what is computed on them there: see common/vector/vector_device.h. */
#ifndef WORKER_DEVICE_CUDA_VECTORS_H
#define WORKER_DEVICE_CUDA_VECTORS_H

#include "common/vector/vector_device.h"

/* Of a GPU that is there. Logs. */
enum status cuda_vectors_open(int gpu, struct vector_device **ret_device);

#endif
