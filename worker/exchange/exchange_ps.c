/* Push and pull: gradients to the shards, new parameters back.
 *
 * Part k of K of every bucket belongs to shard k. As soon as backward has completed a bucket its
 * parts are pushed, and the parameters of the next step are asked for; each shard answers when its
 * consistency rule allows. Parameters go straight to their place: by then backward has no more use
 * for those of this bucket. (Where workers are unsynchronised, shards answer all parts at once,
 * after the last push. Shards that say their version have to agree on it: those that are behind are
 * asked again.)
 *
 * Flow control: over a network no more than a window of bytes is on its way to a shard that has not
 * said that it has taken them. Of what is ready the bucket that the next forward pass needs first,
 * the last one, is pushed next, also before what is on its way but has not left (pacer.h). The
 * window also keeps workers together: on a link that all share each gets as much of it as the
 * others. */
#include "common/channel/pacer.h"
#include "worker/exchange/encoder.h"
#include "worker/exchange/strategies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Enough for a link to stay busy while TAKEN comes. In bytes.
#define WINDOW_BYTES (UINT64_C(1) << 20)

enum push_state { PUSH_WAITS, PUSH_TRAVELS, PUSH_TAKEN };

/* Pushes to one shard. */
struct ps_shard {
    bool is_far;
    uint64_t window, travelling; // bytes; one push may go beyond the window
    uint32_t waiting_count;      // buckets that are ready and not pushed
    unsigned char *states;       // (bucket_count) enum push_state, of this step; owned
    bool *is_pulled;             // (bucket_count) asked for and not here yet; owned
    uint64_t params_version;     // of the parameters that came last; 0: it does not say
    bool is_late;                // it has dropped the last gradient
};

struct ps {
    struct exchange base;
    struct encoder encoder;
    struct pacer *pacer;     // of pushes over a network
    struct ps_shard *shards; // (shard_count), owned
    uint32_t shard_count;
    uint32_t ready_count;     // buckets of this step that backward has completed, in their order
    uint64_t *missing_counts; // per bucket: floats of the next step's parameters still to come
};

static struct ps *ps_of(struct exchange *exchange)
{
    return (struct ps *)exchange;
}

static void ps_destroy(struct exchange *exchange)
{
    struct ps *ps = ps_of(exchange);
    encoder_destroy(&ps->encoder);
    pacer_destroy(ps->pacer);
    for (uint32_t i = 0; ps->shards != NULL && i < ps->shard_count; i++) {
        free(ps->shards[i].states);
        free(ps->shards[i].is_pulled);
    }
    free(ps->shards);
    free(ps->missing_counts);
    free(ps);
}

static uint64_t bytes_of(struct span part)
{
    return part.count * sizeof(float);
}

