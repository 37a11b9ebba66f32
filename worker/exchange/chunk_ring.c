/* The ring: moves segments as ring_plan says. */
#include "common/vector.h"
#include "worker/exchange/chunks.h"
#include "worker/exchange/ring_plan.h"

#include <string.h>

static uint32_t ring_count(const struct exchange_options *options, uint32_t bucket)
{
    uint32_t count = 0;
    for (uint32_t chunk = 0; chunk < options->world; chunk++) {
        struct span span = span_part(options->layout->buckets[bucket], options->world, chunk);
        count += 2 * ring_segment_count(span, SEGMENT_FLOATS);
    }
    return count;
}

static enum status send_on(struct chunks *chunks, uint32_t bucket, uint32_t hop, struct span span)
{
    const struct exchange_options *options = &chunks->base.options;
    const struct message message = {.bucket = bucket, .hop = hop, .span = span};
    return chunks_send(chunks, options->peers[(options->rank + 1) % options->world], &message);
}

static enum status ring_begin(struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span own = span_part(options->layout->buckets[bucket], options->world, options->rank);
    enum status status = STATUS_OK;
    uint32_t count = ring_segment_count(own, SEGMENT_FLOATS);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = send_on(chunks, bucket, 1, ring_segment(own, SEGMENT_FLOATS, i));
    }
    return status;
}

static bool ring_is_expected(const struct chunks *chunks, const struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    uint32_t before = (options->rank + options->world - 1) % options->world;
    if (message->rank != before || message->hop < 1 ||
        message->hop > ring_hop_count(options->world)) {
        return false;
    }
    uint32_t index = ring_chunk_at(options->world, options->rank, message->hop);
    return chunks_is_segment(
        span_part(options->layout->buckets[message->bucket], options->world, index), message->span);
}

static enum status ring_handle(struct chunks *chunks, const struct message *message,
                               enum chunk_fate *ret_fate)
{
    struct exchange *exchange = &chunks->base;
    struct ring_hop hop = ring_hop_at(exchange->options.world, message->hop);
    float *grads = exchange->options.grads + message->span.offset;
    if (hop.is_final && !chunks_has_room(chunks, message->bucket, message->span.count)) {
        *ret_fate = CHUNK_REFUSED; // the same segment twice
        return STATUS_OK;
    }
    *ret_fate = CHUNK_TAKEN;
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
        enum status status = send_on(chunks, message->bucket, message->hop + 1, message->span);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (hop.is_final) {
        chunks_mark_final(chunks, message->bucket, message->span.count);
    }
    return STATUS_OK;
}

const struct chunk_algorithm chunk_ring = {
    .count = ring_count,
    .begin = ring_begin,
    .is_expected = ring_is_expected,
    .handle = ring_handle,
};
