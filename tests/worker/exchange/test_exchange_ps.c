/* Tests of push and pull, at the worker's end. */
#include "common/base/clock.h"
#include "tests/support/common/choices.h"
#include "tests/support/common/float_envelope.h"
#include "tests/support/common/insecure.h"
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
#define SHARDS        2 // in tests of where workers are unsynchronised
#define MEANS         "ps-sync, means"

struct worker {
    struct layout layout;
    float *params, *grads;
    float *vectors[2]; // of a worker that carries two ranks
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

/* A shard's end, which listens and answers nothing by itself. */
static struct channel *open_shard(char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    struct channel *shard;
    assert_int_equal(channel_create(&shard), STATUS_OK);
    assert_int_equal(channel_secure(shard, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind(shard->transport, "tcp://127.0.0.1:*", ret_endpoint),
                     STATUS_OK);
    return shard;
}

/* A worker of `mode`, which carries `count` ranks, with shards at an endpoint where nobody listens:
 * two where workers are unsynchronised.
 */
static void open_encoding(struct worker *worker, const char *mode, const char *endpoint,
                          uint32_t count, struct codec codec)
{
    worker->layout =
        (struct layout){.value_count = BUCKETS * BUCKET_FLOATS, .bucket_count = BUCKETS};
    for (uint32_t i = 0; i < BUCKETS; i++) {
        worker->layout.buckets[i] = (struct span){(BUCKETS - 1 - i) * BUCKET_FLOATS, BUCKET_FLOATS};
    }
    worker->params = calloc(worker->layout.value_count, sizeof(float));
    worker->grads = calloc(worker->layout.value_count, sizeof(float));
    worker->vectors[0] = count == 1 ? worker->grads : worker->params; // whatever is in it
    worker->vectors[1] = worker->grads;
    assert_int_equal(channel_create(&worker->channel), STATUS_OK);
    assert_int_equal(channel_secure(worker->channel, &test_insecure), STATUS_OK);
    bool is_unsynchronised = strcmp(mode, "ps-async") == 0, takes_means = strcmp(mode, MEANS) == 0;
    uint32_t shard_count = is_unsynchronised ? SHARDS : 1;
    for (uint32_t i = 0; i < shard_count; i++) {
        assert_int_equal(
            transport_connect(worker->channel->transport, endpoint, &worker->shards[i].peers[0]),
            STATUS_OK);
        worker->shards[i].count = 1;
    }
    const struct exchange_options options = {
        .mode = mode_of(takes_means ? "ps-sync" : mode).kind,
        .takes_means = takes_means,
        .world = 2 * count,
        .processes = 2,
        .vectors = worker->vectors,
        .layout = &worker->layout,
        .params = worker->params,
        .grads = worker->grads,
        .is_unsynchronised = is_unsynchronised,
        .codec = codec,
        .channel = worker->channel,
        .peers = worker->shards,
        .peer_count = shard_count,
        .post_ready = nothing,
    };
    assert_int_equal(exchange_create(&options, &worker->exchange), STATUS_OK);
}

static void open_carrier(struct worker *worker, const char *mode, const char *endpoint,
                         uint32_t count)
{
    open_encoding(worker, mode, endpoint, count, (struct codec){.kind = CODEC_NONE});
}

static void open_worker(struct worker *worker, const char *mode, const char *endpoint)
{
    open_carrier(worker, mode, endpoint, 1);
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

/* As if a shard had sent it. */
static void deliver(struct worker *worker, uint32_t shard, const struct message *message,
                    enum status expected)
{
    struct envelope envelope;
    assert_int_equal(float_envelope_make(worker->grads, 1, &envelope), STATUS_OK);
    envelope.peer = worker->shards[shard].peers[0];
    assert_int_equal(exchange_deliver(worker->exchange, message, &envelope), expected);
    envelope_release(&envelope);
}

static void answer(struct worker *worker, uint32_t bucket, enum status expected)
{
    const struct message params = {.kind = MESSAGE_PARAMS,
                                   .step = 1,
                                   .bucket = bucket,
                                   .span = worker->layout.buckets[bucket],
                                   .values = worker->grads};
    deliver(worker, 0, &params, expected);
}

static void begin(struct worker *worker)
{
    assert_int_equal(exchange_begin_step(worker->exchange, 0), STATUS_OK);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        assert_int_equal(exchange_run_ready(worker->exchange, bucket), STATUS_OK);
    }
}

static void take(struct worker *worker, uint64_t step, uint32_t bucket, enum status expected)
{
    const struct message taken = {.kind = MESSAGE_TAKEN, .step = step, .bucket = bucket};
    deliver(worker, 0, &taken, expected);
}

/* Lets what may leave leave: so many buckets, and no more. */
static void expect_pushed(struct worker *worker, uint64_t count)
{
    while (pushed(worker) < count) {
        assert_int_equal(exchange_go_on(worker->exchange), STATUS_OK);
    }
    assert_int_equal(pushed(worker), count);
}

/* And then the last bucket, which forward needs first, overtakes the others. */
static void over_a_network_pushes_wait_until_others_were_taken(void **state)
{
    (void)state;
    struct worker worker;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    struct channel *shard = open_shard(endpoint);
    open_worker(&worker, "ps-sync", endpoint);
    begin(&worker);
    expect_pushed(&worker, 2);
    take(&worker, 0, 2, STATUS_MALFORMED); // what was not pushed
    take(&worker, 1, 0, STATUS_MALFORMED); // of a step that has not begun
    take(&worker, 0, BUCKETS, STATUS_MALFORMED);
    answer(&worker, 4, STATUS_MALFORMED);
    const uint32_t taken[] = {1, 4, 3, 0, 2}, then_pushed[] = {4, 3, 2};
    for (uint32_t i = 0; i < BUCKETS; i++) {
        if (i < 3) {
            answer(&worker, then_pushed[i], STATUS_MALFORMED);
        }
        take(&worker, 0, taken[i], STATUS_OK);
        take(&worker, 0, taken[i], STATUS_MALFORMED); // twice
        expect_pushed(&worker, i < 3 ? i + 3 : BUCKETS);
        if (i < 3) {
            answer(&worker, then_pushed[i], STATUS_OK);
            answer(&worker, then_pushed[i], STATUS_MALFORMED); // twice
        }
    }
    answer(&worker, 0, STATUS_OK);
    answer(&worker, 1, STATUS_OK);
    close_worker(&worker);
    channel_destroy(shard, 0);
}

/* A bucket is taken when the gradients of both ranks are. */
static void a_worker_that_carries_two_ranks_pushes_for_each_and_pulls_once(void **state)
{
    (void)state;
    struct worker worker;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    struct channel *shard = open_shard(endpoint);
    open_carrier(&worker, "ps-sync", endpoint, 2);
    begin(&worker);
    expect_pushed(&worker, 4);
    take(&worker, 0, 0, STATUS_OK);
    expect_pushed(&worker, 4);
    take(&worker, 0, 0, STATUS_OK);
    expect_pushed(&worker, 6);
    take(&worker, 0, 0, STATUS_MALFORMED); // a third time
    answer(&worker, 0, STATUS_OK);
    answer(&worker, 0, STATUS_MALFORMED); // pulled once
    uint32_t pull_count = 0, push_count[2] = {0};
    while (pull_count < 3 || push_count[0] + push_count[1] < 6) {
        struct envelope envelope;
        struct message message;
        assert_int_equal(exchange_go_on(worker.exchange), STATUS_OK);
        if (channel_receive(shard, 10, &envelope, &message) == STATUS_OK) {
            pull_count += message.kind == MESSAGE_PULL;
            assert_true(message.rank == 0 || (message.rank == 1 && message.kind == MESSAGE_PUSH));
            push_count[message.rank] += message.kind == MESSAGE_PUSH;
            envelope_release(&envelope);
        }
    }
    assert_int_equal(pull_count, 3);
    assert_int_equal(push_count[0], 3);
    assert_int_equal(push_count[1], 3);
    close_worker(&worker);
    channel_destroy(shard, 0);
}

/* What a worker of two ranks has sent: a pull of each bucket for one turn, a push of another. */
struct heard {
    uint32_t pulls, pushes;
    struct exchange_turn pulled, pushed; // index: the rank
};

/* Receives until there are so many; the first pulls were of the first turn. */
static struct heard hear(struct channel *shard, struct worker *worker, uint32_t pulls,
                         uint32_t pushes)
{
    struct heard heard = {0};
    while (heard.pulls < pulls || heard.pushes < pushes) {
        struct envelope envelope;
        struct message message;
        assert_int_equal(exchange_go_on(worker->exchange), STATUS_OK);
        if (channel_receive(shard, 10, &envelope, &message) != STATUS_OK) {
            continue;
        }
        heard.pulls += message.kind == MESSAGE_PULL;
        heard.pushes += message.kind == MESSAGE_PUSH;
        *(message.kind == MESSAGE_PULL ? &heard.pulled : &heard.pushed) =
            (struct exchange_turn){message.step, message.rank};
        envelope_release(&envelope);
    }
    return heard;
}

static void take_of(struct worker *worker, uint32_t rank, uint64_t step, uint32_t bucket,
                    enum status expected)
{
    const struct message taken = {
        .kind = MESSAGE_TAKEN, .rank = rank, .step = step, .bucket = bucket};
    deliver(worker, 0, &taken, expected);
}

/* Both shards' parts, for a rank's step. */
static void answer_turn(struct worker *worker, uint32_t rank, uint64_t step, enum status expected)
{
    const struct wire_outcome outcome = {0};
    for (uint32_t i = 0; i < SHARDS * BUCKETS; i++) {
        const struct message params = {
            .kind = MESSAGE_PARAMS,
            .rank = rank,
            .step = step,
            .bucket = i / SHARDS,
            .outcome = &outcome,
            .span = span_part(worker->layout.buckets[i / SHARDS], SHARDS, i % SHARDS),
            .values = worker->grads,
        };
        deliver(worker, i % SHARDS, &params, expected);
    }
}

static void the_ranks_of_an_unsynchronised_worker_take_turns(void **state)
{
    (void)state;
    struct worker worker;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    struct channel *shard = open_shard(endpoint);
    open_carrier(&worker, "ps-async", endpoint, 2);
    assert_int_equal(exchange_turns(worker.exchange), 2);
    assert_int_equal(exchange_start(worker.exchange), STATUS_OK);
    struct heard heard = hear(shard, &worker, SHARDS * BUCKETS, 0);
    assert_true(heard.pulled.step == 0 && heard.pulled.index == 0);
    for (uint64_t turn = 0; turn < 4; turn++) {
        uint32_t rank = turn % 2, next = (turn + 1) % 2;
        uint64_t step = turn / 2, next_step = (turn + 1) / 2;
        answer_turn(&worker, next, step, STATUS_MALFORMED); // of another rank than has asked
        answer_turn(&worker, rank, step, STATUS_OK);
        assert_int_equal(exchange_begin_step(worker.exchange, turn), STATUS_OK);
        for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
            assert_int_equal(exchange_run_ready(worker.exchange, bucket), STATUS_OK);
            take_of(&worker, next, next_step, bucket, STATUS_MALFORMED); // not pushed yet
            for (uint32_t i = 0; i < SHARDS; i++) {
                const struct message taken = {
                    .kind = MESSAGE_TAKEN, .rank = rank, .step = step, .bucket = bucket};
                deliver(&worker, i, &taken, STATUS_OK);
            }
        }
        heard = hear(shard, &worker, SHARDS * BUCKETS, SHARDS * BUCKETS);
        assert_true(heard.pushed.step == step && heard.pushed.index == rank);
        assert_true(heard.pulled.step == next_step && heard.pulled.index == next);
        take_of(&worker, rank, step, 0, STATUS_MALFORMED); // a second time
    }
    take_of(&worker, 0, 0, 0, STATUS_OK); // of a turn that is over
    close_worker(&worker);
    channel_destroy(shard, 0);
}

/* What waits for its turn here can be overtaken. Nobody listens, so that none ever leaves. */
static void over_a_network_the_transport_is_given_one_push_at_a_time(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-sync", "tcp://127.0.0.1:1");
    begin(&worker);
    assert_int_equal(exchange_go_on(worker.exchange), STATUS_OK);
    assert_int_equal(pushed(&worker), 1);
    close_worker(&worker);
}

/* Forward may begin with them while others are on their way. */
static void a_buckets_parameters_are_awaited_alone(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-sync", "ipc://@ringside-test-nobody");
    begin(&worker);
    const uint32_t order[] = {4, 0, 3, 2, 1};
    for (uint32_t i = 0; i < BUCKETS; i++) {
        answer(&worker, order[i], STATUS_OK);
        assert_int_equal(exchange_await_bucket(worker.exchange, order[i], NULL, NULL), STATUS_OK);
    }
    assert_int_equal(exchange_await_bucket(worker.exchange, 4, NULL, NULL), STATUS_OK);
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    close_worker(&worker);
}

static enum status note_mean(void *context, uint32_t bucket)
{
    struct worker *worker = context;
    const float *mean = worker->grads + worker->layout.buckets[bucket].offset;
    return mean[0] == 7 && mean[BUCKET_FLOATS - 1] == 7 ? STATUS_OK : STATUS_INVALID;
}

static void means_that_servers_hand_back_come_to_the_gradients(void **state)
{
    (void)state;
    struct worker worker;
    open_encoding(&worker, MEANS, "ipc://@ringside-test-nobody", 1,
                  (struct codec){.kind = CODEC_NONE});
    begin(&worker);
    worker.params[0] = worker.params[BUCKET_FLOATS - 1] = 7; // as if these were the means
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        const struct message mean = {.kind = MESSAGE_PARAMS,
                                     .step = 1,
                                     .bucket = bucket,
                                     .span = worker.layout.buckets[bucket],
                                     .values = worker.params};
        deliver(&worker, 0, &mean, STATUS_OK);
        assert_int_equal(exchange_await_bucket(worker.exchange, bucket, note_mean, &worker),
                         STATUS_OK);
    }
    assert_true(worker.params[BUCKET_FLOATS] == 0); // of the next bucket, as it was
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    close_worker(&worker);
}

