/* Tests of the ring over real sockets: N workers in one process, each with its communication
 * thread. */
#include "common/random.h"
#include "worker/exchange/exchange.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_MAX   5
#define BUCKETS_MAX 4
#define STEPS       6

/* One worker: a trainer's thread and a communication thread, as in the program. */
struct worker {
    uint32_t rank, world;
    const struct layout *layout;
    float *params, *grads;
    struct channel *channel;
    uint64_t peers[WORLD_MAX];
    struct exchange *exchange;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    _Atomic uint32_t ready_count; // buckets posted in all
    _Atomic bool is_over;
    uint64_t step;                        // the trainer's
    uint64_t applied[LAYOUT_BUCKETS_MAX]; // times that each bucket was applied
    pthread_t communication, trainer;
};

static float gradient_of(uint32_t rank, uint64_t step, uint64_t index)
{
    uint64_t key = random_key(11, RANDOM_SPLIT, rank, step);
    return random_unit_float(random_element(key, (uint32_t)index)) - 0.5f;
}

/* The mean in ring order: what every rank must end a step with, bit by bit. */
static float mean_of(const struct layout *layout, uint32_t world, uint64_t step, uint64_t index)
{
    for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
        for (uint32_t chunk = 0; chunk < world; chunk++) {
            struct span span = span_part(layout->buckets[bucket], world, chunk);
            if (index < span.offset || index >= span.offset + span.count) {
                continue;
            }
            float sum = gradient_of(chunk, step, index);
            for (uint32_t k = 1; k < world; k++) {
                sum += gradient_of((chunk + k) % world, step, index);
            }
            return world == 1 ? sum : sum * (1.0f / (float)world);
        }
    }
    fail_msg("index %llu is in no bucket", (unsigned long long)index);
    return 0;
}

static void post_ready(void *context, uint32_t bucket)
{
    (void)bucket; // they come in order: the count says which
    struct worker *worker = context;
    worker->ready_count++;
    transport_wake(worker->channel->transport);
}

static void *communicate(void *data)
{
    struct worker *worker = data;
    uint32_t handled = 0;
    assert_int_equal(exchange_start(worker->exchange), STATUS_OK);
    while (!worker->is_over) {
        while (handled < worker->ready_count) {
            uint32_t bucket = handled++ % worker->layout->bucket_count;
            assert_int_equal(exchange_run_ready(worker->exchange, bucket), STATUS_OK);
        }
        assert_int_equal(exchange_go_on(worker->exchange), STATUS_OK);
        struct envelope envelope;
        struct message message;
        if (channel_receive(worker->channel, 1000, &envelope, &message) == STATUS_OK) {
            assert_int_equal(exchange_deliver(worker->exchange, &message, &envelope), STATUS_OK);
            envelope_release(&envelope);
        }
    }
    return NULL;
}

/* Checks the mean of a bucket, at the moment when it may be applied. */
static enum status check_mean(void *context, uint32_t bucket)
{
    struct worker *worker = context;
    struct span span = worker->layout->buckets[bucket];
    for (uint64_t i = span.offset; i < span.offset + span.count; i++) {
        float expected = mean_of(worker->layout, worker->world, worker->step, i);
        if (memcmp(&worker->grads[i], &expected, sizeof(expected)) != 0) {
            fail_msg("rank %u of %u, step %llu, value %llu: %a instead of %a", worker->rank,
                     worker->world, (unsigned long long)worker->step, (unsigned long long)i,
                     (double)worker->grads[i], (double)expected);
        }
    }
    worker->applied[bucket]++;
    return STATUS_OK;
}

