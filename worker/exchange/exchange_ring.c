/* Ring all-reduce: moves segments as ring_plan says.
 *
 * A segment that arrives before backward has completed its bucket is held, and handled when the
 * bucket is ready: every hop of the first half adds to our own gradient. What the worker before us
 * may send that early is bounded: its segments of this step, and, once we have all but finished
 * this one, those of the next step in which it waits for us. They are held in arrival order; the
 * pool has room for two steps, and a peer that sends more breaks the protocol. */
#include "common/vector.h"
#include "worker/exchange/ring_plan.h"
#include "worker/exchange/strategies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// ZeroMQ moves 1 MiB messages at full speed; smaller ones overlap better. In floats.
#define SEGMENT_FLOATS (UINT64_C(256) * 1024)

struct held {
    struct message message; // its pointers are not valid but values
    struct envelope envelope;
    bool is_used;
};

struct ring {
    struct exchange base;
    uint64_t *final_counts; // per bucket: floats of this step that are final
    bool *is_ready;         // per bucket: backward has completed it in this step
    struct held *held;
    uint32_t held_max;
};

static struct ring *ring_of(struct exchange *exchange)
{
    return (struct ring *)exchange;
}

/* Segments of one step that one worker receives. */
static uint32_t segments_per_step(const struct layout *layout, uint32_t world)
{
    uint32_t count = 0;
    for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
        for (uint32_t chunk = 0; chunk < world; chunk++) {
            struct span span = span_part(layout->buckets[bucket], world, chunk);
            count += 2 * ring_segment_count(span, SEGMENT_FLOATS);
        }
    }
    return count;
}

static void ring_destroy(struct exchange *exchange)
{
    struct ring *ring = ring_of(exchange);
    for (uint32_t i = 0; ring->held != NULL && i < ring->held_max; i++) {
        if (ring->held[i].is_used) {
            envelope_release(&ring->held[i].envelope);
        }
    }
    free(ring->held);
    free(ring->is_ready);
    free(ring->final_counts);
    free(ring);
}

static enum status ring_create(const struct exchange_options *options,
                               struct exchange **ret_exchange)
{
    struct ring *ring = calloc(1, sizeof(*ring));
    if (ring == NULL) {
        return STATUS_NO_MEMORY;
    }
    uint32_t bucket_count = options->layout->bucket_count;
    ring->held_max = 2 * segments_per_step(options->layout, options->world) + 1;
    ring->final_counts = calloc(bucket_count, sizeof(*ring->final_counts));
    ring->is_ready = calloc(bucket_count, sizeof(*ring->is_ready));
    ring->held = calloc(ring->held_max, sizeof(*ring->held));
    if (ring->final_counts == NULL || ring->is_ready == NULL || ring->held == NULL) {
        ring_destroy(&ring->base);
        return STATUS_NO_MEMORY;
    }
    *ret_exchange = &ring->base;
    return STATUS_OK;
}

/* Tells the next worker who we are; it checks that its neighbour is the right one. */
static enum status ring_start(struct exchange *exchange)
{
    if (exchange->options.world == 1) {
        return STATUS_OK;
    }
    struct message hello = {.kind = MESSAGE_HELLO, .rank = exchange->options.rank};
    return channel_send(exchange->options.channel, exchange->options.peers[0], &hello, NULL, NULL);
}

static enum status send_chunk(struct ring *ring, uint32_t bucket, uint32_t hop, struct span span)
{
    struct exchange *exchange = &ring->base;
    struct message message = {
        .kind = MESSAGE_CHUNK,
        .rank = exchange->options.rank,
        .step = exchange->step,
        .bucket = bucket,
        .hop = hop,
        .span = span,
        .values = exchange->options.grads + span.offset,
    };
    return exchange_send(exchange, exchange->options.peers[0], &message);
}

/* Counts floats that have their final value; the last ones complete the bucket. */
static void mark_final(struct ring *ring, uint32_t bucket, uint64_t count)
{
    uint64_t whole = ring->base.options.layout->buckets[bucket].count;
    ring->final_counts[bucket] += count;
    assert(ring->final_counts[bucket] <= whole);
    if (ring->final_counts[bucket] == whole) {
        ring->final_counts[bucket] = 0;
        ring->is_ready[bucket] = false;
        exchange_mark_done(&ring->base, bucket);
    }
}

