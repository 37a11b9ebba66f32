/* A timeline as a graph: what each thread did, piece by piece, and what released each piece. Pure.
 *
 * Slices that contain others are cut into the pieces between those, so that a thread does one thing
 * at a time. A piece of work may have a *cause*, a moment of another thread without which it could
 * not begin:
 *
 *     the receive of a message       its send, over the link between the two processes
 *     the post of a bucket           the moment when its gradients were ready
 *     the read of a batch            the thread that computes, which took one before
 *     what a stream of a GPU does    the end of what another stream did, or the thread that queued
 *
 * A wait has one that ends it: for a batch, the thread that reads; in the exchange, the last
 * message that was handled, or, where workers sum in shared memory, the last worker whose gradients
 * were ready. A thread that computes on a GPU waits for that; a GPU that sums with others waits for
 * the last of them. */
#ifndef DEPLOY_TRACE_SEGMENTS_H
#define DEPLOY_TRACE_SEGMENTS_H

#include "deploy/trace/timeline.h"

#define SEGMENT_NONE SIZE_MAX

struct segment {
    uint64_t begin_ns, end_ns;
    uint32_t thread; // of the timeline
    size_t event;    // that it is a piece of, the innermost one
    enum trace_kind kind;
    bool is_wait;
    bool was_idle; // its thread had nothing to do before it: its cause released it
    bool has_link; // its cause is of another process, which sent a message
    size_t cause;  // segment; SEGMENT_NONE: none is known
    uint64_t cause_ns;
};

struct segments {
    const struct timeline *timeline; // borrowed
    struct segment *list;            // (count), owned; by thread, then by time
    size_t count;
    size_t *first; // (thread_count + 1), owned: where each thread's begin
};

enum status segments_make(const struct timeline *timeline, const struct timeline_flow *flows,
                          size_t flow_count, struct segments *ret_segments);
void segments_finish(struct segments *segments); // zeroed is fine

/* The last piece of a thread that begins before a time; SEGMENT_NONE: there is none. */
size_t segments_before(const struct segments *segments, uint32_t thread, uint64_t time_ns);

#endif
