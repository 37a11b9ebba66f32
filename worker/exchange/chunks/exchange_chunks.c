/* Holds what the algorithms of all-reduce by messages share.
 *
 * A segment that arrives before backward has completed its bucket is held until the bucket is
 * ready, because sums contain this worker's own gradient. What others may send that early is
 * bounded: their segments of this step and, once this worker has almost finished it, those of the
 * next step, in which they wait for this worker. The pool has room for two steps. A peer that sends
 * more breaks the protocol. */
#include "common/base/memory.h"
#include "common/vector/vector.h"
#include "worker/exchange/chunks/chunks.h"
#include "worker/exchange/chunks/ring_plan.h"
#include "worker/exchange/strategies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Of a bucket's store, which may hold floats behind another bucket's bytes.
#define STORE_ALIGNMENT 64

static const struct chunk_algorithm *const algorithms[ALL_REDUCE_COUNT] = {
    [ALL_REDUCE_RING] = &chunk_ring,
    [ALL_REDUCE_DIRECT] = &chunk_direct,
    [ALL_REDUCE_HALVING] = &chunk_halving,
};

static struct chunks *chunks_of(struct exchange *exchange)
{
    return (struct chunks *)exchange;
}

static void chunks_destroy(struct exchange *exchange)
{
    struct chunks *chunks = chunks_of(exchange);
    for (uint32_t i = 0; i < chunks->bucket_count; i++) {
        for (struct chunk_held *held = chunks->buckets[i].held; held != NULL; held = held->next) {
            envelope_release(&held->envelope);
        }
    }
    encoder_destroy(&chunks->encoder);
    pacer_destroy(chunks->pacer);
    memory_destroy_large(chunks->store, chunks->store_bytes);
    free(chunks->given);
    free(chunks->taken);
    free(chunks->held_pool);
    free(chunks->positions);
    free(chunks->buckets);
    free(chunks);
}

uint32_t chunks_segments_max(const struct exchange_options *options, uint32_t bucket)
{
    // The first one is as long as any.
    struct span first = span_part(options->layout->buckets[bucket], options->world, 0);
    return ring_segment_count(first, SEGMENT_FLOATS);
}

static size_t positions_of(const struct exchange_options *options, uint32_t bucket)
{
    return (size_t)options->block.count * chunks_segments_max(options, bucket);
}

static size_t store_bytes(const struct exchange_options *options,
                          const struct chunk_algorithm *algorithm, uint32_t bucket)
{
    size_t bytes = algorithm->store_bytes != NULL ? algorithm->store_bytes(options, bucket) : 0;
    return (bytes + STORE_ALIGNMENT - 1) / STORE_ALIGNMENT * STORE_ALIGNMENT;
}

static enum status create_buckets(struct chunks *chunks, const struct exchange_options *options)
{
    uint32_t bucket_count = options->layout->bucket_count;
    size_t position_count = 0;
    chunks->held_max = 1;
    chunks->buckets = calloc(bucket_count, sizeof(*chunks->buckets));
    if (chunks->buckets == NULL) {
        return STATUS_NO_MEMORY;
    }
    chunks->bucket_count = bucket_count;
    for (uint32_t i = 0; i < bucket_count; i++) {
        const struct chunk_algorithm *algorithm =
            algorithms[all_reduce_of_bucket(&options->limits, options->layout->buckets[i].count)];
        chunks->buckets[i].algorithm = algorithm;
        chunks->held_max += 2 * algorithm->count(options, i);
        chunks->store_bytes += store_bytes(options, algorithm, i);
        position_count += positions_of(options, i);
    }
    chunks->positions = calloc(position_count + 1, sizeof(*chunks->positions));
    chunks->held_pool = calloc(chunks->held_max, sizeof(*chunks->held_pool));
    chunks->store = memory_create_large(chunks->store_bytes);
    if (chunks->positions == NULL || chunks->held_pool == NULL || chunks->store == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < chunks->held_max; i++) {
        chunks->held_pool[i].next = chunks->held_free;
        chunks->held_free = &chunks->held_pool[i];
    }
    uint32_t *positions = chunks->positions;
    unsigned char *store = chunks->store;
    for (uint32_t i = 0; i < bucket_count; i++) {
        chunks->buckets[i].positions = positions;
        chunks->buckets[i].store = store;
        positions += positions_of(options, i);
        store += store_bytes(options, chunks->buckets[i].algorithm, i);
    }
    return STATUS_OK;
}

