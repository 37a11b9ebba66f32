/* The ring: moves segments as ring_plan says. */
#include "common/vector/vector.h"
#include "worker/exchange/chunks/chunks.h"
#include "worker/exchange/chunks/ring_plan.h"

#include <assert.h>

static uint32_t ring_count(const struct exchange_options *options, uint32_t bucket)
{
    uint32_t count = 0;
    for (uint32_t chunk = 0; chunk < options->world; chunk++) {
        struct span span = span_part(options->layout->buckets[bucket], options->world, chunk);
        count += 2 * ring_segment_count(span, SEGMENT_FLOATS);
    }
    return count;
}

static enum status send_on(struct chunks *chunks, const struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    return chunks_send(chunks, (options->rank + 1) % options->world, message);
}

static enum status ring_begin(struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span own = span_part(options->layout->buckets[bucket], options->world, options->rank);
    enum status status = STATUS_OK;
    uint32_t count = ring_segment_count(own, SEGMENT_FLOATS);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        struct message message = {
            .bucket = bucket, .hop = 1, .span = ring_segment(own, SEGMENT_FLOATS, i)};
        encoder_encode(&chunks->encoder, options->grads, &message);
        status = send_on(chunks, &message);
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

/* Hands on what came: the sum with our own values in it, or the mean as it is. */
static enum status hand_on(struct chunks *chunks, const struct message *message,
                           const struct ring_hop *hop)
{
    float *grads = chunks->base.options.grads;
    struct message next = {
        .bucket = message->bucket, .hop = message->hop + 1, .span = message->span};
    if (!hop->adds && encoder_is_on(&chunks->encoder)) {
        encoder_keep(&chunks->encoder, message, &next);
        return send_on(chunks, &next);
    }
    encoder_encode(&chunks->encoder, grads, &next);
    if (hop->completes && encoder_is_on(&chunks->encoder)) {
        // What the others will have.
        enum status status = encoder_copy(&chunks->encoder, &next, grads);
        assert(status == STATUS_OK);
        (void)status;
    }
    return send_on(chunks, &next);
}

static enum status ring_handle(struct chunks *chunks, const struct message *message,
                               enum chunk_fate *ret_fate)
{
    struct exchange *exchange = &chunks->base;
    struct ring_hop hop = ring_hop_at(exchange->options.world, message->hop);
    float *grads = exchange->options.grads;
    *ret_fate = CHUNK_REFUSED;
    if (hop.is_final && !chunks_has_room(chunks, message->bucket, message->span.count)) {
        return STATUS_OK; // the same segment twice
    }
    // Which of the two is added to which makes no difference to the bits.
    if ((hop.adds ? encoder_add(&chunks->encoder, message, grads)
                  : encoder_copy(&chunks->encoder, message, grads)) != STATUS_OK) {
        return STATUS_OK;
    }
    *ret_fate = CHUNK_TAKEN;
    if (hop.completes) {
        vector_scale(grads + message->span.offset, exchange->mean_factor, message->span.count);
    }
    enum status status = hop.goes_on ? hand_on(chunks, message, &hop) : STATUS_OK;
    if (status == STATUS_OK && hop.is_final) {
        chunks_mark_final(chunks, message->bucket, message->span.count);
    }
    return status;
}

const struct chunk_algorithm chunk_ring = {
    .count = ring_count,
    .begin = ring_begin,
    .is_expected = ring_is_expected,
    .handle = ring_handle,
};