static void *train(void *data)
{
    struct worker *worker = data;
    const struct layout *layout = worker->layout;
    for (uint64_t step = 0; step < STEPS; step++) {
        worker->step = step;
        assert_int_equal(exchange_begin_step(worker->exchange, step), STATUS_OK);
        for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
            struct span span = layout->buckets[bucket];
            for (uint64_t i = span.offset; i < span.offset + span.count; i++) {
                worker->grads[i] = gradient_of(worker->rank, step, i);
            }
            exchange_bucket_ready(worker->exchange, bucket);
        }
        assert_int_equal(exchange_end_step(worker->exchange, check_mean, worker), STATUS_OK);
        for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
            assert_int_equal(worker->applied[bucket], step + 1);
        }
    }
    return NULL;
}

static void open_worker(struct worker *worker, uint32_t rank, uint32_t world,
                        const struct layout *layout, const char *scheme)
{
    worker->rank = rank;
    worker->world = world;
    worker->layout = layout;
    worker->params = calloc(layout->value_count + 1, sizeof(float));
    worker->grads = calloc(layout->value_count + 1, sizeof(float));
    assert_int_equal(channel_create(&worker->channel), STATUS_OK);
    assert_int_equal(transport_bind(worker->channel->transport, scheme, worker->endpoint),
                     STATUS_OK);
}

/* Whoever it sends to, it is itself. */
static void connect_to_itself(struct worker *worker)
{
    for (uint32_t i = 0; i < WORLD_MAX; i++) {
        assert_int_equal(
            transport_connect(worker->channel->transport, worker->endpoint, &worker->peers[i]),
            STATUS_OK);
    }
}

/* Buckets of at most direct_floats_max go directly, larger ones round the ring. */
static void run_workers(uint32_t world, const struct layout *layout, const char *scheme,
                        uint64_t direct_floats_max)
{
    struct worker *workers = calloc(world, sizeof(*workers));
    for (uint32_t i = 0; i < world; i++) {
        open_worker(&workers[i], i, world, layout, scheme);
    }
    for (uint32_t i = 0; i < world; i++) {
        struct worker *worker = &workers[i];
        for (uint32_t k = 0; k < world; k++) {
            worker->peers[k] = EXCHANGE_NO_PEER;
            if (k != i && (direct_floats_max > 0 || k == (i + 1) % world)) {
                assert_int_equal(transport_connect(worker->channel->transport, workers[k].endpoint,
                                                   &worker->peers[k]),
                                 STATUS_OK);
            }
        }
        struct exchange_options options = {
            .mode = "ring",
            .rank = i,
            .world = world,
            .layout = layout,
            .params = worker->params,
            .grads = worker->grads,
            .channel = worker->channel,
            .direct_floats_max = direct_floats_max,
            .peers = worker->peers,
            .peer_count = world,
            .post_ready = post_ready,
            .context = worker,
        };
        assert_int_equal(exchange_create(&options, &worker->exchange), STATUS_OK);
    }
    for (uint32_t i = 0; i < world; i++) {
        pthread_create(&workers[i].communication, NULL, communicate, &workers[i]);
        pthread_create(&workers[i].trainer, NULL, train, &workers[i]);
    }
    for (uint32_t i = 0; i < world; i++) {
        pthread_join(workers[i].trainer, NULL);
    }
    for (uint32_t i = 0; i < world; i++) {
        workers[i].is_over = true;
        transport_wake(workers[i].channel->transport);
        pthread_join(workers[i].communication, NULL);
    }
    for (uint32_t i = 0; i < world; i++) {
        channel_destroy(workers[i].channel, 0);
        exchange_destroy(workers[i].exchange);
        free(workers[i].params);
        free(workers[i].grads);
    }
    free(workers);
}

static void every_rank_gets_the_mean_bit_by_bit_over_ipc(void **state)
{
    (void)state;
    // The second vector is shorter than the largest world, its first bucket a single float.
    struct layout large = {.value_count = 1003, .bucket_count = 3};
    large.buckets[0] = (struct span){700, 303};
    large.buckets[1] = (struct span){13, 687};
    large.buckets[2] = (struct span){0, 13};
    struct layout tiny = {.value_count = 4, .bucket_count = 2};
    tiny.buckets[0] = (struct span){3, 1};
    tiny.buckets[1] = (struct span){0, 3};
    const uint64_t limits[] = {0, 400, UINT64_MAX}; // the second: some of the buckets
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
            run_workers(world, &large, "ipc://*", limits[i]);
            run_workers(world, &tiny, "ipc://*", limits[i]);
        }
    }
}