static enum status chunks_create(const struct exchange_options *options,
                                 struct exchange **ret_exchange)
{
    struct chunks *chunks = calloc(1, sizeof(*chunks));
    if (chunks == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = create_buckets(chunks, options);
    if (status != STATUS_OK) {
        goto fail;
    }
    chunks->given = calloc(options->processes, sizeof(*chunks->given));
    chunks->taken = calloc(options->processes, sizeof(*chunks->taken));
    if (chunks->given == NULL || chunks->taken == NULL) {
        status = STATUS_NO_MEMORY;
        goto fail;
    }
    status = encoder_create(&options->codec, options->layout, &chunks->encoder);
    if (status != STATUS_OK) {
        goto fail;
    }
    status =
        pacer_create(options->channel, options->peer_count, PACER_QUIETEST_LANE, &chunks->pacer);
    if (status != STATUS_OK) {
        goto fail;
    }
    chunks->base.encoders = &chunks->encoder;
    chunks->base.encoder_count = 1;
    *ret_exchange = &chunks->base;
    return STATUS_OK;
fail:
    chunks_destroy(&chunks->base);
    return status;
}

/* Tells the others which worker this is. */
static enum status chunks_start(struct exchange *exchange)
{
    const struct exchange_options *options = &exchange->options;
    enum status status = STATUS_OK;
    for (uint32_t process = 0; process < options->processes && status == STATUS_OK; process++) {
        if (process != options->process) {
            const struct lanes *lanes = &options->peers[process];
            bool is_far = lanes->count > 0 &&
                          !transport_is_near(options->channel->transport, lanes->peers[0]);
            status = exchange_say_hello(exchange, lanes, is_far);
        }
    }
    return status;
}

enum status chunks_send(struct chunks *chunks, uint32_t to, const struct message *message)
{
    struct exchange *exchange = &chunks->base;
    struct message chunk = *message;
    chunk.kind = MESSAGE_CHUNK;
    chunk.step = exchange->step;
    const struct lanes *lanes = &exchange->options.peers[to];
    assert(lanes->count > 0);
    chunks->given[to]++;
    if (transport_is_near(exchange->options.channel->transport, lanes->peers[0])) {
        return exchange_send(exchange, lanes->peers[0], &chunk); // no wire that segments share
    }
    exchange_count_send(exchange);
    return pacer_send(chunks->pacer, to, lanes, &chunk, exchange_count_read, exchange);
}

float *chunks_vector(const struct chunks *chunks, uint32_t rank)
{
    const struct exchange_options *options = &chunks->base.options;
    assert(rank_block_has(options->block, rank));
    return options->vectors[rank - options->rank];
}

float *chunks_add_up(const struct chunks *chunks, struct rank_block ranks, struct span span)
{
    float *sum = chunks_vector(chunks, ranks.first);
    for (uint32_t i = 1; i < ranks.count; i++) {
        const float *values = chunks_vector(chunks, ranks.first + i);
        vector_add(sum + span.offset, values + span.offset, span.count);
    }
    return sum;
}

void chunks_make_mean(const struct chunks *chunks, const float *sum, struct span span)
{
    float *grads = chunks->base.options.grads;
    if (sum != grads) {
        memcpy(grads + span.offset, sum + span.offset, span.count * sizeof(float));
    }
    vector_scale(grads + span.offset, chunks->base.mean_factor, span.count);
}

/* One process that carries all ranks: nothing travels. */
static void add_up_alone(const struct chunks *chunks, uint32_t bucket)
{
    const struct exchange_options *options = &chunks->base.options;
    for (uint32_t c = 0; options->world > 1 && c < options->world; c++) {
        struct span span = span_part(options->layout->buckets[bucket], options->world, c);
        float *sum = chunks_add_up(chunks, (struct rank_block){c, options->world - c}, span);
        for (uint32_t rank = 0; rank < c; rank++) {
            vector_add(sum + span.offset, chunks_vector(chunks, rank) + span.offset, span.count);
        }
        chunks_make_mean(chunks, sum, span);
    }
}

static enum status chunks_go_on(struct exchange *exchange)
{
    return pacer_go_on(chunks_of(exchange)->pacer);
}

bool chunks_has_room(const struct chunks *chunks, uint32_t bucket, uint64_t count)
{
    uint64_t whole = chunks->base.options.layout->buckets[bucket].count;
    return count <= whole - chunks->buckets[bucket].final_count;
}

void chunks_mark_final(struct chunks *chunks, uint32_t bucket, uint64_t count)
{
    assert(chunks_has_room(chunks, bucket, count));
    struct chunk_bucket *state = &chunks->buckets[bucket];
    state->final_count += count;
    if (state->final_count == chunks->base.options.layout->buckets[bucket].count) {
        state->final_count = 0;
        state->next_step = chunks->base.step + 1;
        state->is_ready = false;
        exchange_mark_done(&chunks->base, bucket);
    }
}

bool chunks_is_segment(struct span chunk, struct span span)
{
    if (span.offset < chunk.offset) {
        return false;
    }
    uint64_t start = span.offset - chunk.offset;
    if (start >= chunk.count || start % SEGMENT_FLOATS != 0) {
        return false;
    }
    struct span segment = ring_segment(chunk, SEGMENT_FLOATS, (uint32_t)(start / SEGMENT_FLOATS));
    return segment.count == span.count;
}

/* Handles held segments of this step and bucket whose turn has come. */
static enum status release_held(struct chunks *chunks, uint32_t bucket, bool *ret_has_taken)
{
    struct chunk_bucket *state = &chunks->buckets[bucket];
    struct chunk_held **link = &state->held;
    enum status status = STATUS_OK;
    *ret_has_taken = false;
    while (*link != NULL && status == STATUS_OK) {
        struct chunk_held *held = *link;
        // Reads the step once, because the trainer may begin the next one meanwhile. The turn of a
        // segment that came again after its bucket was done never comes.
        uint64_t ahead = held->message.step - chunks->base.step;
        enum chunk_fate fate = ahead <= 1 ? CHUNK_EARLY : CHUNK_REFUSED;
        if (ahead == 0 && state->is_ready) {
            status = state->algorithm->handle(chunks, &held->message, &fate);
        }
        if (status == STATUS_OK && fate == CHUNK_EARLY) {
            link = &held->next;
            continue;
        }
        *link = held->next;
        envelope_release(&held->envelope);
        held->next = chunks->held_free;
        chunks->held_free = held;
        *ret_has_taken = true;
    }
    return status;
}

/* A segment that was taken may let held ones go on. */
static enum status release_all(struct chunks *chunks, uint32_t bucket)
{
    bool has_taken = true;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && has_taken) {
        status = release_held(chunks, bucket, &has_taken);
    }
    return status;
}

