/* Tests of push and pull, at the worker's end. */
#include "worker/exchange/exchange.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define BUCKET_FLOATS UINT64_C(262144) // 1 MiB
#define BUCKETS       5

struct worker {
    struct layout layout;
    float *params, *grads;
    struct channel *channel;
    uint64_t shard;
    struct exchange *exchange;
};

static void nothing(void *context, uint32_t bucket)
{
    (void)context;
    (void)bucket;
}

/* A worker of `mode` with a single shard, at an endpoint where nobody listens. */
static void open_worker(struct worker *worker, const char *mode, const char *endpoint)
{
    worker->layout =
        (struct layout){.value_count = BUCKETS * BUCKET_FLOATS, .bucket_count = BUCKETS};
    for (uint32_t i = 0; i < BUCKETS; i++) {
        worker->layout.buckets[i] = (struct span){(BUCKETS - 1 - i) * BUCKET_FLOATS, BUCKET_FLOATS};
    }
    worker->params = calloc(worker->layout.value_count, sizeof(float));
    worker->grads = calloc(worker->layout.value_count, sizeof(float));
    assert_int_equal(channel_create(&worker->channel), STATUS_OK);
    assert_int_equal(transport_connect(worker->channel->transport, endpoint, &worker->shard),
                     STATUS_OK);
    const struct exchange_options options = {
        .mode = mode,
        .world = 2,
        .layout = &worker->layout,
        .params = worker->params,
        .grads = worker->grads,
        .is_free = strcmp(mode, "ps-async") == 0,
        .channel = worker->channel,
        .peers = &worker->shard,
        .peer_count = 1,
        .post_ready = nothing,
    };
    assert_int_equal(exchange_create(&options, &worker->exchange), STATUS_OK);
}

static void close_worker(struct worker *worker)
{
    channel_destroy(worker->channel, 0);
    exchange_destroy(worker->exchange);
    free(worker->params);
    free(worker->grads);
}

/* Buckets whose gradients were sent. */
static uint64_t pushed(const struct worker *worker)
{
    return worker->channel->bytes_sent / (BUCKET_FLOATS * sizeof(float));
}

static void answer(struct worker *worker, uint32_t bucket, enum status expected)
{
    struct envelope envelope;
    struct message params = {.kind = MESSAGE_PARAMS,
                             .step = 1,
                             .bucket = bucket,
                             .span = worker->layout.buckets[bucket],
                             .values = worker->params};
    assert_int_equal(envelope_copy_floats(worker->grads, 1, &envelope), STATUS_OK);
    envelope.peer = worker->shard;
    params.values = worker->grads;
    assert_int_equal(exchange_deliver(worker->exchange, &params, &envelope), expected);
    envelope_release(&envelope);
}

static void begin(struct worker *worker)
{
    assert_int_equal(exchange_begin_step(worker->exchange, 0), STATUS_OK);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        assert_int_equal(exchange_run_ready(worker->exchange, bucket), STATUS_OK);
    }
}

static void over_a_network_pushes_wait_for_answers(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-sync", "tcp://127.0.0.1:1");
    begin(&worker);
    assert_int_equal(pushed(&worker), 2);
    answer(&worker, 2, STATUS_MALFORMED); // of what was not pushed
    assert_int_equal(pushed(&worker), 2);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        answer(&worker, bucket, STATUS_OK);
        assert_int_equal(pushed(&worker), bucket + 3 < BUCKETS ? bucket + 3 : BUCKETS);
    }
    answer(&worker, 0, STATUS_MALFORMED); // twice
    close_worker(&worker);
}

static void on_one_host_they_do_not(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-sync", "ipc://@ringside-test-nobody");
    begin(&worker);
    assert_int_equal(pushed(&worker), BUCKETS);
    close_worker(&worker);
}

/* They are answered after the last. */
static void nor_do_those_of_free_workers(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-async", "tcp://127.0.0.1:1");
    worker.exchange->is_awaiting = false; // the first parameters
    begin(&worker);
    assert_int_equal(pushed(&worker), BUCKETS);
    close_worker(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_a_network_pushes_wait_for_answers),
        cmocka_unit_test(on_one_host_they_do_not),
        cmocka_unit_test(nor_do_those_of_free_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
