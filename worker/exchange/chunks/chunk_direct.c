/* Exchanges directly: rank c adds up chunk c.
 *
 *     hop 1   everybody sends its values of chunk c to rank c, which adds them up in the order of
 *             ranks c, c+1, ...; what comes out of turn is held
 *     hop 2   rank c sends the mean to everybody
 *
 * So a bucket takes two messages one after the other, whatever the number of workers. A process
 * that carries several ranks sends the values of each, since the order of the sum is theirs; the
 * mean goes to a process once. The sum of chunk c grows in the vector of rank c. */
#include "common/vector/vector.h"
#include "worker/exchange/chunks/chunks.h"
#include "worker/exchange/chunks/ring_plan.h"

#include <string.h>

enum { HOP_VALUES = 1, HOP_MEAN = 2 };

static struct span chunk_of(const struct exchange_options *options, uint32_t bucket, uint32_t rank)
{
    return span_part(options->layout->buckets[bucket], options->world, rank);
}

static uint32_t segments_of(const struct exchange_options *options, uint32_t bucket, uint32_t rank)
{
    return ring_segment_count(chunk_of(options, bucket, rank), SEGMENT_FLOATS);
}

static uint32_t direct_count(const struct exchange_options *options, uint32_t bucket)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < options->world; rank++) {
        bool is_own = rank_block_has(options->block, rank);
        uint32_t times = is_own ? 1 + options->world - options->block.count : 1;
        count += times * segments_of(options, bucket, rank);
    }
    return count;
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

/* Of a segment of a chunk that is added up here: how many ranks are in its sum. */
static uint32_t *position_of(const struct chunks *chunks, uint32_t bucket, uint32_t chunk,
                             uint64_t index)
{
    const struct exchange_options *options = &chunks->base.options;
    uint32_t own = chunk - options->rank;
    return chunks->buckets[bucket].positions + (size_t)own * chunks_segments_max(options, bucket) +
           index;
}

/* The mean of a segment, to the next process, the one behind it, ...: nobody is everybody's first.
 */
static enum status send_mean(struct chunks *chunks, uint32_t bucket, uint32_t chunk,
                             struct span segment)
{
    const struct exchange_options *options = &chunks->base.options;
    struct message message = {.bucket = bucket, .rank = chunk, .hop = HOP_MEAN, .span = segment};
    encoder_encode(&chunks->encoder, options->grads, &message);
    enum status status = STATUS_OK;
    if (encoder_is_on(&chunks->encoder)) {
        status =
            encoder_copy(&chunks->encoder, &message, options->grads); // what the others will have
    }
    for (uint32_t k = 1; k < options->processes && status == STATUS_OK; k++) {
        status = chunks_send(chunks, (options->process + k) % options->processes, &message);
    }
    return status;
}

/* The values of a rank that is carried here, of a chunk that another process adds up. */
static enum status send_values(struct chunks *chunks, uint32_t bucket, uint32_t rank,
                               uint32_t chunk)
{
    const struct exchange_options *options = &chunks->base.options;
    uint32_t to = carriers_process(options->carriers, chunk);
    struct span span = chunk_of(options, bucket, chunk);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < segments_of(options, bucket, chunk) && status == STATUS_OK; i++) {
        struct message message = {.bucket = bucket,
                                  .rank = rank,
                                  .hop = HOP_VALUES,
                                  .span = ring_segment(span, SEGMENT_FLOATS, i)};
        encoder_encode(&chunks->encoder, chunks_vector(chunks, rank), &message);
        status = chunks_send(chunks, to, &message);
    }
    return status;
}

/* A sum begins with the rank of its chunk, and with those behind it that are here. */
static void start_sum(struct chunks *chunks, uint32_t bucket, uint32_t chunk)
{
    const struct exchange_options *options = &chunks->base.options;
    struct rank_block adders = ring_adders(options->carriers, chunk, 0);
    (void)chunks_add_up(chunks, adders, chunk_of(options, bucket, chunk));
    for (uint32_t i = 0; i < segments_of(options, bucket, chunk); i++) {
        *position_of(chunks, bucket, chunk, i) = adders.count;
    }
}