static enum status handle_chunk(struct ring *ring, const struct message *message)
{
    struct exchange *exchange = &ring->base;
    struct ring_hop hop = ring_hop_at(exchange->options.world, message->hop);
    float *grads = exchange->options.grads + message->span.offset;
    uint64_t whole = exchange->options.layout->buckets[message->bucket].count;
    if (hop.is_final && message->span.count > whole - ring->final_counts[message->bucket]) {
        return STATUS_MALFORMED; // the same segment twice
    }
    if (hop.adds) {
        // The received sum is the left operand: the order of ranks around the ring.
        vector_sum(grads, message->values, grads, message->span.count);
    } else {
        memcpy(grads, message->values, message->span.count * sizeof(float));
    }
    if (hop.completes) {
        vector_scale(grads, exchange->mean_factor, message->span.count);
    }
    if (hop.goes_on) {
        enum status status = send_chunk(ring, message->bucket, message->hop + 1, message->span);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (hop.is_final) {
        mark_final(ring, message->bucket, message->span.count);
    }
    return STATUS_OK;
}

static enum status release_held(struct ring *ring, uint32_t bucket)
{
    for (uint32_t i = 0; i < ring->held_max; i++) {
        struct held *held = &ring->held[i];
        if (!held->is_used || held->message.bucket != bucket ||
            held->message.step != ring->base.step) {
            continue;
        }
        enum status status = handle_chunk(ring, &held->message);
        envelope_release(&held->envelope);
        held->is_used = false;
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status ring_ready(struct exchange *exchange, uint32_t bucket)
{
    struct ring *ring = ring_of(exchange);
    struct span whole = exchange->options.layout->buckets[bucket];
    uint32_t world = exchange->options.world;
    if (world == 1) {
        exchange_mark_done(exchange, bucket);
        return STATUS_OK;
    }
    ring->is_ready[bucket] = true;
    struct span own = span_part(whole, world, exchange->options.rank);
    for (uint32_t i = 0; i < ring_segment_count(own, SEGMENT_FLOATS); i++) {
        enum status status = send_chunk(ring, bucket, 1, ring_segment(own, SEGMENT_FLOATS, i));
        if (status != STATUS_OK) {
            return status;
        }
    }
    return release_held(ring, bucket);
}

/* Whether the span is a segment of the chunk that comes here at this hop. */
static bool is_expected(const struct ring *ring, const struct message *message)
{
    const struct exchange_options *options = &ring->base.options;
    if (options->world == 1 || message->bucket >= options->layout->bucket_count ||
        message->hop < 1 || message->hop > ring_hop_count(options->world)) {
        return false;
    }
    uint32_t index = ring_chunk_at(options->world, options->rank, message->hop);
    struct span chunk = span_part(options->layout->buckets[message->bucket], options->world, index);
    if (message->span.offset < chunk.offset) {
        return false;
    }
    uint64_t start = message->span.offset - chunk.offset;
    if (start >= chunk.count || start % SEGMENT_FLOATS != 0) {
        return false;
    }
    struct span segment = ring_segment(chunk, SEGMENT_FLOATS, (uint32_t)(start / SEGMENT_FLOATS));
    return segment.count == message->span.count;
}

static enum status hold(struct ring *ring, const struct message *message, struct envelope *envelope)
{
    for (uint32_t i = 0; i < ring->held_max; i++) {
        struct held *held = &ring->held[i];
        if (held->is_used) {
            continue;
        }
        envelope_move(&held->envelope, envelope);
        held->message = *message;
        held->message.values = held->envelope.payload;
        held->is_used = true;
        return STATUS_OK;
    }
    return STATUS_MALFORMED;
}

static enum status ring_deliver(struct exchange *exchange, const struct message *message,
                                struct envelope *envelope)
{
    struct ring *ring = ring_of(exchange);
    uint32_t world = exchange->options.world;
    uint32_t before = (exchange->options.rank + world - 1) % world;
    if (message->rank != before) {
        return STATUS_MALFORMED;
    }
    if (message->kind == MESSAGE_HELLO) {
        return STATUS_OK;
    }
    if (message->kind != MESSAGE_CHUNK || !is_expected(ring, message)) {
        return STATUS_MALFORMED;
    }
    // Before the first step `step` is UINT64_MAX, and its successor 0.
    bool is_now = message->step == exchange->step;
    if (!is_now && message->step != exchange->step + 1) {
        return STATUS_MALFORMED;
    }
    if (!is_now || !ring->is_ready[message->bucket]) {
        return hold(ring, message, envelope);
    }
    return handle_chunk(ring, message);
}

const struct exchange_strategy exchange_ring = {
    .ops =
        {
            .mode = "ring",
            .delivers = EXCHANGE_GRADIENTS,
            .start = ring_start,
            .ready = ring_ready,
            .deliver = ring_deliver,
            .destroy = ring_destroy,
        },
    .create = ring_create,
};
