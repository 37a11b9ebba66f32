/* Pushes gradients to the shards, pulls new parameters, and takes them.
 *
 * Part k of K of every bucket belongs to shard k. As soon as backward has completed a bucket, its
 * parts are pushed, and the parameters of the next step are requested. Each shard answers when its
 * consistency rule allows. Parameters go straight to their place, because backward no longer needs
 * this bucket's. (Unsynchronised workers get all parts at once, after their last push. Shards that
 * say their version have to agree on it; those that are behind are asked again.)
 *
 * Where servers hand back means, those go to the place of the gradients: a part's mean comes after
 * its shard has read this worker's gradients of that part.
 *
 * Flow control: over a network, at most a window of bytes is under way to a shard that has not yet
 * taken them. Of the ready buckets, the one that the next forward pass needs first, which is the
 * last, is pushed next, even ahead of what is queued but has not left (pacer.h). The window also
 * keeps workers together: on a link that all share, each gets the same part of it. */
#include "common/vector/vector_device.h"
#include "worker/exchange/exchange_ps_state.h"

#include <assert.h>
#include <string.h>

enum status ps_send_to_shard(struct exchange *exchange, uint32_t shard,
                             const struct message *message)
{
    const struct exchange_options *options = &exchange->options;
    uint64_t peer = lanes_of_bucket(&options->peers[shard], message->bucket);
    return channel_send(options->channel, peer, message, NULL, NULL);
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
    ps_of(exchange)->given[shard]++;
    return ps_send_to_shard(exchange, shard, &pull);
}

static enum status pull_shard(struct exchange *exchange, uint32_t shard, uint64_t version)
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
enum status ps_pull(struct exchange *exchange)
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
        .groups = exchange->groups,
        .span = ps_part_of(exchange, bucket, shard),
    };
    encoder_encode(&ps_of(exchange)->encoders[turn.index], grads, &push);
    ps_of(exchange)->given[shard]++;
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

