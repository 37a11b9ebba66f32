/* The parameters of a model as one flat vector of floats, and how it is cut.
 *
 * params and grads are each one allocation; every tensor is a span of it. The network, the
 * optimizer and the checkpoint work on spans and know nothing about layers.
 *
 *     bucket   is exchanged at once; numbered in the order in which backward completes them, so
 *              bucket 0 is the end of the vector
 *     shard    part k of K of every bucket, so that all shards share the load of each bucket
 *     chunk    part c of N of a bucket: the unit of the ring, and of the order of summation */
#ifndef COMMON_VECTOR_LAYOUT_H
#define COMMON_VECTOR_LAYOUT_H

#include "common/base/status.h"

#include <stdint.h>

#define LAYOUT_BUCKETS_MAX 1024
#define LAYOUT_VALUES_MAX  (UINT64_C(1) << 36)

/* A range of the flat vector, in floats. */
struct span {
    uint64_t offset;
    uint64_t count;
};

/* What every process of a job must agree on. */
struct layout {
    uint64_t value_count; // length of the flat vector
    uint32_t bucket_count;
    struct span buckets[LAYOUT_BUCKETS_MAX]; // disjoint; together the whole vector
    uint64_t digest;                         // of the model's tensors; equal on every worker
};

/* Cuts `whole` into `part_count` spans that differ by at most one float; returns the `index`th. */
struct span span_part(struct span whole, uint32_t part_count, uint32_t index);

/* From one vector to the next, where several lie one behind the other in whole pages; in floats. */
uint64_t layout_stride(uint64_t value_count);

/* The floats that both contain; count 0 if there are none. */
struct span span_intersect(struct span a, struct span b);

/* STATUS_MALFORMED unless the buckets are disjoint, descending and cover the vector. For layouts
 * that a peer sent. */
enum status layout_check(const struct layout *layout);

/* Cuts tensors (spans in ascending order, covering the vector) into buckets in descending order:
 * a bucket is closed as soon as it holds at least bucket_bytes (the first one: a quarter of it),
 * and tensors are not split here. `may_close[i]` says whether a bucket may start at tensor i (a
 * layer's first tensor). */
enum status layout_make_buckets(const struct span *tensors, const unsigned char *may_close,
                                uint32_t tensor_count, uint64_t bucket_bytes,
                                struct layout *ret_layout);

/* Cuts buckets of more than one and a half times bucket_bytes into equal parts of at most that, so
 * that a large tensor does not travel as one: while one part is answered the next is on its way.
 * Where there would be too many, bucket_bytes is doubled until there are not. */
void layout_split_buckets(struct layout *layout, uint64_t bucket_bytes);

/* Joins neighbouring buckets of `fine`, in their order: a bucket is closed as soon as it holds at
 * least bucket_bytes (the first one: a quarter of it); the rest makes the last one. So a cut
 * can be changed while the gradients stay where they are, alike on every process. The digest
 * stays. bucket_bytes 0: the layout as it is. */
void layout_merge(const struct layout *fine, uint64_t bucket_bytes, struct layout *ret_layout);

/* 64-bit FNV-1a over bytes, to chain: start with LAYOUT_DIGEST_SEED. */
#define LAYOUT_DIGEST_SEED UINT64_C(0xCBF29CE484222325)
uint64_t layout_digest_add(uint64_t digest, const void *bytes, uint64_t size);

#endif
