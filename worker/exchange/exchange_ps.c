/* Pushes gradients to the shards, and pulls new parameters.
 *
 * Part k of K of every bucket belongs to shard k. As soon as backward has completed a bucket, its
 * parts are pushed, and the parameters of the next step are requested. Each shard answers when its
 * consistency rule allows. Parameters go straight to their place, because backward no longer needs
 * this bucket's. (Unsynchronised workers get all parts at once, after their last push. Shards that
 * say their version have to agree on it; those that are behind are asked again.)
 *
 * Flow control: over a network, at most a window of bytes is under way to a shard that has not yet
 * taken them. Of the ready buckets, the one that the next forward pass needs first, which is the
 * last, is pushed next, even ahead of what is queued but has not left (pacer.h). The window also
 * keeps workers together: on a link that all share, each gets the same part of it. */
#include "worker/exchange/exchange_ps_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Enough bytes to keep a link busy until TAKEN comes.
#define WINDOW_BYTES (UINT64_C(1) << 20)

static void ps_destroy(struct exchange *exchange)
{
    struct ps *ps = ps_of(exchange);
    for (uint32_t i = 0; ps->encoders != NULL && i < ps->rank_count; i++) {
        encoder_destroy(&ps->encoders[i]);
    }
    free(ps->encoders);
    pacer_destroy(ps->pacer);
    for (uint32_t i = 0; ps->shards != NULL && i < ps->shard_count; i++) {
        free(ps->shards[i].states);
        free(ps->shards[i].travellers);
        free(ps->shards[i].is_pulled);
    }
    free(ps->shards);
    free(ps->missing_counts);
    free(ps);
}

/* Two pushes of each rank may always be on their way: one is taken while the other comes. */
static uint64_t window_of(const struct exchange_options *options, uint32_t shard)
{
    uint64_t window = WINDOW_BYTES;
    for (uint32_t i = 0; i < options->layout->bucket_count; i++) {
        uint64_t bytes =
            ps_bytes_of(span_part(options->layout->buckets[i], options->peer_count, shard));
        window = bytes > window ? bytes : window;
    }
    return options->block.count * window;
}

static enum status create_encoders(struct ps *ps, const struct exchange_options *options)
{
    ps->rank_count = options->block.count;
    ps->encoders = calloc(ps->rank_count, sizeof(*ps->encoders));
    enum status status = ps->encoders != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < ps->rank_count && status == STATUS_OK; i++) {
        status = encoder_create(&options->codec, options->layout, &ps->encoders[i]);
    }
    return status;
}

