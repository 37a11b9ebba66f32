/* Makes an exchange with shards, and sends them what they need before the first push. */
#include "worker/exchange/exchange_ps_state.h"

#include <assert.h>
#include <stdlib.h>

// Enough bytes to keep a link busy until TAKEN comes.
#define WINDOW_BYTES (UINT64_C(1) << 20)

void ps_destroy(struct exchange *exchange)
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
    free(ps->given);
    delivered_destroy(ps->delivered);
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
    ps->given = calloc((size_t)options->peer_count + 1, sizeof(*ps->given));
    if (ps->missing_counts == NULL || ps->shards == NULL || ps->given == NULL) {
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

static enum status create_delivered(struct ps *ps, const struct exchange_options *options)
{
    if (options->watched_count == 0 || options->takes_means) {
        return STATUS_OK;
    }
    assert(options->device == NULL);
    return delivered_create(options->layout, options->peer_count, options->watched,
                            options->watched_count, options->params, &ps->delivered);
}

enum status ps_create(const struct exchange_options *options, struct exchange **ret_exchange)
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
    status = create_delivered(ps, options);
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
        ps_of(exchange)->given[shard]++;
        enum status status = options->device == NULL ? ps_send_to_shard(exchange, shard, &seed)
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

/* Sends what shards need before anything else. */
static enum status send_first(struct exchange *exchange)
{
    const struct exchange_options *options = &exchange->options;
    enum status status = STATUS_OK;
    bool seeds = options->rank == 0 && !options->is_restored && !options->takes_means;
    for (uint32_t shard = 0; seeds && shard < options->peer_count; shard++) {
        status = send_seeds(exchange, shard);
        if (status != STATUS_OK) {
            return status;
        }
    }
    // A seeded order may already give a later version to the first gradient.
    return options->is_unsynchronised ? ps_pull(exchange) : STATUS_OK;
}

enum status ps_start(struct exchange *exchange)
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

enum status ps_open(struct exchange *exchange)
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
