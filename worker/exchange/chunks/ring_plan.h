/* Plans what a worker does with the segments of a ring all-reduce. Arithmetic only.
 *
 * Each bucket is cut into as many chunks as there are ranks, each chunk into segments. Process p
 * sends to p+1 and receives from p-1, modulo P. A segment of chunk c starts at the process that
 * carries rank c, with the values of that rank, and is handed on. Where a process carries one rank,
 * P = N, that is 2(N-1) times:
 *
 *     hops 1 .. N-1      reduce-scatter: the receiver adds its own values; after hop N-1 the sum is
 *                        complete, in the order of ranks c, c+1, ..., c+N-1, and is scaled by 1/N
 *     hops N .. 2N-2     all-gather: the receiver takes the values as they are
 *
 * Every rank sends and receives 2(N-1)/N of the bucket (Patarasuk and Yuan 2009: the least
 * possible). Segments do not wait for each other, so the wire, the additions and the other buckets
 * overlap.
 *
 * A process that carries several ranks adds their values one after the other, in their order. If
 * rank c is not the first that its process carries, the sum starts with c and those behind it, and
 * comes back to that process, which adds those before c last: one hop more. */
#ifndef WORKER_EXCHANGE_CHUNKS_RING_PLAN_H
#define WORKER_EXCHANGE_CHUNKS_RING_PLAN_H

#include "common/job/carriers.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

// ZeroMQ moves 1 MiB messages at full speed; smaller ones overlap better. In floats.
#define SEGMENT_FLOATS (UINT64_C(256) * 1024)

/* The way of a chunk's segments round the ring. */
struct ring_path {
    uint32_t start;     // the process that begins the sum
    uint32_t sum_hops;  // in which values are added
    uint32_t hop_count; // in all; 0 if there is one process
};
struct ring_path ring_path_of(struct carriers carriers, uint32_t chunk);

/* The process that receives the hop, from 1. */
uint32_t ring_receiver(struct carriers carriers, const struct ring_path *path, uint32_t hop);

struct ring_hop {
    bool adds;      // the receiver adds its own values to the received ones
    bool completes; // this addition was the last: scale by 1/world
    bool is_final;  // the values are final at the receiver after this hop
    bool goes_on;   // the receiver hands it on, as hop + 1
};

/* hop in 1 .. hop_count. */
struct ring_hop ring_hop_at(const struct ring_path *path, uint32_t hop);

/* The ranks whose values are added to a chunk's sum at a hop that adds, by its receiver; at hop 0
 * those that the sum starts with. */
struct rank_block ring_adders(struct carriers carriers, uint32_t chunk, uint32_t hop);

/* The chunk of a bucket that has this float of it. */
uint32_t ring_chunk_of(struct span bucket, uint32_t world, uint64_t offset);

/* Segments of at most segment_count_max floats that a chunk is cut into. */
uint32_t ring_segment_count(struct span chunk, uint64_t segment_count_max);
struct span ring_segment(struct span chunk, uint64_t segment_count_max, uint32_t index);

#endif