static enum status direct_begin(struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    const struct rank_block block = options->block;
    memset(chunks->buckets[bucket].store, 0, direct_store_bytes(options, bucket));
    // Values are sent before sums are started, which grow in their place: of other chunks.
    enum status status = STATUS_OK;
    for (uint32_t k = 0; k < options->world - block.count; k++) {
        uint32_t chunk = (block.first + block.count + k) % options->world;
        for (uint32_t i = 0; i < block.count && status == STATUS_OK; i++) {
            status = send_values(chunks, bucket, block.first + i, chunk);
        }
    }
    for (uint32_t i = 0; i < block.count; i++) {
        start_sum(chunks, bucket, block.first + i);
    }
    return status;
}

static bool direct_is_expected(const struct chunks *chunks, const struct message *message)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span bucket = options->layout->buckets[message->bucket];
    if (message->rank >= options->world || rank_block_has(options->block, message->rank) ||
        (message->hop != HOP_VALUES && message->hop != HOP_MEAN) ||
        message->span.offset < bucket.offset || span_intersect(bucket, message->span).count == 0) {
        return false;
    }
    uint32_t chunk = ring_chunk_of(bucket, options->world, message->span.offset);
    bool is_here = rank_block_has(options->block, chunk);
    bool is_known = message->hop == HOP_VALUES ? is_here : chunk == message->rank;
    return is_known && chunks_is_segment(chunk_of(options, message->bucket, chunk), message->span);
}

/* A rank whose values lack in a sum that is made here, or else one that has not sent its mean: who
 * makes a mean may wait for a third one. */
static uint32_t direct_awaits(const struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    for (uint32_t own = 0; own < options->block.count; own++) {
        uint32_t chunk = options->rank + own, others = options->world - own;
        for (uint32_t i = 0; i < segments_of(options, bucket, chunk); i++) {
            uint32_t position = *position_of(chunks, bucket, chunk, i);
            if (position < others) {
                return carriers_process(options->carriers, (chunk + position) % options->world);
            }
        }
    }
    const unsigned char *marks = chunks->buckets[bucket].store;
    for (uint32_t rank = 0; rank < options->world; rank++) {
        const unsigned char *mark = marks + (size_t)rank * chunks_segments_max(options, bucket);
        uint32_t count =
            rank_block_has(options->block, rank) ? 0 : segments_of(options, bucket, rank);
        for (uint32_t i = 0; i < count; i++) {
            if (mark[i] == 0) {
                return carriers_process(options->carriers, rank);
            }
        }
    }
    return options->process; // none: the bucket is done
}

/* All others' values are in the sum: adds those of ranks before the chunk's own that are here, and
 * hands out the mean. */
static enum status complete(struct chunks *chunks, const struct message *message, uint32_t chunk)
{
    const struct exchange_options *options = &chunks->base.options;
    struct span span = message->span;
    float *sum = chunks_vector(chunks, chunk);
    for (uint32_t rank = options->rank; rank < chunk; rank++) {
        vector_add(sum + span.offset, chunks_vector(chunks, rank) + span.offset, span.count);
    }
    chunks_make_mean(chunks, sum, span);
    enum status status = send_mean(chunks, message->bucket, chunk, span);
    if (status == STATUS_OK) {
        chunks_mark_final(chunks, message->bucket, span.count);
    }
    return status;
}

/* Values of a rank that is elsewhere, for a chunk that is ours. */
static enum status add_values(struct chunks *chunks, const struct message *message,
                              enum chunk_fate *ret_fate)
{
    const struct exchange_options *options = &chunks->base.options;
    uint32_t chunk = ring_chunk_of(options->layout->buckets[message->bucket], options->world,
                                   message->span.offset);
    struct span span = chunk_of(options, message->bucket, chunk);
    uint64_t index = (message->span.offset - span.offset) / SEGMENT_FLOATS;
    uint32_t *position = position_of(chunks, message->bucket, chunk, index);
    uint32_t turn = (message->rank + options->world - chunk) % options->world;
    if (turn != *position) {
        *ret_fate = turn > *position ? CHUNK_EARLY : CHUNK_REFUSED;
        return STATUS_OK;
    }
    if (encoder_add(&chunks->encoder, message, chunks_vector(chunks, chunk)) != STATUS_OK) {
        *ret_fate = CHUNK_REFUSED;
        return STATUS_OK;
    }
    *ret_fate = CHUNK_TAKEN;
    uint32_t others = options->world - (chunk - options->rank); // in the sum, but for those here
    return ++*position < others ? STATUS_OK : complete(chunks, message, chunk);
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
        *ret_fate = CHUNK_REFUSED; // the same segment twice, or not in the agreed form
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
    .awaits = direct_awaits,
    .handle = direct_handle,
};
