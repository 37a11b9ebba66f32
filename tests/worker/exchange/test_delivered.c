/* Tests of how it is noticed that somebody besides servers writes parameters. */
#include "tests/support/common/float_envelope.h"
#include "tests/support/common/insecure.h"
#include "worker/exchange/delivered.h"
#include "worker/exchange/exchange.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define VALUES 100
#define SHARDS 3

static const struct layout layout = {
    .value_count = VALUES, .bucket_count = 3, .buckets = {{70, 30}, {69, 1}, {0, 69}}};

// One within a part, one across two buckets, one of a single value.
static const struct span watched[] = {{0, 10}, {10, 1}, {11, 60}, {71, 29}};
#define WATCHED 4

static struct delivered *created(float *values)
{
    struct delivered *delivered;
    for (int i = 0; i < VALUES; i++) {
        values[i] = (float)i / 3;
    }
    assert_int_equal(delivered_create(&layout, SHARDS, watched, WATCHED, values, &delivered),
                     STATUS_OK);
    return delivered;
}

static uint32_t find(const struct delivered *delivered, const float *values, uint32_t bucket,
                     uint32_t shard)
{
    return delivered_find_written(delivered, values,
                                  span_part(layout.buckets[bucket], SHARDS, shard));
}

/* The span that was found in the first part that has another value; DELIVERED_SAME: in none. */
static uint32_t find_any(const struct delivered *delivered, const float *values)
{
    uint32_t found = DELIVERED_SAME;
    for (uint32_t i = 0; i < layout.bucket_count * SHARDS && found == DELIVERED_SAME; i++) {
        found = find(delivered, values, i / SHARDS, i % SHARDS);
    }
    return found;
}

static void a_change_of_any_value_is_found_in_its_part_and_its_span(void **state)
{
    (void)state;
    float values[VALUES];
    struct delivered *delivered = created(values);
    assert_int_equal(find_any(delivered, values), DELIVERED_SAME);
    for (uint32_t i = 0; i < VALUES; i++) {
        float before = values[i];
        values[i] = nextafterf(before, 1000);
        uint32_t found = find_any(delivered, values);
        assert_true(found < WATCHED);
        assert_true(span_intersect(watched[found], (struct span){i, 1}).count == 1);
        values[i] = before;
        assert_int_equal(find_any(delivered, values), DELIVERED_SAME); // it is there again
    }
    values[5] = 0;
    assert_int_equal(find(delivered, values, 2, 0), 0);
    assert_int_equal(find(delivered, values, 2, 1), DELIVERED_SAME); // another part
    delivered_destroy(delivered);
}

static void values_that_change_places_are_found(void **state)
{
    (void)state;
    float values[VALUES], other;
    struct delivered *delivered = created(values);
    for (uint32_t distance = 1; distance < 9; distance++) {
        memcpy(&other, &values[72], sizeof(other));
        values[72] = values[72 + distance];
        values[72 + distance] = other;
        assert_int_equal(find_any(delivered, values), 3);
        values[72 + distance] = values[72];
        values[72] = other;
    }
    delivered_destroy(delivered);
}

static void what_was_delivered_is_what_the_next_ones_are_compared_with(void **state)
{
    (void)state;
    float values[VALUES];
    struct delivered *delivered = created(values);
    struct span part = span_part(layout.buckets[0], SHARDS, 1);
    values[part.offset] = NAN; // is one value as any other
    delivered_note(delivered, values, part);
    assert_int_equal(find_any(delivered, values), DELIVERED_SAME);
    values[part.offset] = 7;
    assert_int_equal(find_any(delivered, values), 3);
    values[0] = -1; // of a part that did not come
    delivered_note(delivered, values, part);
    assert_int_equal(find_any(delivered, values), 0);
    delivered_destroy(delivered);
}

/* As the three steps one by one. */
static void taking_a_part_compares_copies_and_notes(void **state)
{
    (void)state;
    float values[VALUES], wanted[VALUES], news[VALUES];
    struct delivered *delivered = created(values);
    for (uint32_t i = 0; i < VALUES; i++) {
        news[i] = -(float)i;
    }
    for (uint32_t i = 0; i < layout.bucket_count * SHARDS; i++) {
        struct span part = span_part(layout.buckets[i / SHARDS], SHARDS, i % SHARDS);
        memcpy(wanted, values, sizeof(wanted));
        for (uint64_t k = part.offset; k < part.offset + part.count; k++) {
            wanted[k] = news[k];
        }
        assert_int_equal(delivered_take(delivered, values, part, news + part.offset),
                         DELIVERED_SAME);
        assert_memory_equal(values, wanted, sizeof(wanted)); // and nothing beside it
        assert_int_equal(find_any(delivered, values), DELIVERED_SAME);
        if (part.count > 0) {
            values[part.offset + part.count - 1] = 7;
            uint32_t found = find_any(delivered, values);
            assert_int_equal(delivered_take(delivered, values, part, news + part.offset), found);
            assert_int_equal(find_any(delivered, values), DELIVERED_SAME);
        }
    }
    assert_memory_equal(values, news, sizeof(values));
    delivered_destroy(delivered);
}