static enum status chunks_ready(struct exchange *exchange, uint32_t bucket)
{
    struct chunks *chunks = chunks_of(exchange);
    if (exchange->options.processes == 1) {
        add_up_alone(chunks, bucket);
        exchange_mark_done(exchange, bucket);
        return STATUS_OK;
    }
    chunks->buckets[bucket].is_ready = true;
    enum status status = chunks->buckets[bucket].algorithm->begin(chunks, bucket);
    return status == STATUS_OK ? release_all(chunks, bucket) : status;
}

static enum status hold(struct chunks *chunks, const struct message *message,
                        struct envelope *envelope)
{
    struct chunk_held *held = chunks->held_free;
    if (held == NULL) {
        return STATUS_MALFORMED;
    }
    chunks->held_free = held->next;
    held->next = chunks->buckets[message->bucket].held;
    chunks->buckets[message->bucket].held = held;
    envelope_move(&held->envelope, envelope);
    held->message = *message;
    if (message->encoded != NULL) {
        held->message.encoded = held->envelope.payload;
    } else {
        held->message.values = held->envelope.payload;
    }
    return STATUS_OK;
}

/* Handles a segment that may be due. */
static enum status take_chunk(struct chunks *chunks, const struct message *message,
                              struct envelope *envelope)
{
    // Reads the step once, because the trainer may begin the next one meanwhile. Before the first
    // step `step` is UINT64_MAX, and its successor is 0.
    uint64_t step = chunks->base.step;
    bool is_now = message->step == step;
    struct chunk_bucket *bucket = &chunks->buckets[message->bucket];
    if ((!is_now && message->step != step + 1) || message->step < bucket->next_step) {
        return STATUS_MALFORMED;
    }
    enum chunk_fate fate = CHUNK_EARLY;
    if (is_now && bucket->is_ready) {
        enum status status = bucket->algorithm->handle(chunks, message, &fate);
        if (status != STATUS_OK || fate == CHUNK_REFUSED) {
            return status != STATUS_OK ? status : STATUS_MALFORMED;
        }
    }
    return fate == CHUNK_EARLY ? hold(chunks, message, envelope)
                               : release_all(chunks, message->bucket);
}

