/* Direct exchange: rank c adds up chunk c.
 *
 *     hop 1   everybody sends its values of chunk c to rank c, which adds them up in the order of
 *             ranks c, c+1, ...; what comes out of turn is held
 *     hop 2   rank c sends the mean to everybody
 *
 * So a bucket takes two messages one after the other, whatever the number of workers. */
#include "common/vector/vector.h"
#include "worker/exchange/chunks/chunks.h"
#include "worker/exchange/chunks/ring_plan.h"

#include <string.h>

enum { HOP_VALUES = 1, HOP_MEAN = 2 };

static struct span chunk_of(const struct exchange_options *options, uint32_t bucket, uint32_t rank)
{
    return span_part(options->layout->buckets[bucket], options->world, rank);
}

static uint32_t direct_count(const struct exchange_options *options, uint32_t bucket)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < options->world; rank++) {
        count += ring_segment_count(chunk_of(options, bucket, rank), SEGMENT_FLOATS);
    }
    struct span own = chunk_of(options, bucket, options->rank);
    return count + (options->world - 1) * ring_segment_count(own, SEGMENT_FLOATS);
}

/* Which segments of the others' chunks have come as means: a byte each. */
static size_t direct_store_bytes(const struct exchange_options *options, uint32_t bucket)
{
    return (size_t)options->world * chunks_segments_max(options, bucket);
}

static unsigned char *mean_mark(const struct chunks *chunks, const struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span chunk = chunk_of(options, message->bucket, message->rank);
    return chunks->buckets[message->bucket].store +
           (size_t)message->rank * chunks_segments_max(options, message->bucket) +
           (message->span.offset - chunk.offset) / SEGMENT_FLOATS;
}

/* The mean of a segment, to rank + 1, rank + 2, ...: nobody is everybody's first. */
static enum status send_mean(struct chunks *chunks, uint32_t bucket, struct span segment)
{
    const struct exchange_options *options = &chunks->base.options;
    struct message message = {.bucket = bucket, .hop = HOP_MEAN, .span = segment};
    encoder_encode(&chunks->encoder, options->grads, &message);
    enum status status = STATUS_OK;
    if (encoder_is_on(&chunks->encoder)) {
        status =
            encoder_copy(&chunks->encoder, &message, options->grads); // what the others will have
    }
    for (uint32_t k = 1; k < options->world && status == STATUS_OK; k++) {
        status = chunks_send(chunks, (options->rank + k) % options->world, &message);
    }
    return status;
}

static enum status direct_begin(struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span own = chunk_of(options, bucket, options->rank);
    uint32_t own_count = ring_segment_count(own, SEGMENT_FLOATS);
    memset(chunks->buckets[bucket].store, 0, direct_store_bytes(options, bucket));
    for (uint32_t i = 0; i < own_count; i++) {
        chunks->buckets[bucket].positions[i] = 1; // its own values
    }
    for (uint32_t k = 1; k < options->world; k++) {
        uint32_t to = (options->rank + k) % options->world;
        struct span chunk = chunk_of(options, bucket, to);
        for (uint32_t i = 0; i < ring_segment_count(chunk, SEGMENT_FLOATS); i++) {
            struct message message = {.bucket = bucket,
                                      .hop = HOP_VALUES,
                                      .span = ring_segment(chunk, SEGMENT_FLOATS, i)};
            encoder_encode(&chunks->encoder, options->grads, &message);
            enum status status = chunks_send(chunks, to, &message);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    return STATUS_OK;
}

static bool direct_is_expected(const struct chunks *chunks, const struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    if (message->rank == options->rank || message->rank >= options->world ||
        (message->hop != HOP_VALUES && message->hop != HOP_MEAN)) {
        return false;
    }
    uint32_t owner = message->hop == HOP_VALUES ? options->rank : message->rank;
    return chunks_is_segment(chunk_of(options, message->bucket, owner), message->span);
}

/* Values of another rank, for the chunk that is ours. */
static enum status add_values(struct chunks *chunks, const struct message *message,
                              enum chunk_fate *ret_fate)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span own = chunk_of(options, message->bucket, options->rank);
    uint64_t index = (message->span.offset - own.offset) / SEGMENT_FLOATS;
    uint32_t *position = &chunks->buckets[message->bucket].positions[index];
    uint32_t turn = (message->rank + options->world - options->rank) % options->world;
    if (turn != *position) {
        *ret_fate = turn > *position ? CHUNK_EARLY : CHUNK_REFUSED;
        return STATUS_OK;
    }
    if (encoder_add(&chunks->encoder, message, options->grads) != STATUS_OK) {
        *ret_fate = CHUNK_REFUSED;
        return STATUS_OK;
    }
    *ret_fate = CHUNK_TAKEN;
    if (++*position < options->world) {
        return STATUS_OK;
    }
    vector_scale(options->grads + message->span.offset, chunks->base.mean_factor,
                 message->span.count);
    enum status status = send_mean(chunks, message->bucket, message->span);
    if (status == STATUS_OK) {
        chunks_mark_final(chunks, message->bucket, message->span.count);
    }
    return status;
}

static enum status direct_handle(struct chunks *chunks, const struct message *message,
                                 enum chunk_fate *ret_fate)
{
    if (message->hop == HOP_VALUES) {
        return add_values(chunks, message, ret_fate);
    }
    unsigned char *mark = mean_mark(chunks, message);
    if (*mark != 0 ||
        encoder_copy(&chunks->encoder, message, chunks->base.options.grads) != STATUS_OK) {
        *ret_fate = CHUNK_REFUSED; // the same segment twice, or not in the form that was agreed
        return STATUS_OK;
    }
    *mark = 1;
    *ret_fate = CHUNK_TAKEN;
    chunks_mark_final(chunks, message->bucket, message->span.count);
    return STATUS_OK;
}

const struct chunk_algorithm chunk_direct = {
    .count = direct_count,
    .store_bytes = direct_store_bytes,
    .begin = direct_begin,
    .is_expected = direct_is_expected,
    .handle = direct_handle,
};