static enum status create_shards(struct ps *ps, const struct exchange_options *options)
{
    uint32_t bucket_count = options->layout->bucket_count;
    ps->missing_counts = calloc(bucket_count, sizeof(*ps->missing_counts));
    ps->shards = calloc((size_t)options->peer_count + 1, sizeof(*ps->shards));
    if (ps->missing_counts == NULL || ps->shards == NULL) {
        return STATUS_NO_MEMORY;
    }
    ps->shard_count = options->peer_count;
    ps->is_open = options->device == NULL;
    for (uint32_t i = 0; i < ps->shard_count; i++) {
        struct ps_shard *shard = &ps->shards[i];
        // On one host nothing travels.
        const struct lanes *lanes = &options->peers[i];
        shard->is_far = !transport_is_near(options->channel->transport, lanes->peers[0]);
        shard->window = shard->is_far ? lanes->count * window_of(options, i) : UINT64_MAX;
        shard->states = calloc(bucket_count, sizeof(*shard->states));
        shard->travellers = calloc(bucket_count, sizeof(*shard->travellers));
        shard->is_pulled = calloc(bucket_count, sizeof(*shard->is_pulled));
        if (shard->states == NULL || shard->travellers == NULL || shard->is_pulled == NULL) {
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

static enum status ps_create(const struct exchange_options *options, struct exchange **ret_exchange)
{
    struct ps *ps = calloc(1, sizeof(*ps));
    if (ps == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = create_shards(ps, options);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = create_encoders(ps, options);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = pacer_create(options->channel, options->peer_count, PACER_LANE_OF_BUCKET, &ps->pacer);
    if (status != STATUS_OK) {
        goto fail;
    }
    ps->base.encoders = ps->encoders;
    ps->base.encoder_count = ps->rank_count;
    *ret_exchange = &ps->base;
    return STATUS_OK;
fail:
    ps_destroy(&ps->base);
    return status;
}

/* Sends on the bucket's lane, because a shard has to have the seed before the push. */
static enum status send_to_shard(struct exchange *exchange, uint32_t shard,
                                 const struct message *message)
{
    const struct exchange_options *options = &exchange->options;
    uint64_t peer = lanes_of_bucket(&options->peers[shard], message->bucket);
    return channel_send(options->channel, peer, message, NULL, NULL);
}

static enum status lend_to_shard(struct exchange *exchange, uint32_t shard,
                                 const struct message *message)
{
    return exchange_send(
        exchange, lanes_of_bucket(&exchange->options.peers[shard], message->bucket), message);
}

/* Sends a shard its part of one vector: the parameters, or a state of the optimizer. */
static enum status send_seed(struct exchange *exchange, uint32_t shard, uint32_t vector,
                             const float *values)
{
    const struct exchange_options *options = &exchange->options;
    for (uint32_t bucket = 0; bucket < options->layout->bucket_count; bucket++) {
        struct span part = span_part(options->layout->buckets[bucket], options->peer_count, shard);
        if (part.count == 0) {
            continue;
        }
        struct message seed = {
            .kind = MESSAGE_SEED,
            .rank = options->rank,
            .bucket = bucket,
            .vector = vector,
            .span = part,
            .values = values + part.offset,
        };
        enum status status = options->device == NULL ? send_to_shard(exchange, shard, &seed)
                                                     : lend_to_shard(exchange, shard, &seed);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* Gives the shards what they begin with. Rank 0 does this; every worker has the same. */
static enum status send_seeds(struct exchange *exchange, uint32_t shard)
{
    const struct exchange_options *options = &exchange->options;
    enum status status = send_seed(exchange, shard, 0, options->params);
    for (uint32_t i = 0; i < options->state_count && status == STATUS_OK; i++) {
        status = send_seed(exchange, shard, 1 + i, options->states[i]);
    }
    return status;
}

/* Asks a shard for its part of a bucket: for the next step, or of a mark (0: none). */
static enum status send_pull(struct exchange *exchange, uint32_t bucket, uint32_t shard,
                             uint64_t mark, uint64_t version)
{
    const struct exchange_turn next = ps_next_turn(exchange);
    struct message pull = {
        .kind = MESSAGE_PULL,
        .rank = exchange->options.rank + next.index,
        .step = next.step,
        .mark = mark,
        .bucket = bucket,
        .vector = exchange->pull_vector,
        .params_version = version,
        .span = ps_part_of(exchange, bucket, shard),
    };
    ps_of(exchange)->shards[shard].is_pulled[bucket] = true;
    return send_to_shard(exchange, shard, &pull);
}

enum status ps_pull_shard(struct exchange *exchange, uint32_t shard, uint64_t version)
{
    enum status status = STATUS_OK;
    uint32_t bucket_count = exchange->options.layout->bucket_count;
    for (uint32_t bucket = 0; bucket < bucket_count && status == STATUS_OK; bucket++) {
        struct span part = ps_part_of(exchange, bucket, shard);
        if (part.count > 0) {
            ps_of(exchange)->missing_counts[bucket] += part.count;
            status = send_pull(exchange, bucket, shard, exchange->pull_mark, version);
        }
    }
    return status;
}

/* Asks for everything. */
static enum status ps_pull(struct exchange *exchange)
{
    const struct exchange_options *options = &exchange->options;
    enum status status = STATUS_OK;
    memset(ps_of(exchange)->missing_counts, 0,
           options->layout->bucket_count * sizeof(*ps_of(exchange)->missing_counts));
    for (uint32_t shard = 0; shard < options->peer_count && status == STATUS_OK; shard++) {
        status = ps_pull_shard(exchange, shard, 0);
    }
    return status;
}

/* Sends what shards need before anything else. */
static enum status send_first(struct exchange *exchange)
{
    const struct exchange_options *options = &exchange->options;
    enum status status = STATUS_OK;
    bool seeds = options->rank == 0 && !options->is_restored;
    for (uint32_t shard = 0; seeds && shard < options->peer_count; shard++) {
        status = send_seeds(exchange, shard);
        if (status != STATUS_OK) {
            return status;
        }
    }
    // A seeded order may already give a later version to the first gradient.
    return options->is_unsynchronised ? ps_pull(exchange) : STATUS_OK;
}

static enum status ps_start(struct exchange *exchange)
{
    const struct exchange_options *options = &exchange->options;
    for (uint32_t shard = 0; shard < options->peer_count; shard++) {
        enum status status = exchange_say_hello(exchange, &options->peers[shard],
                                                ps_of(exchange)->shards[shard].is_far);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return ps_of(exchange)->is_open ? send_first(exchange) : STATUS_OK;
}

/* Of the rank whose turn it is, as a step of its own; or of the index-th that this process carries,
 * where each is in the same step. */
static enum status send_push(struct exchange *exchange, uint32_t bucket, uint32_t shard,
                             uint32_t index)
{
    const struct exchange_options *options = &exchange->options;
    const struct lanes *lanes = &options->peers[shard];
    struct exchange_turn turn = exchange_turn(exchange, exchange->step);
    const float *grads = options->grads;
    if (!options->is_unsynchronised) {
        turn.index = index;
        grads = options->vectors[index];
    }
    struct message push = {
        .kind = MESSAGE_PUSH,
        .rank = options->rank + turn.index,
        .step = turn.step,
        .bucket = bucket,
        .span = ps_part_of(exchange, bucket, shard),
    };
    encoder_encode(&ps_of(exchange)->encoders[turn.index], grads, &push);
    if (!ps_of(exchange)->shards[shard].is_far) {
        return exchange_send(exchange, lanes_of_bucket(lanes, bucket), &push);
    }
    exchange_count_send(exchange);
    return pacer_send(ps_of(exchange)->pacer, shard, lanes, &push, exchange_count_read, exchange);
}

/* The pull goes first and waits at the shard: so an unsynchronised worker reads in the very moment
 * in which its gradient is applied, and no update of others falls between the two. A process that
 * carries several ranks pushes for each, and pulls once, unless they take turns. */
static enum status push_and_pull(struct exchange *exchange, uint32_t bucket, uint32_t shard)
{
    uint32_t count = ps_push_count(exchange);
    enum status status = send_pull(exchange, bucket, shard, 0, 0);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = send_push(exchange, bucket, shard, i);
    }
    return status;
}

/* The last of the buckets that are ready and wait. */
static uint32_t next_push(const struct ps *ps, const struct ps_shard *shard)
{
    uint32_t bucket = ps->ready_count;
    do {
        assert(bucket > 0);
        bucket--;
    } while (shard->states[bucket] != PUSH_WAITS);
    return bucket;
}

enum status ps_push_on(struct exchange *exchange, uint32_t shard)
{
    struct ps *ps = ps_of(exchange);
    struct ps_shard *state = &ps->shards[shard];
    enum status status = STATUS_OK;
    while (ps->is_open && state->waiting_count > 0 && state->travelling <= state->window &&
           status == STATUS_OK) {
        uint32_t bucket = next_push(ps, state);
        struct span part = ps_part_of(exchange, bucket, shard);
        state->waiting_count--;
        state->states[bucket] = PUSH_TRAVELS;
        if (part.count > 0) {
            state->travellers[bucket] = ps_push_count(exchange);
            state->travelling += ps_push_count(exchange) * ps_bytes_of(part);
            status = push_and_pull(exchange, bucket, shard);
        }
    }
    return status;
}

/* Whether all shards and this worker can reach each other's memory. */
static bool reaches_shards(const struct exchange *exchange)
{
    const struct exchange_options *options = &exchange->options;
    bool reaches = true;
    for (uint32_t shard = 0; shard < options->peer_count; shard++) {
        uint64_t peer = options->peers[shard].peers[0];
        reaches = reaches && channel_lends(options->channel, peer) &&
                  channel_has_view(options->channel, peer);
    }
    return reaches;
}

static enum status open_shards(struct exchange *exchange)
{
    struct ps *ps = ps_of(exchange);
    ps->is_open = reaches_shards(exchange);
    if (!ps->is_open) {
        return STATUS_OK; // the channel reports it if they never will
    }
    enum status status = send_first(exchange);
    for (uint32_t shard = 0; shard < ps->shard_count && status == STATUS_OK; shard++) {
        status = ps_push_on(exchange, shard);
    }
    return status;
}

static enum status ps_go_on(struct exchange *exchange)
{
    struct ps *ps = ps_of(exchange);
    enum status status = ps->is_open ? STATUS_OK : open_shards(exchange);
    return status == STATUS_OK ? pacer_go_on(ps->pacer) : status;
}

static enum status ps_ready(struct exchange *exchange, uint32_t bucket)
{
    const struct exchange_options *options = &exchange->options;
    struct ps *ps = ps_of(exchange);
    if (bucket == 0) {
        ps->ready_count = 0;
    }
    assert(bucket == ps->ready_count);
    ps->missing_counts[bucket] = options->layout->buckets[bucket].count;
    ps->ready_count++;
    enum status status = STATUS_OK;
    for (uint32_t shard = 0; shard < options->peer_count && status == STATUS_OK; shard++) {
        if (bucket == 0) {
            ps->shards[shard].waiting_count = 0;
            ps->shards[shard].travelling = 0;
        }
        ps->shards[shard].states[bucket] = PUSH_WAITS;
        ps->shards[shard].waiting_count++;
        status = ps_push_on(exchange, shard);
    }
    return status;
}

static enum status ps_deliver(struct exchange *exchange, const struct message *message,
                              struct envelope *envelope)
{
    const struct exchange_options *options = &exchange->options;
    uint32_t shard = 0;
    while (shard < options->peer_count && !lanes_have(&options->peers[shard], envelope->peer)) {
        shard++;
    }
    if (shard == options->peer_count || message->bucket >= options->layout->bucket_count) {
        return STATUS_MALFORMED;
    }
    if (message->kind == MESSAGE_TAKEN) {
        return ps_take_credit(exchange, message, shard);
    }
    return message->kind == MESSAGE_PARAMS && ps_expects(exchange, message, shard)
               ? ps_take_params(exchange, message, shard)
               : STATUS_MALFORMED;
}

const struct exchange_strategy exchange_ps = {
    .ops =
        {
            .delivers = EXCHANGE_PARAMS,
            .start = ps_start,
            .ready = ps_ready,
            .go_on = ps_go_on,
            .pull = ps_pull,
            .awaits = ps_awaits,
            .deliver = ps_deliver,
            .destroy = ps_destroy,
        },
    .create = ps_create,
};