static enum status chunks_deliver(struct exchange *exchange, const struct message *message,
                                  struct envelope *envelope)
{
    struct chunks *chunks = chunks_of(exchange);
    const struct exchange_options *options = &exchange->options;
    if (message->kind == MESSAGE_HELLO) {
        bool is_new;
        return message->rank != options->rank
                   ? callers_meet(options->callers, message, envelope->peer, &is_new)
                   : STATUS_MALFORMED;
    }
    if (message->rank < options->world &&
        !callers_are(options->callers, message->rank, envelope->peer)) {
        return STATUS_DENIED;
    }
    if (message->kind != MESSAGE_CHUNK || options->processes == 1 ||
        message->rank >= options->world || message->bucket >= options->layout->bucket_count ||
        !chunks->buckets[message->bucket].algorithm->is_expected(chunks, message)) {
        return STATUS_MALFORMED;
    }
    uint32_t rank = message->rank;
    enum status status = take_chunk(chunks, message, envelope);
    chunks->taken[carriers_process(options->carriers, rank)] += status == STATUS_OK;
    return status;
}

/* The trainer has nothing else to do once backward has completed every bucket. */
static bool chunks_awaits(const struct exchange *exchange, struct wire_wait *ret_wait)
{
    const struct chunks *chunks = (const struct chunks *)exchange;
    uint64_t step = exchange->step;
    uint32_t first = chunks->bucket_count; // that is not done
    for (uint32_t i = chunks->bucket_count; i > 0; i--) {
        const struct chunk_bucket *bucket = &chunks->buckets[i - 1];
        bool is_done = bucket->next_step == step + 1;
        if (!is_done && !bucket->is_ready) {
            return false;
        }
        first = is_done ? first : i - 1;
    }
    if (first == chunks->bucket_count) {
        return false;
    }
    uint32_t process = chunks->buckets[first].algorithm->awaits(chunks, first);
    *ret_wait = (struct wire_wait){.role = ROLE_WORKER,
                                   .index = process,
                                   .what = WIRE_WAIT_CHUNK,
                                   .taken = chunks->taken[process],
                                   .given_count = exchange->options.processes,
                                   .given = chunks->given};
    return true;
}

static const struct exchange_message_ops chunks_message_ops = {
    .start = chunks_start,
    .deliver = chunks_deliver,
    .go_on = chunks_go_on,
    .awaits = chunks_awaits,
};

const struct exchange_strategy exchange_chunks = {
    .ops =
        {
            .delivers = EXCHANGE_GRADIENTS,
            .message_ops = &chunks_message_ops,
            .ready = chunks_ready,
            .destroy = chunks_destroy,
        },
    .create = chunks_create,
};