static void a_stop_ends_the_wait_for_a_bucket(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-sync", "ipc://@ringside-test-nobody");
    begin(&worker);
    answer(&worker, 1, STATUS_OK);
    exchange_stop(worker.exchange, STATUS_UNREACHABLE);
    assert_int_equal(exchange_await_bucket(worker.exchange, 0, NULL, NULL), STATUS_UNREACHABLE);
    close_worker(&worker);
}

static void on_one_host_pushes_do_not_wait(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-sync", "ipc://@ringside-test-nobody");
    begin(&worker);
    assert_int_equal(pushed(&worker), BUCKETS);
    close_worker(&worker);
}

static void each_rank_that_is_carried_has_errors_of_its_own(void **state)
{
    (void)state;
    struct worker worker;
    open_encoding(&worker, "ps-sync", "ipc://@ringside-test-nobody", 2,
                  (struct codec){.kind = CODEC_BF16});
    for (uint64_t i = 0; i < worker.layout.value_count; i++) {
        worker.vectors[0][i] = 1.001f; // which has no exact code
        worker.vectors[1][i] = -3.003f;
    }
    begin(&worker);
    const float *first = exchange_residual(worker.exchange, 0);
    const float *second = exchange_residual(worker.exchange, 1);
    assert_true(first[0] != 0 && second[0] != 0 && first[0] != second[0]);
    assert_null(exchange_residual(worker.exchange, 2));
    close_worker(&worker);
    open_carrier(&worker, "ps-sync", "ipc://@ringside-test-nobody", 2);
    assert_null(exchange_residual(worker.exchange, 1)); // nothing is encoded
    close_worker(&worker);
}