static void every_rank_gets_the_mean_bit_by_bit_over_tcp_in_several_segments(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 900000, .bucket_count = 2};
    layout.buckets[0] = (struct span){100000, 800000};
    layout.buckets[1] = (struct span){0, 100000};
    for (uint32_t world = 2; world <= 3; world++) {
        run_workers(world, &layout, "tcp://127.0.0.1:*", 0);
        run_workers(world, &layout, "tcp://127.0.0.1:*", UINT64_MAX);
    }
}

static void a_stopped_exchange_waits_no_more(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 4, .bucket_count = 1, .buckets = {{0, 4}}};
    struct worker worker = {0};
    open_worker(&worker, 0, 2, &layout, "ipc://*");
    connect_to_itself(&worker);
    struct exchange_options options = {
        .mode = "ring",
        .world = 2,
        .layout = &layout,
        .params = worker.params,
        .grads = worker.grads,
        .channel = worker.channel,
        .peers = worker.peers,
        .peer_count = WORLD_MAX,
        .post_ready = post_ready,
        .context = &worker,
    };
    assert_int_equal(exchange_create(&options, &worker.exchange), STATUS_OK);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    assert_int_equal(exchange_end_step(worker.exchange, NULL, NULL), STATUS_INTERRUPTED);
    assert_int_equal(exchange_begin_step(worker.exchange, 1), STATUS_INTERRUPTED);
    assert_int_equal(exchange_stopped(worker.exchange), STATUS_INTERRUPTED);
    channel_destroy(worker.channel, 0);
    exchange_destroy(worker.exchange);
    free(worker.params);
    free(worker.grads);
}

/* A stop that came before the wait began: nobody will signal it again. */
static void an_earlier_stop_ends_the_wait_for_sends_as_well(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 4, .bucket_count = 1, .buckets = {{0, 4}}};
    struct worker worker = {0};
    open_worker(&worker, 0, 2, &layout, "ipc://*");
    struct exchange_options options = {
        .mode = "ps-sync",
        .world = 2,
        .layout = &layout,
        .params = worker.params,
        .grads = worker.grads,
        .channel = worker.channel,
        .post_ready = post_ready,
        .context = &worker,
    };
    assert_int_equal(exchange_create(&options, &worker.exchange), STATUS_OK);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    worker.exchange->sends_outstanding = 1;
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    assert_int_equal(exchange_end_step(worker.exchange, NULL, NULL), STATUS_INTERRUPTED);
    channel_destroy(worker.channel, 0);
    exchange_destroy(worker.exchange);
    free(worker.params);
    free(worker.grads);
}