static enum status ps_go_on(struct exchange *exchange)
{
    struct ps *ps = ps_of(exchange);
    enum status status = ps->is_open ? STATUS_OK : ps_open(exchange);
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

/* A shard has taken a push, so there is room for another. */
static enum status take_credit(struct exchange *exchange, const struct message *message,
                               uint32_t shard)
{
    struct ps *ps = ps_of(exchange);
    struct ps_shard *state = &ps->shards[shard];
    // The trainer may begin the next one: the parameters have come.
    const struct exchange_turn now = exchange_turn(exchange, exchange->step);
    uint32_t rank = exchange->options.rank + now.index;
    bool takes_turns = exchange_turns(exchange) > 1;
    bool is_old = message->step < now.step ||
                  (message->step == now.step && takes_turns && message->rank < rank);
    bool is_now = message->step == now.step && (!takes_turns || message->rank == rank);
    if (!is_now || ps->ready_count == 0) {
        return is_old ? STATUS_OK : STATUS_MALFORMED;
    }
    if (message->bucket >= ps->ready_count || state->states[message->bucket] != PUSH_TRAVELS) {
        return STATUS_MALFORMED;
    }
    if (--state->travellers[message->bucket] == 0) {
        state->states[message->bucket] = PUSH_TAKEN;
    }
    state->travelling -= ps_bytes_of(ps_part_of(exchange, message->bucket, shard));
    return ps_push_on(exchange, shard);
}

static const struct ps *ps_of_const(const struct exchange *exchange)
{
    return (const struct ps *)exchange;
}

/* Whether these parameters were requested and have not come yet. */
static bool expects(const struct exchange *exchange, const struct message *message, uint32_t shard)
{
    struct span part = ps_part_of(exchange, message->bucket, shard);
    const struct exchange_turn next = ps_next_turn(exchange);
    return part.offset == message->span.offset && part.count == message->span.count &&
           ps_of_const(exchange)->shards[shard].is_pulled[message->bucket] &&
           message->step == next.step && message->rank == exchange->options.rank + next.index &&
           message->vector == exchange->pull_vector &&
           (exchange->pull_mark == 0 || message->mark == exchange->pull_mark) &&
           (message->outcome != NULL || message->vector > 0 ||
            !exchange->options.is_unsynchronised);
}

/* Handles that every requested part has come. */
static bool has_everything(const struct exchange *exchange)
{
    for (uint32_t bucket = 0; bucket < exchange->options.layout->bucket_count; bucket++) {
        if (ps_of_const(exchange)->missing_counts[bucket] > 0) {
            return false;
        }
    }
    return true;
}

/* Notes how many shards dropped the last gradient. */
static void note_late(struct exchange *exchange)
{
    const struct ps *ps = ps_of_const(exchange);
    uint32_t late = 0;
    for (uint32_t i = 0; i < ps->shard_count; i++) {
        late += ps->shards[i].is_late;
    }
    exchange_note_late(exchange, (double)late / ps->shard_count);
}

/* Asks shards that are behind the newest one again, until all are at one version. For
 * unsynchronised workers. The version is sure to come, because N - B workers have pushed gradients
 * of the one before it to all shards. */
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

static bool takes_means(const struct exchange *exchange)
{
    return exchange->ops->delivers == EXCHANGE_GRADIENTS;
}

/* Where the values of an answer belong. */
static float *target_of(const struct exchange *exchange, const struct message *message)
{
    const struct exchange_options *options = &exchange->options;
    return message->vector > 0     ? exchange->pull_target
           : takes_means(exchange) ? options->grads
                                   : options->params;
}

/* What is encoded is by how much parameters have changed since the last answer, or a mean. */
static enum status take_encoded(struct exchange *exchange, const struct message *message,
                                float *target)
{
    const struct encoder *encoder = &ps_of(exchange)->encoders[0];
    if (message->vector > 0 || exchange->options.is_unsynchronised) {
        return STATUS_MALFORMED; // not what was asked for
    }
    return takes_means(exchange) ? encoder_copy(encoder, message, target)
                                 : encoder_add(encoder, message, target);
}

/* Values that are not lent lie in host memory, where no server of this program puts them. */
static enum status copy_on_device(struct exchange *exchange, const struct message *message)
{
    struct vector_device *device = exchange->options.device;
    if (message->loan == NULL || message->vector > 0) {
        return STATUS_MALFORMED;
    }
    enum status status = device->ops->copy(device, exchange->options.params + message->span.offset,
                                           message->values, message->span.count);
    return status == STATUS_OK ? device->ops->wait(device) : status;
}

static enum status take_values(struct exchange *exchange, const struct message *message)
{
    float *target = target_of(exchange, message);
    if (exchange->options.device != NULL) {
        return copy_on_device(exchange, message);
    }
    if (message->encoded != NULL) {
        return take_encoded(exchange, message, target) == STATUS_OK ? STATUS_OK : STATUS_MALFORMED;
    }
    memcpy(target + message->span.offset, message->values, message->span.count * sizeof(float));
    return STATUS_OK;
}

/* Values go over those of the last answer, and so over what somebody has written there. */
static enum status take_watched(struct exchange *exchange, const struct message *message)
{
    struct delivered *delivered = ps_of(exchange)->delivered;
    float *params = exchange->options.params;
    uint32_t none = EXCHANGE_NONE, written;
    enum status status = STATUS_OK;
    if (message->encoded == NULL) {
        written = delivered_take(delivered, params, message->span, message->values);
    } else {
        written = delivered_find_written(delivered, params, message->span);
        status = take_values(exchange, message);
        delivered_note(delivered, params, message->span);
    }
    if (written != DELIVERED_SAME) {
        atomic_compare_exchange_strong(&exchange->written, &none, written);
    }
    return status;
}

static enum status take_params(struct exchange *exchange, const struct message *message,
                               uint32_t shard)
{
    struct ps_shard *state = &ps_of(exchange)->shards[shard];
    state->is_pulled[message->bucket] = false;
    state->taken++;
    state->params_version = message->params_version;
    uint64_t *missing_count = &ps_of(exchange)->missing_counts[message->bucket];
    bool is_watched = ps_of(exchange)->delivered != NULL && message->vector == 0;
    enum status status =
        is_watched ? take_watched(exchange, message) : take_values(exchange, message);
    if (status != STATUS_OK) {
        return status;
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

/* The first shard that has not answered, if all buckets of the step were pushed. */
static bool ps_awaits(const struct exchange *exchange, struct wire_wait *ret_wait)
{
    const struct ps *ps = ps_of_const(exchange);
    uint32_t bucket_count = exchange->options.layout->bucket_count;
    if (ps->ready_count > 0 && ps->ready_count < bucket_count) {
        return false; // backward goes on
    }
    for (uint32_t shard = 0; shard < ps->shard_count; shard++) {
        for (uint32_t bucket = 0; bucket < bucket_count; bucket++) {
            if (ps->shards[shard].is_pulled[bucket]) {
                *ret_wait = (struct wire_wait){.role = ROLE_SERVER,
                                               .index = shard,
                                               .what = WIRE_WAIT_PARAMS,
                                               .taken = ps->shards[shard].taken,
                                               .given_count = ps->shard_count,
                                               .given = ps->given};
                return true;
            }
        }
    }
    return false;
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
    return message->kind == MESSAGE_PARAMS && expects(exchange, message, shard)
               ? take_params(exchange, message, shard)
               : STATUS_MALFORMED;
}

static const struct exchange_message_ops ps_message_ops = {
    .start = ps_start,
    .deliver = ps_deliver,
    .go_on = ps_go_on,
    .awaits = ps_awaits,
    .pull = ps_pull,
};

const struct exchange_strategy exchange_ps = {
    .ops =
        {
            .delivers = EXCHANGE_PARAMS,
            .message_ops = &ps_message_ops,
            .ready = ps_ready,
            .destroy = ps_destroy,
        },
    .create = ps_create,
};

const struct exchange_strategy exchange_ps_means = {
    .ops =
        {
            .delivers = EXCHANGE_GRADIENTS,
            .message_ops = &ps_message_ops,
            .ready = ps_ready,
            .destroy = ps_destroy,
        },
    .create = ps_create,
};