static void a_step_is_on_its_way_from_its_first_bucket_to_its_last(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-sync", "ipc://@ringside-test-nobody");
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    uint64_t began_ns = clock_now_ns();
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        exchange_buckets_ready(worker.exchange, bucket, 1);
    }
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        assert_int_equal(exchange_take_wire_ns(worker.exchange), 0);
        exchange_mark_done(worker.exchange, bucket);
    }
    assert_in_range(exchange_take_wire_ns(worker.exchange), 1, clock_now_ns() - began_ns);
    assert_int_equal(exchange_take_wire_ns(worker.exchange), 0);

    worker.exchange->bucket_done_count = 0; // as where parameters are pulled between steps
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        exchange_mark_done(worker.exchange, bucket);
    }
    assert_int_equal(exchange_take_wire_ns(worker.exchange), 0);
    close_worker(&worker);
}

/* All parts of a shard, as the first parameters of an unsynchronised worker. */
static void answer_unsynchronised(struct worker *worker, uint32_t shard, uint64_t version,
                                  enum status expected)
{
    const struct wire_outcome outcome = {0};
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        const struct message params = {
            .kind = MESSAGE_PARAMS,
            .bucket = bucket,
            .params_version = version,
            .outcome = &outcome,
            .span = span_part(worker->layout.buckets[bucket], SHARDS, shard),
            .values = worker->grads,
        };
        deliver(worker, shard, &params, expected);
    }
}

