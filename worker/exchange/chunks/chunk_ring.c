/* The ring: moves segments as ring_plan says. */
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

static enum status send_on(struct chunks *chunks, struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    message->rank = options->rank;
    return chunks_send(chunks, (options->process + 1) % options->processes, message);
}

/* Starts the sum of a chunk, which begins with a rank of this process. */
static enum status start_sum(struct chunks *chunks, uint32_t bucket, uint32_t chunk)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span span = span_part(options->layout->buckets[bucket], options->world, chunk);
    struct rank_block adders = ring_adders(options->carriers, chunk, 0);
    float *sum = chunks_add_up(chunks, adders, span);
    uint32_t count = ring_segment_count(span, SEGMENT_FLOATS);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        struct message message = {
            .bucket = bucket, .hop = 1, .span = ring_segment(span, SEGMENT_FLOATS, i)};
        encoder_encode(&chunks->encoder, sum, &message);
        status = send_on(chunks, &message);
    }
    return status;
}

static enum status ring_begin(struct chunks *chunks, uint32_t bucket)
{
    const struct rank_block block = chunks->base.options.block;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < block.count && status == STATUS_OK; i++) {
        status = start_sum(chunks, bucket, block.first + i);
    }
    return status;
}

static uint32_t chunk_of(const struct chunks *chunks, const struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    return ring_chunk_of(options->layout->buckets[message->bucket], options->world,
                         message->span.offset);
}

static uint32_t ring_awaits(const struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    (void)bucket;
    return (options->process + options->processes - 1) % options->processes;
}

static bool ring_is_expected(const struct chunks *chunks, const struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span bucket = options->layout->buckets[message->bucket];
    uint32_t before = (options->process + options->processes - 1) % options->processes;
    if (message->rank != carriers_block(options->carriers, before).first ||
        span_intersect(bucket, message->span).count == 0 || message->span.offset < bucket.offset) {
        return false;
    }
    uint32_t chunk = chunk_of(chunks, message);
    const struct ring_path path = ring_path_of(options->carriers, chunk);
    return message->hop >= 1 && message->hop <= path.hop_count &&
           ring_receiver(options->carriers, &path, message->hop) == options->process &&
           chunks_is_segment(span_part(bucket, options->world, chunk), message->span);
}

/* Hands on what came: a sum with this rank's own values in it, or a mean as it is. */
static enum status hand_on(struct chunks *chunks, const struct message *message,
                           const struct ring_hop *hop, const float *values)
{
    struct message next = {
        .bucket = message->bucket, .hop = message->hop + 1, .span = message->span};
    if (!hop->adds && encoder_is_on(&chunks->encoder)) {
        encoder_keep(&chunks->encoder, message, &next);
        return send_on(chunks, &next);
    }
    encoder_encode(&chunks->encoder, values, &next);
    if (hop->completes && encoder_is_on(&chunks->encoder)) {
        // What the others will have.
        enum status status = encoder_copy(&chunks->encoder, &next, chunks->base.options.grads);
        assert(status == STATUS_OK);
        (void)status;
    }
    return send_on(chunks, &next);
}

/* Adds our own values to a sum that came. *ret_sum: the vector that has it. */
static enum status add_own(struct chunks *chunks, const struct message *message,
                           const struct ring_hop *hop, float **ret_sum)
{
    struct rank_block adders =
        ring_adders(chunks->base.options.carriers, chunk_of(chunks, message), message->hop);
    // Which of the two is added to which makes no difference to the bits.
    enum status status =
        encoder_add(&chunks->encoder, message, chunks_vector(chunks, adders.first));
    if (status != STATUS_OK) {
        return status;
    }
    *ret_sum = chunks_add_up(chunks, adders, message->span);
    if (hop->completes) {
        chunks_make_mean(chunks, *ret_sum, message->span);
        *ret_sum = chunks->base.options.grads;
    }
    return STATUS_OK;
}

static enum status ring_handle(struct chunks *chunks, const struct message *message,
                               enum chunk_fate *ret_fate)
{
    struct exchange *exchange = &chunks->base;
    const struct ring_path path =
        ring_path_of(exchange->options.carriers, chunk_of(chunks, message));
    struct ring_hop hop = ring_hop_at(&path, message->hop);
    float *values = exchange->options.grads;
    *ret_fate = CHUNK_REFUSED;
    if (hop.is_final && !chunks_has_room(chunks, message->bucket, message->span.count)) {
        return STATUS_OK; // the same segment twice
    }
    if ((hop.adds ? add_own(chunks, message, &hop, &values)
                  : encoder_copy(&chunks->encoder, message, values)) != STATUS_OK) {
        return STATUS_OK;
    }
    *ret_fate = CHUNK_TAKEN;
    enum status status = hop.goes_on ? hand_on(chunks, message, &hop, values) : STATUS_OK;
    if (status == STATUS_OK && hop.is_final) {
        chunks_mark_final(chunks, message->bucket, message->span.count);
    }
    return status;
}

const struct chunk_algorithm chunk_ring = {
    .count = ring_count,
    .begin = ring_begin,
    .is_expected = ring_is_expected,
    .awaits = ring_awaits,
    .handle = ring_handle,
};
