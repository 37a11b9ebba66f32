/* What a worker does with the pieces of a ring all-reduce. Arithmetic only.
 *
 * Each bucket is cut into `world` chunks, each chunk into segments. Rank r sends to r+1 and
 * receives from r-1, modulo world. A segment of chunk c starts at rank c with that rank's own
 * values and is handed on 2(N-1) times:
 *
 *     hops 1 .. N-1      reduce-scatter: the receiver adds its own values; after hop N-1 the sum is
 *                        complete, in the order of ranks c, c+1, ..., c+N-1, and is scaled by 1/N
 *     hops N .. 2N-2     all-gather: the receiver takes the values as they are
 *
 * Every rank sends and receives 2(N-1)/N of the bucket (Patarasuk and Yuan 2009: the least
 * possible). Segments do not wait for each other, so the wire, the additions and the other buckets
 * overlap. */
#ifndef WORKER_EXCHANGE_CHUNKS_RING_PLAN_H
#define WORKER_EXCHANGE_CHUNKS_RING_PLAN_H

#include "common/vector/layout.h"

#include <stdbool.h>
#include <stdint.h>

struct ring_hop {
    bool adds;      // the receiver adds its own values, rather than take the received ones
    bool completes; // this addition was the last: scale by 1/world
    bool is_final;  // the values are final at the receiver after this hop
    bool goes_on;   // the receiver hands it on, as hop + 1
};

/* The number of times a segment is handed on. 0 if world is 1. */
uint32_t ring_hop_count(uint32_t world);

/* hop in 1 .. ring_hop_count(world). */
struct ring_hop ring_hop_at(uint32_t world, uint32_t hop);

/* The chunk that `rank` receives at `hop`. */
uint32_t ring_chunk_at(uint32_t world, uint32_t rank, uint32_t hop);

/* Segments of at most segment_count_max floats that a chunk is cut into. */
uint32_t ring_segment_count(struct span chunk, uint64_t segment_count_max);
struct span ring_segment(struct span chunk, uint64_t segment_count_max, uint32_t index);

#endif