/* Two pushes may always be on their way: one is taken while the other comes. */
static uint64_t window_of(const struct exchange_options *options, uint32_t shard)
{
    uint64_t window = WINDOW_BYTES;
    for (uint32_t i = 0; i < options->layout->bucket_count; i++) {
        uint64_t bytes =
            bytes_of(span_part(options->layout->buckets[i], options->peer_count, shard));
        window = bytes > window ? bytes : window;
    }
    return window;
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
    for (uint32_t i = 0; i < ps->shard_count; i++) {
        struct ps_shard *shard = &ps->shards[i];
        // On one host nothing travels.
        const struct lanes *lanes = &options->peers[i];
        shard->is_far = !transport_is_near(options->channel->transport, lanes->peers[0]);
        shard->window = shard->is_far ? lanes->count * window_of(options, i) : UINT64_MAX;
        shard->states = calloc(bucket_count, sizeof(*shard->states));
        shard->is_pulled = calloc(bucket_count, sizeof(*shard->is_pulled));
        if (shard->states == NULL || shard->is_pulled == NULL) {
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
    if (status == STATUS_OK) {
        status = encoder_create(&options->codec, options->layout, &ps->encoder);
    }
    if (status == STATUS_OK) {
        status =
            pacer_create(options->channel, options->peer_count, PACER_LANE_OF_BUCKET, &ps->pacer);
    }
    if (status != STATUS_OK) {
        ps_destroy(&ps->base);
        return status;
    }
    *ret_exchange = &ps->base;
    return STATUS_OK;
}

/* By the lane of its bucket: a shard has to have the seed before the push. */
static enum status send_to_shard(struct exchange *exchange, uint32_t shard,
                                 const struct message *message)
{
    const struct exchange_options *options = &exchange->options;
    uint64_t peer = lanes_of_bucket(&options->peers[shard], message->bucket);
    return channel_send(options->channel, peer, message, NULL, NULL);
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
        enum status status = send_to_shard(exchange, shard, &seed);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* Rank 0 gives the shards what they begin with; on every worker it is the same. */
static enum status send_seeds(struct exchange *exchange, uint32_t shard)
{
    const struct exchange_options *options = &exchange->options;
    enum status status = send_seed(exchange, shard, 0, options->params);
    for (uint32_t i = 0; i < options->state_count && status == STATUS_OK; i++) {
        status = send_seed(exchange, shard, 1 + i, options->states[i]);
    }
    return status;
}

static struct span part_of(const struct exchange *exchange, uint32_t bucket, uint32_t shard)
{
    const struct exchange_options *options = &exchange->options;
    return span_part(options->layout->buckets[bucket], options->peer_count, shard);
}

/* Asks a shard for its part of a bucket: of the step that comes, or of a mark (0: none). */
static enum status send_pull(struct exchange *exchange, uint32_t bucket, uint32_t shard,
                             uint64_t mark, uint64_t version)
{
    const struct exchange_options *options = &exchange->options;
    struct message pull = {
        .kind = MESSAGE_PULL,
        .rank = options->rank,
        .step = exchange->step + 1, // the first one is 0: before it, step is UINT64_MAX
        .mark = mark,
        .bucket = bucket,
        .vector = exchange->pull_vector,
        .params_version = version,
        .span = part_of(exchange, bucket, shard),
    };
    ps_of(exchange)->shards[shard].is_pulled[bucket] = true;
    return send_to_shard(exchange, shard, &pull);
}

/* Asks a shard for all that it has: of a version, 0: any, or a later one. */
static enum status pull_shard(struct exchange *exchange, uint32_t shard, uint64_t version)
{
    enum status status = STATUS_OK;
    uint32_t bucket_count = exchange->options.layout->bucket_count;
    for (uint32_t bucket = 0; bucket < bucket_count && status == STATUS_OK; bucket++) {
        struct span part = part_of(exchange, bucket, shard);
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
        status = pull_shard(exchange, shard, 0);
    }
    return status;
}

static enum status ps_start(struct exchange *exchange)
{
    const struct exchange_options *options = &exchange->options;
    for (uint32_t shard = 0; shard < options->peer_count; shard++) {
        enum status status = exchange_say_hello(exchange, &options->peers[shard],
                                                ps_of(exchange)->shards[shard].is_far);
        if (status == STATUS_OK && options->rank == 0) {
            status = send_seeds(exchange, shard);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    // A seeded order may give a later version to the first gradient already.
    return exchange->options.is_unsynchronised ? ps_pull(exchange) : STATUS_OK;
}

/* The pull goes first and waits at the shard: so an unsynchronised worker reads in the very moment
 * in which its gradient is applied, and no update of others falls between the two. */
static enum status push_and_pull(struct exchange *exchange, uint32_t bucket, uint32_t shard,
                                 struct span part)
{
    const struct exchange_options *options = &exchange->options;
    struct message push = {
        .kind = MESSAGE_PUSH,
        .rank = options->rank,
        .step = exchange->step,
        .bucket = bucket,
        .span = part,
    };
    encoder_encode(&ps_of(exchange)->encoder, options->grads, &push);
    enum status status = send_pull(exchange, bucket, shard, 0, 0);
    const struct lanes *lanes = &options->peers[shard];
    if (status != STATUS_OK) {
        return status;
    }
    if (!ps_of(exchange)->shards[shard].is_far) {
        return exchange_send(exchange, lanes_of_bucket(lanes, bucket), &push);
    }
    exchange_count_send(exchange);
    return pacer_send(ps_of(exchange)->pacer, shard, lanes, &push, exchange_count_read, exchange);
}

static enum status ps_go_on(struct exchange *exchange)
{
    return pacer_go_on(ps_of(exchange)->pacer);
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

/* Pushes to a shard what is ready, as far as its window allows. */
static enum status push_on(struct exchange *exchange, uint32_t shard)
{
    struct ps *ps = ps_of(exchange);
    struct ps_shard *state = &ps->shards[shard];
    enum status status = STATUS_OK;
    while (state->waiting_count > 0 && state->travelling <= state->window && status == STATUS_OK) {
        uint32_t bucket = next_push(ps, state);
        struct span part = part_of(exchange, bucket, shard);
        state->waiting_count--;
        state->states[bucket] = PUSH_TRAVELS;
        if (part.count > 0) {
            state->travelling += bytes_of(part);
            status = push_and_pull(exchange, bucket, shard, part);
        }
    }
    return status;
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
        status = push_on(exchange, shard);
    }
    return status;
}

/* A shard has taken a push: there is room for another. */
static enum status take_credit(struct exchange *exchange, const struct message *message,
                               uint32_t shard)
{
    struct ps *ps = ps_of(exchange);
    struct ps_shard *state = &ps->shards[shard];
    uint64_t step = exchange->step; // the trainer may begin the next one: the parameters have come
    if (message->step != step || ps->ready_count == 0) {
        return message->step < step ? STATUS_OK : STATUS_MALFORMED;
    }
    if (message->bucket >= ps->ready_count || state->states[message->bucket] != PUSH_TRAVELS) {
        return STATUS_MALFORMED;
    }
    state->states[message->bucket] = PUSH_TAKEN;
    state->travelling -= bytes_of(part_of(exchange, message->bucket, shard));
    return push_on(exchange, shard);
}

static const struct ps *ps_of_const(const struct exchange *exchange)
{
    return (const struct ps *)exchange;
}

/* Whether these are parameters that were asked for and have not come yet. */
static bool is_expected(const struct exchange *exchange, const struct message *message,
                        uint32_t shard)
{
    struct span part = part_of(exchange, message->bucket, shard);
    return part.offset == message->span.offset && part.count == message->span.count &&
           ps_of_const(exchange)->shards[shard].is_pulled[message->bucket] &&
           message->step == exchange->step + 1 && message->vector == exchange->pull_vector &&
           (exchange->pull_mark == 0 || message->mark == exchange->pull_mark) &&
           (message->outcome != NULL || message->vector > 0 ||
            !exchange->options.is_unsynchronised);
}

/* Every part that was asked for has come. */
static bool has_everything(const struct exchange *exchange)
{
    for (uint32_t bucket = 0; bucket < exchange->options.layout->bucket_count; bucket++) {
        if (ps_of_const(exchange)->missing_counts[bucket] > 0) {
            return false;
        }
    }
    return true;
}

/* Which of the shards have dropped the last gradient. */
static void note_late(struct exchange *exchange)
{
    const struct ps *ps = ps_of_const(exchange);
    uint32_t late = 0;
    for (uint32_t i = 0; i < ps->shard_count; i++) {
        late += ps->shards[i].is_late;
    }
    exchange_note_late(exchange, (double)late / ps->shard_count);
}

/* Where workers are unsynchronised: asks shards that are behind the newest again, until all are of
 * one version. None asks for what will not be: N - B workers have pushed gradients of the version
 * before to all shards. */
static enum status agree_on_version(struct exchange *exchange)
{
    const struct ps *ps = ps_of(exchange);
    enum status status = STATUS_OK;
    uint64_t newest = 0;
    for (uint32_t i = 0; i < ps->shard_count; i++) {
        uint64_t version = ps->shards[i].params_version;
        newest = version > newest ? version : newest;
    }
    for (uint32_t i = 0; i < ps->shard_count && status == STATUS_OK; i++) {
        if (ps->shards[i].params_version < newest) {
            status = pull_shard(exchange, i, newest);
        }
    }
    if (status == STATUS_OK && has_everything(exchange)) {
        note_late(exchange);
        for (uint32_t bucket = 0; bucket < exchange->options.layout->bucket_count; bucket++) {
            exchange_mark_done(exchange, bucket);
        }
    }
    return status;
}

static enum status take_params(struct exchange *exchange, const struct message *message,
                               uint32_t shard)
{
    struct ps_shard *state = &ps_of(exchange)->shards[shard];
    state->is_pulled[message->bucket] = false;
    state->params_version = message->params_version;
    uint64_t *missing_count = &ps_of(exchange)->missing_counts[message->bucket];
    float *target = message->vector > 0 ? exchange->pull_target : exchange->options.params;
    if (message->encoded == NULL) {
        memcpy(target + message->span.offset, message->values, message->span.count * sizeof(float));
    } else if (message->vector > 0 || exchange->options.is_unsynchronised ||
               encoder_add(&ps_of(exchange)->encoder, message, target) != STATUS_OK) {
        return STATUS_MALFORMED; // by how much parameters have changed: not what was asked for
    }
    *missing_count -= message->span.count;
    if (exchange->options.is_unsynchronised && exchange->pull_mark == 0 && message->vector == 0) {
        exchange_note_progress(exchange, message);
        state->is_late = message->outcome->is_late;
    }
    if (*missing_count > 0) {
        return STATUS_OK;
    }
    if (exchange->options.is_unsynchronised) {
        return has_everything(exchange) ? agree_on_version(exchange) : STATUS_OK;
    }
    exchange_mark_done(exchange, message->bucket);
    return STATUS_OK;
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
        return take_credit(exchange, message, shard);
    }
    return message->kind == MESSAGE_PARAMS && is_expected(exchange, message, shard)
               ? take_params(exchange, message, shard)
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
            .deliver = ps_deliver,
            .destroy = ps_destroy,
        },
    .create = ps_create,
};