/* What a neighbour must not send, to rank 1 of 3. */
static void chunks_that_do_not_fit_are_refused_and_change_nothing(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 9, .bucket_count = 1, .buckets = {{0, 9}}};
    struct worker worker = {0};
    open_worker(&worker, 1, 3, &layout, "ipc://*");
    connect_to_itself(&worker);
    struct exchange_options options = {
        .mode = "ring",
        .rank = 1,
        .world = 3,
        .layout = &layout,
        .params = worker.params,
        .grads = worker.grads,
        .channel = worker.channel,
        .peers = worker.peers,
        .peer_count = WORLD_MAX,
        .post_ready = post_ready,
        .context = &worker,
    };
    assert_int_equal(exchange_create(&options, &worker.exchange), STATUS_OK);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    const float values[3] = {1, 2, 3};
    const struct message good = {
        .kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {0, 3}, .values = values};
    const struct message bad[] = {
        {.kind = MESSAGE_PUSH, .rank = 0, .hop = 1, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 2, .hop = 1, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 0, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 5, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {3, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {0, 2}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {1, 2}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {9, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .bucket = 1, .span = {0, 3}, .values = values},
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .step = 2, .span = {0, 3}, .values = values},
    };
    struct envelope envelope;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(envelope_copy_floats(values, 3, &envelope), STATUS_OK);
        assert_int_equal(exchange_deliver(worker.exchange, &bad[i], &envelope), STATUS_MALFORMED);
        envelope_release(&envelope);
    }
    // The same good chunk again and again fills the room for early ones, and no more than that.
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(envelope_copy_floats(values, 3, &envelope), STATUS_OK);
        accepted += exchange_deliver(worker.exchange, &good, &envelope) == STATUS_OK;
        envelope_release(&envelope);
    }
    assert_in_range(accepted, 1, 100);
    channel_destroy(worker.channel, 0);
    exchange_destroy(worker.exchange);
    free(worker.params);
    free(worker.grads);
}

/* The values of others come out of turn, twice, and for a chunk that is somebody else's: rank 1 of
 * 3 owns chunk 1. */
static void values_that_come_out_of_turn_wait_for_it(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 9, .bucket_count = 1, .buckets = {{0, 9}}};
    struct worker worker = {0};
    open_worker(&worker, 1, 3, &layout, "ipc://*");
    connect_to_itself(&worker);
    struct exchange_options options = {
        .mode = "ring",
        .rank = 1,
        .world = 3,
        .layout = &layout,
        .params = worker.params,
        .grads = worker.grads,
        .channel = worker.channel,
        .direct_floats_max = UINT64_MAX,
        .peers = worker.peers,
        .peer_count = WORLD_MAX,
        .post_ready = post_ready,
        .context = &worker,
    };
    assert_int_equal(exchange_create(&options, &worker.exchange), STATUS_OK);
    assert_int_equal(exchange_begin_step(worker.exchange, 0), STATUS_OK);
    const float of_0[] = {1, 2, 3}, of_2[] = {0x1p-24f, 20, 30};
    const struct message steps[] = {
        {.kind = MESSAGE_CHUNK, .rank = 0, .hop = 1, .span = {3, 3}, .values = of_0},
        {.kind = MESSAGE_CHUNK, .rank = 2, .hop = 1, .span = {3, 3}, .values = of_2},
        {.kind = MESSAGE_CHUNK, .rank = 2, .hop = 1, .span = {0, 3}, .values = of_2},
        {.kind = MESSAGE_CHUNK, .rank = 1, .hop = 1, .span = {3, 3}, .values = of_2},
        {.kind = MESSAGE_CHUNK, .rank = 2, .hop = 2, .span = {3, 3}, .values = of_2},
    };
    const enum status answers[] = {STATUS_OK, STATUS_OK, STATUS_MALFORMED, STATUS_MALFORMED,
                                   STATUS_MALFORMED};
    worker.grads[3] = 1;
    assert_int_equal(exchange_run_ready(worker.exchange, 0), STATUS_OK);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct envelope envelope;
        assert_int_equal(envelope_copy_floats(steps[i].values, 3, &envelope), STATUS_OK);
        assert_int_equal(exchange_deliver(worker.exchange, &steps[i], &envelope), answers[i]);
        envelope_release(&envelope);
    }
    // First rank 1's, then rank 2's, which alone is lost in the rounding, then rank 0's.
    assert_true(worker.grads[3] == (1.0f + 0x1p-24f + 1.0f) * (1.0f / 3));
    assert_true(worker.grads[4] == 22 * (1.0f / 3));
    channel_destroy(worker.channel, 0);
    exchange_destroy(worker.exchange);
    free(worker.params);
    free(worker.grads);
}