static void more_shards_than_values_leave_some_without_a_part(void **state)
{
    (void)state;
    static const struct layout small = {
        .value_count = 3, .bucket_count = 2, .buckets = {{1, 2}, {0, 1}}};
    static const struct span spans[] = {{0, 2}, {2, 1}};
    float values[3] = {1, 2, 3};
    struct delivered *delivered;
    assert_int_equal(delivered_create(&small, 5, spans, 2, values, &delivered), STATUS_OK);
    values[2] = 4;
    for (uint32_t shard = 0; shard < 5; shard++) {
        struct span part = span_part(small.buckets[0], 5, shard);
        bool has_it = part.count > 0 && part.offset == 2;
        assert_int_equal(delivered_find_written(delivered, values, part),
                         has_it ? 1 : DELIVERED_SAME);
    }
    delivered_destroy(delivered);
    delivered_destroy(NULL);
}

/* A worker of a job whose shards are where nobody listens. */
struct worker {
    float params[VALUES], grads[VALUES];
    struct channel *channel;
    struct lanes shards[SHARDS];
    struct exchange *exchange;
};

static void nothing(void *context, uint32_t first, uint32_t count)
{
    (void)context;
    (void)first;
    (void)count;
}

/* It has made a step: all gradients are there. */
static void open_worker(struct worker *worker, enum mode_kind mode, bool takes_means)
{
    *worker = (struct worker){0};
    assert_int_equal(channel_create(&worker->channel), STATUS_OK);
    assert_int_equal(channel_secure(worker->channel, &test_insecure), STATUS_OK);
    for (int i = 0; i < SHARDS; i++) {
        assert_int_equal(transport_connect(worker->channel->transport,
                                           "ipc://@ringside-test-nobody",
                                           &worker->shards[i].peers[0]),
                         STATUS_OK);
        worker->shards[i].count = 1;
    }
    const struct exchange_options options = {
        .mode = mode,
        .takes_means = takes_means,
        .world = 2,
        .layout = &layout,
        .params = worker->params,
        .grads = worker->grads,
        .is_unsynchronised = mode == MODE_PS_ASYNC,
        .watched = watched,
        .watched_count = WATCHED,
        .channel = worker->channel,
        .peers = worker->shards,
        .peer_count = SHARDS,
        .post_ready = nothing,
    };
    assert_int_equal(exchange_create(&options, &worker->exchange), STATUS_OK);
    if (mode == MODE_PS_ASYNC) {
        assert_int_equal(exchange_start(worker->exchange), STATUS_OK);
        return;
    }
    assert_int_equal(exchange_begin_step(worker->exchange, 0), STATUS_OK);
    for (uint32_t bucket = 0; bucket < layout.bucket_count; bucket++) {
        assert_int_equal(exchange_run_ready(worker->exchange, bucket), STATUS_OK);
    }
}

static void close_worker(struct worker *worker)
{
    channel_destroy(worker->channel, 0);
    exchange_destroy(worker->exchange);
}

/* A shard's part of a bucket comes: zeros. Returns what was written over. */
static uint32_t answer(struct worker *worker, uint32_t bucket, uint32_t shard)
{
    static const float zeros[VALUES];
    const struct wire_outcome outcome = {0};
    bool is_first = worker->exchange->options.is_unsynchronised;
    const struct message params = {
        .kind = MESSAGE_PARAMS,
        .step = is_first ? 0 : 1,
        .bucket = bucket,
        .outcome = is_first ? &outcome : NULL,
        .span = span_part(layout.buckets[bucket], SHARDS, shard),
        .values = zeros,
    };
    struct envelope envelope;
    assert_int_equal(float_envelope_make(zeros, 1, &envelope), STATUS_OK);
    envelope.peer = worker->shards[shard].peers[0];
    assert_int_equal(exchange_deliver(worker->exchange, &params, &envelope), STATUS_OK);
    envelope_release(&envelope);
    return exchange_take_written(worker->exchange);
}

static void what_an_answer_is_written_over_is_told_once(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct worker worker;
        open_worker(&worker, i == 0 ? MODE_PS_SYNC : MODE_PS_ASYNC, false);
        worker.params[1] = worker.params[75] = 1;
        assert_int_equal(answer(&worker, 0, 1), EXCHANGE_NONE); // neither is lost yet
        assert_int_equal(answer(&worker, 0, 0), 3);
        worker.params[30] = 1;
        worker.params[30] = 0; // as it was
        assert_int_equal(answer(&worker, 2, 1), EXCHANGE_NONE);
        assert_int_equal(answer(&worker, 2, 0), 0);
        assert_true(worker.params[1] == 0 && worker.params[75] == 0);
        close_worker(&worker);
    }
}

/* Servers make no updates there, and parameters are the worker's. */
static void parameters_are_not_watched_where_means_come(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, MODE_PS_SYNC, true);
    worker.params[1] = 1;
    assert_int_equal(answer(&worker, 2, 0), EXCHANGE_NONE);
    assert_true(worker.params[1] == 1);
    close_worker(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_of_any_value_is_found_in_its_part_and_its_span),
        cmocka_unit_test(values_that_change_places_are_found),
        cmocka_unit_test(what_was_delivered_is_what_the_next_ones_are_compared_with),
        cmocka_unit_test(taking_a_part_compares_copies_and_notes),
        cmocka_unit_test(more_shards_than_values_leave_some_without_a_part),
        cmocka_unit_test(what_an_answer_is_written_over_is_told_once),
        cmocka_unit_test(parameters_are_not_watched_where_means_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
