/* All-reduce by messages: each bucket is cut into as many chunks as there are workers, each chunk
 * into segments, and an algorithm says who sends which segment to whom.
 *
 *     ring      chunk_ring.c     to the next worker, 2(N-1) times; the sum grows on its way
 *     direct    chunk_direct.c   to the worker that adds up this chunk, and from it to all
 *
 * Both move 2(N-1)/N of the bucket out of every worker and into it, the least possible; direct
 * waits for two messages one after the other instead of 2(N-1), but has N-1 senders at each
 * receiver. In both the sum of chunk c is taken in the order of ranks c, c+1, ..., c+N-1. */
#ifndef WORKER_EXCHANGE_CHUNKS_H
#define WORKER_EXCHANGE_CHUNKS_H

#include "common/pacer.h"
#include "worker/exchange/coder.h"
#include "worker/exchange/exchange.h"

#include <stdbool.h>
#include <stdint.h>

// ZeroMQ moves 1 MiB messages at full speed; smaller ones overlap better. In floats.
#define SEGMENT_FLOATS (UINT64_C(256) * 1024)

struct chunks;

/* What is done with a segment that came. */
enum chunk_fate {
    CHUNK_TAKEN,
    CHUNK_EARLY,   // others have to come before it: hold it
    CHUNK_REFUSED, // it cannot be, as far as has come
};

struct chunk_algorithm {
    /* Segments of a bucket that a worker receives in a step, at most. */
    uint32_t (*count)(const struct exchange_options *options, uint32_t bucket);

    /* Backward has completed the bucket. */
    enum status (*begin)(struct chunks *chunks, uint32_t bucket);

    /* Whether the segment is one that this worker gets, of some step. */
    bool (*is_expected)(const struct chunks *chunks, const struct message *message);

    /* A segment of this step, of a bucket that is ready. */
    enum status (*handle)(struct chunks *chunks, const struct message *message,
                          enum chunk_fate *ret_fate);
};

extern const struct chunk_algorithm chunk_ring, chunk_direct;

struct chunk_bucket {
    const struct chunk_algorithm *algorithm;
    uint64_t final_count; // floats of this step that are final
    bool is_ready;        // backward has completed it in this step
    uint32_t *positions;  // direct: of each segment of the own chunk, how many ranks are in its sum
};

struct chunk_held {
    struct message message; // its pointers are not valid but values
    struct envelope envelope;
    bool is_used;
};

struct chunks {
    struct exchange base;
    struct coder coder;
    struct pacer *pacer;
    struct chunk_bucket *buckets;
    uint32_t *positions;     // of all buckets, owned
    struct chunk_held *held; // segments that came before their time
    uint32_t held_max;
};

/* Sends a segment to a rank, without a copy: the values or the code that the message points to. */
enum status chunks_send(struct chunks *chunks, uint32_t to, const struct message *message);

/* Counts floats that have their final value; the last ones complete the bucket. */
void chunks_mark_final(struct chunks *chunks, uint32_t bucket, uint64_t count);

/* Whether so many floats of the bucket can still become final. */
bool chunks_has_room(const struct chunks *chunks, uint32_t bucket, uint64_t count);

/* Whether the span is one of the segments of a chunk. */
bool chunks_is_segment(struct span chunk, struct span span);

#endif