/* Steps that a thread of its own begins, one after the other, as soon as it may. */
struct beginning {
    struct exchange *exchange;
    _Atomic uint64_t allowed, begun; // so many steps
};

enum { RACES = 40000, SPINS_MAX = 500 };

static void *begin_steps(void *data)
{
    struct beginning *beginning = data;
    for (uint64_t step = 0; step < RACES; step++) {
        for (uint32_t spins = 0; beginning->allowed <= step; spins++) {
            if (spins > SPINS_MAX) {
                sched_yield();
            }
        }
        if (exchange_begin_step(beginning->exchange, step) != STATUS_OK) {
            break;
        }
        beginning->begun = step + 1;
    }
    return NULL;
}

/* A neighbour that has finished a step sends its first segment of the next one, which this worker's
 * trainer begins at that very moment. */
static void a_segment_of_the_step_that_just_begins_is_taken(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 2, .bucket_count = 1, .buckets = {{0, 2}}};
    struct worker worker = {0};
    open_worker(&worker, 0, 2, &layout, "ipc://*");
    connect_to_itself(&worker);
    struct exchange_options options = {
        .mode = "ring",
        .world = 2,
        .layout = &layout,
        .params = worker.params,
        .grads = worker.grads,
        .channel = worker.channel,
        .peers = worker.peers,
        .peer_count = WORLD_MAX,
        .post_ready = post_ready,
        .context = &worker,
    };
    assert_int_equal(exchange_create(&options, &worker.exchange), STATUS_OK);
    struct beginning beginning = {.exchange = worker.exchange};
    pthread_t thread;
    pthread_create(&thread, NULL, begin_steps, &beginning);
    uint32_t refused = 0;
    for (uint64_t step = 0; step < RACES; step++) {
        const float value = 1;
        struct envelope envelope;
        struct message message;
        beginning.allowed = step + 1;
        // Some of so many delays meet the moment.
        for (uint64_t i = 0; i < step % SPINS_MAX && beginning.begun <= step; i++) {
        }
        for (uint32_t hop = 1; hop <= 2; hop++) {
            message = (struct message){.kind = MESSAGE_CHUNK,
                                       .rank = 1,
                                       .step = step,
                                       .hop = hop,
                                       .span = {hop % 2, 1},
                                       .values = &value};
            assert_int_equal(envelope_copy_floats(&value, 1, &envelope), STATUS_OK);
            refused += exchange_deliver(worker.exchange, &message, &envelope) != STATUS_OK;
            envelope_release(&envelope);
            while (hop == 1 && beginning.begun <= step) {
                sched_yield();
            }
            if (hop == 1) {
                assert_int_equal(exchange_run_ready(worker.exchange, 0), STATUS_OK);
            }
        }
        if (refused > 0) {
            break;
        }
        // What it sent to itself, to be sent: the next step waits for that.
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(channel_receive(worker.channel, 10000, &envelope, &message),
                             STATUS_OK);
            envelope_release(&envelope);
        }
    }
    exchange_stop(worker.exchange, STATUS_INTERRUPTED);
    beginning.allowed = RACES;
    pthread_join(thread, NULL);
    assert_int_equal(refused, 0);
    channel_destroy(worker.channel, 0);
    exchange_destroy(worker.exchange);
    free(worker.params);
    free(worker.grads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_gets_the_mean_bit_by_bit_over_ipc),
        cmocka_unit_test(every_rank_gets_the_mean_bit_by_bit_over_tcp_in_several_segments),
        cmocka_unit_test(a_stopped_exchange_waits_no_more),
        cmocka_unit_test(an_earlier_stop_ends_the_wait_for_sends_as_well),
        cmocka_unit_test(chunks_that_do_not_fit_are_refused_and_change_nothing),
        cmocka_unit_test(values_that_come_out_of_turn_wait_for_it),
        cmocka_unit_test(a_segment_of_the_step_that_just_begins_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
