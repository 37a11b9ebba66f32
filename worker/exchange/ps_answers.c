/* Takes the shards' answers: credits for pushes, and parameters. */
#include "common/vector/vector_device.h"
#include "worker/exchange/exchange_ps_state.h"

#include <string.h>

enum status ps_take_credit(struct exchange *exchange, const struct message *message, uint32_t shard)
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

bool ps_expects(const struct exchange *exchange, const struct message *message, uint32_t shard)
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

bool ps_awaits(const struct exchange *exchange, struct wire_wait *ret_wait)
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
                                               .taken = ps->answer_count};
                return true;
            }
        }
    }
    return false;
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
            status = ps_pull_shard(exchange, i, newest);
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

enum status ps_take_params(struct exchange *exchange, const struct message *message, uint32_t shard)
{
    struct ps_shard *state = &ps_of(exchange)->shards[shard];
    state->is_pulled[message->bucket] = false;
    ps_of(exchange)->answer_count++;
    state->params_version = message->params_version;
    uint64_t *missing_count = &ps_of(exchange)->missing_counts[message->bucket];
    float *target = message->vector > 0 ? exchange->pull_target : exchange->options.params;
    if (exchange->options.device != NULL) {
        enum status status = copy_on_device(exchange, message);
        if (status != STATUS_OK) {
            return status;
        }
    } else if (message->encoded == NULL) {
        memcpy(target + message->span.offset, message->values, message->span.count * sizeof(float));
    } else if (message->vector > 0 || exchange->options.is_unsynchronised ||
               encoder_add(&ps_of(exchange)->encoders[0], message, target) != STATUS_OK) {
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
