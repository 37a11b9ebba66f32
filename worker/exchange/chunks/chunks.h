/* All-reduces by messages. Each bucket is cut into as many chunks as there are workers, each chunk
 * into segments. An algorithm decides which worker sends which segment where.
 *
 *     ring               chunk_ring.c     to the next worker, 2(N-1) times; the sum grows on its
 * way direct             chunk_direct.c   to the worker that adds up this chunk, and from it to all
 *     halving-doubling   chunk_halving.c  the same, but by way of others, all that goes to one of
 *                                         them in one message
 *
 * The first two move 2(N-1)/N of the bucket out of every worker and into it, the least possible;
 * direct waits for two messages one after the other instead of 2(N-1), but has N-1 senders at each
 * receiver. Halving and doubling waits for 2 log2 N messages, which are all there are, and moves
 * more bytes (halving_plan.h). In all of them the sum of chunk c is taken in the order of ranks c,
 * c+1, ..., c+N-1. all_reduce.h says which is faster when. */
#ifndef WORKER_EXCHANGE_CHUNKS_CHUNKS_H
#define WORKER_EXCHANGE_CHUNKS_CHUNKS_H

#include "common/channel/pacer.h"
#include "worker/exchange/chunks/ring_plan.h"
#include "worker/exchange/encoder.h"
#include "worker/exchange/exchange.h"

#include <stdbool.h>
#include <stdint.h>

struct chunks;

/* What becomes of a segment that came. */
enum chunk_fate {
    CHUNK_TAKEN,
    CHUNK_EARLY,   // others have to come first: hold it
    CHUNK_REFUSED, // it cannot be valid after what has come
};

struct chunk_algorithm {
    /* Returns the most segments of a bucket that a worker receives in a step. */
    uint32_t (*count)(const struct exchange_options *options, uint32_t bucket);

    /* Returns the bytes that it needs for a bucket within a step. NULL: none. */
    size_t (*store_bytes)(const struct exchange_options *options, uint32_t bucket);

    /* Handles a bucket that backward has completed. */
    enum status (*begin)(struct chunks *chunks, uint32_t bucket);

    /* Whether this worker gets such a segment in any step. */
    bool (*is_expected)(const struct chunks *chunks, const struct message *message);

    /* The process that has to send the next segment of a bucket that is ready and not done. */
    uint32_t (*awaits)(const struct chunks *chunks, uint32_t bucket);

    /* Handles a segment of this step, in a bucket that is ready. */
    enum status (*handle)(struct chunks *chunks, const struct message *message,
                          enum chunk_fate *ret_fate);
};

extern const struct chunk_algorithm chunk_ring, chunk_direct, chunk_halving;

struct chunk_bucket {
    const struct chunk_algorithm *algorithm;
    uint64_t final_count; // floats of this step that are final
    bool is_ready;        // backward has completed it in this step
    uint64_t next_step;   // the first of which it wants segments
    // direct: of each segment of the own chunks, how many ranks are in its sum; halving-doubling:
    // of each slice, which hop comes next
    uint32_t *positions;
    unsigned char *store;    // of as many bytes as the algorithm needs
    struct chunk_held *held; // segments that came for it too early
};

struct chunk_held {
    struct message message; // of its pointers only values is valid
    struct envelope envelope;
    struct chunk_held *next; // the next one of the same bucket, or the next free one
};

struct chunks {
    struct exchange base;
    struct encoder encoder;
    struct pacer *pacer;
    struct chunk_bucket *buckets; // (bucket_count), owned
    uint32_t bucket_count;
    uint32_t *positions;  // of all buckets, owned
    unsigned char *store; // of all buckets, owned
    size_t store_bytes;
    struct chunk_held *held_pool; // segments of all buckets that came too early; owned
    struct chunk_held *held_free;
    uint32_t held_max;
    uint64_t *given, *taken; // (processes) segments to and from each, since the phase began; owned
};

/* Sends a segment to a process, without a copy: the values or the code that the message points to.
 * The message says whose they are by its rank, one that this process carries. */
enum status chunks_send(struct chunks *chunks, uint32_t to, const struct message *message);

/* The gradients of a rank that this process carries. */
float *chunks_vector(const struct chunks *chunks, uint32_t rank);

/* Adds up those of several, in their order: into the vector of the first, which is returned. */
float *chunks_add_up(const struct chunks *chunks, struct rank_block ranks, struct span span);

/* A sum of all ranks, in one of those vectors: its mean goes to grads. */
void chunks_make_mean(const struct chunks *chunks, const float *sum, struct span span);

/* Counts floats that have their final value; the last ones complete the bucket. */
void chunks_mark_final(struct chunks *chunks, uint32_t bucket, uint64_t count);

/* Whether so many floats of the bucket can still become final. */
bool chunks_has_room(const struct chunks *chunks, uint32_t bucket, uint64_t count);

/* Segments of a bucket's longest chunk. */
uint32_t chunks_segments_max(const struct exchange_options *options, uint32_t bucket);

/* Whether the span is one of the segments of a chunk. */
bool chunks_is_segment(struct span chunk, struct span span);

#endif