static void shards_are_asked_again_until_all_are_of_one_version(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker, "ps-async", "ipc://@ringside-test-nobody");
    assert_int_equal(exchange_start(worker.exchange), STATUS_OK);
    answer_unsynchronised(&worker, 0, 4, STATUS_OK);
    answer_unsynchronised(&worker, 0, 4, STATUS_MALFORMED); // was not asked again
    answer_unsynchronised(&worker, 1, 3, STATUS_OK);
    assert_int_equal(worker.exchange->bucket_done_count, 0);
    answer_unsynchronised(&worker, 0, 4, STATUS_MALFORMED);
    answer_unsynchronised(&worker, 1, 5, STATUS_OK); // it has gone on: now the other one is behind
    assert_int_equal(worker.exchange->bucket_done_count, 0);
    answer_unsynchronised(&worker, 1, 5, STATUS_MALFORMED);
    answer_unsynchronised(&worker, 0, 5, STATUS_OK);
    assert_int_equal(exchange_settle(worker.exchange), STATUS_OK);
    close_worker(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_a_network_pushes_wait_until_others_were_taken),
        cmocka_unit_test(a_worker_that_carries_two_ranks_pushes_for_each_and_pulls_once),
        cmocka_unit_test(the_ranks_of_an_unsynchronised_worker_take_turns),
        cmocka_unit_test(over_a_network_the_transport_is_given_one_push_at_a_time),
        cmocka_unit_test(a_buckets_parameters_are_awaited_alone),
        cmocka_unit_test(means_that_servers_hand_back_come_to_the_gradients),
        cmocka_unit_test(a_stop_ends_the_wait_for_a_bucket),
        cmocka_unit_test(on_one_host_pushes_do_not_wait),
        cmocka_unit_test(shards_are_asked_again_until_all_are_of_one_version),
        cmocka_unit_test(each_rank_that_is_carried_has_errors_of_its_own),
        cmocka_unit_test(a_step_is_on_its_way_from_its_first_bucket_to_its_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
