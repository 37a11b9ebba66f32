/* A device that keeps flat vectors of floats in memory of its own, and computes on them: what a
 * parameter server needs of a GPU. Pointers to such memory are used as addresses only, on the host.
 *
 * Everything that computes is queued, in order, and done once wait has returned STATUS_OK; a fault
 * may be reported by a later call. The bits are those of common/vector/vector.h and of the
 * optimizers' formulas. */
#ifndef COMMON_VECTOR_VECTOR_DEVICE_H
#define COMMON_VECTOR_VECTOR_DEVICE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define VECTOR_SHARE_BYTES  128
#define VECTOR_DEVICE_RANKS 16 // that a mean may have

struct optimizer_update; // common/optimizer/optimizer_formulas.h
struct optimizer_vectors;
struct vector_device;

/* A part of a bucket, of which several ranks have a vector each: with the part's first value in
 * front. The sum of chunk c of `world` begins with the first of these ranks from c on. */
struct vector_mean {
    const float *vectors[VECTOR_DEVICE_RANKS]; // (count)
    uint32_t ranks[VECTOR_DEVICE_RANKS];       // (count) ascending, below world
    uint32_t count, world;
    uint64_t chunk_ends[VECTOR_DEVICE_RANKS]; // (world) from the part's first value on; chunks that
                                              // end before it: 0
    uint64_t length;                          // of the part
};

struct vector_device_ops {
    /* Zeroed; STATUS_NO_MEMORY, logged. */
    enum status (*create)(struct vector_device *device, uint64_t count, float **ret_vector);
    void (*destroy)(struct vector_device *device, float *vector); // NULL is fine; waits

    enum status (*copy)(struct vector_device *device, float *to, const float *from, uint64_t count);
    enum status (*clear)(struct vector_device *device, float *vector, uint64_t count);
    enum status (*add)(struct vector_device *device, float *to, const float *from, uint64_t count);
    enum status (*scale)(struct vector_device *device, float *vector, float factor, uint64_t count);
    enum status (*mean)(struct vector_device *device, const struct vector_mean *mean, float *to);
    enum status (*update)(struct vector_device *device, const struct optimizer_update *update,
                          const struct optimizer_vectors *vectors, uint64_t count);
    enum status (*wait)(struct vector_device *device);

    /* How other processes of the host reach a vector of create; and to reach another process's,
     * whose `size` in bytes the share says. STATUS_UNSUPPORTED, logged, where devices cannot. */
    enum status (*share)(struct vector_device *device, const float *vector, uint64_t size,
                         unsigned char ret_share[VECTOR_SHARE_BYTES]);
    enum status (*map)(struct vector_device *device, const unsigned char share[VECTOR_SHARE_BYTES],
                       uint64_t size, void **ret_memory);
    void (*unmap)(struct vector_device *device, void *memory);

    void (*close)(struct vector_device *device); // when its vectors are gone
};

/* First member of every backend's own struct. Of one thread at a time. */
struct vector_device {
    const struct vector_device_ops *ops;
};

#endif
