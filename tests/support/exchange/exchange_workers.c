/* The threads of workers, and what they check. */
#include "tests/support/exchange/exchange_workers.h"

#include "common/base/clock.h"
#include "common/base/random.h"
#include "tests/support/common/float_envelope.h"
#include "tests/support/common/insecure.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define STEPS 6

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

static void post_ready(void *context, uint32_t first, uint32_t count)
{
    (void)first; // they come in order: the count says which
    struct exchange_worker *worker = context;
    worker->ready_count += count;
    transport_wake(worker->channel->transport);
}

static void *communicate(void *data)
{
    struct exchange_worker *worker = data;
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
    struct exchange_worker *worker = context;
    struct span span = worker->layout->buckets[bucket];
    uint64_t end = worker->has_codes ? span.offset : span.offset + span.count;
    for (uint64_t i = span.offset; i < end; i++) {
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

static struct rank_block block_of(const struct exchange_worker *worker)
{
    return carriers_block(worker->carriers, carriers_process(worker->carriers, worker->rank));
}

/* Gradients of a bucket, of one of the ranks that a worker carries. */
static void compute(struct exchange_worker *worker, uint32_t index, struct span span)
{
    for (uint64_t i = span.offset; i < span.offset + span.count; i++) {
        worker->vectors[index][i] = gradient_of(worker->rank + index, worker->step, i);
    }
}

static void *train(void *data)
{
    struct exchange_worker *worker = data;
    const struct layout *layout = worker->layout;
    uint32_t last = block_of(worker).count - 1;
    worker->digest = LAYOUT_DIGEST_SEED;
    for (uint64_t step = 0; step < STEPS; step++) {
        worker->step = step;
        uint64_t began_ns = clock_now_ns();
        assert_int_equal(exchange_begin_step(worker->exchange, step), STATUS_OK);
        for (uint32_t i = 0; i < last; i++) {
            compute(worker, i, (struct span){0, layout->value_count});
        }
        for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
            compute(worker, last, layout->buckets[bucket]);
            exchange_buckets_ready(worker->exchange, bucket, 1);
        }
        assert_int_equal(exchange_end_step(worker->exchange, check_mean, worker), STATUS_OK);
        for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
            assert_int_equal(worker->applied[bucket], step + 1);
        }
        bool is_alone = worker->carriers.processes == 1; // and then nothing travels
        assert_in_range(exchange_take_wire_ns(worker->exchange), is_alone ? 0 : 1,
                        is_alone ? 0 : clock_now_ns() - began_ns);
        worker->digest =
            layout_digest_add(worker->digest, worker->grads, layout->value_count * sizeof(float));
    }
    return NULL;
}

static void open_at(struct exchange_worker *worker, const char *scheme)
{
    assert_int_equal(callers_init(&worker->callers, worker->carriers, LANES_MAX), STATUS_OK);
    worker->params = calloc(worker->layout->value_count + 1, sizeof(float));
    for (uint32_t i = 0; i < block_of(worker).count; i++) {
        worker->vectors[i] = calloc(worker->layout->value_count + 1, sizeof(float));
        worker->grads = worker->vectors[i];
    }
    assert_int_equal(channel_create(&worker->channel), STATUS_OK);
    assert_int_equal(channel_secure(worker->channel, &test_insecure), STATUS_OK);
    assert_int_equal(transport_bind(worker->channel->transport, scheme, worker->endpoint),
                     STATUS_OK);
}

static void connect_to(struct exchange_worker *worker, uint32_t rank, const char *endpoint)
{
    struct lanes *lanes = &worker->peers[rank];
    assert_int_equal(
        transport_connect(worker->channel->transport, endpoint, &lanes->peers[lanes->count++]),
        STATUS_OK);
}

struct exchange_options exchange_worker_options(struct exchange_worker *worker)
{
    return (struct exchange_options){
        .mode = MODE_RING,
        .rank = worker->rank,
        .world = worker->world,
        .layout = worker->layout,
        .params = worker->params,
        .grads = worker->grads,
        .processes = worker->carriers.processes,
        .vectors = worker->vectors,
        .channel = worker->channel,
        .peers = worker->peers,
        .peer_count = worker->carriers.processes,
        .callers = &worker->callers,
        .post_ready = post_ready,
        .context = worker,
    };
}

void exchange_worker_open(struct exchange_worker *worker, uint32_t rank, uint32_t world,
                          const struct layout *layout)
{
    exchange_carrier_open(worker, rank, (struct carriers){.ranks = world, .processes = world},
                          layout);
}

static struct exchange_worker worker_of(struct carriers carriers, uint32_t process,
                                        const struct layout *layout)
{
    return (struct exchange_worker){.rank = carriers_block(carriers, process).first,
                                    .world = carriers.ranks,
                                    .carriers = carriers,
                                    .layout = layout};
}

void exchange_carrier_open(struct exchange_worker *worker, uint32_t process,
                           struct carriers carriers, const struct layout *layout)
{
    *worker = worker_of(carriers, process, layout);
    open_at(worker, "ipc://*");
    for (uint32_t i = 0; i < carriers.processes; i++) {
        const struct wire_hello lane = {0};
        uint32_t first = carriers_block(carriers, i).first;
        const struct message hello = {.kind = MESSAGE_HELLO, .rank = first, .hello = &lane};
        bool is_new;
        assert_int_equal(
            callers_meet(&worker->callers, &hello, exchange_played_peer(first), &is_new),
            STATUS_OK);
    }
    for (uint32_t i = 0; i < EXCHANGE_WORLD_MAX; i++) {
        connect_to(worker, i, worker->endpoint);
    }
}

void exchange_worker_create(struct exchange_worker *worker, const struct exchange_options *options)
{
    assert_int_equal(exchange_create(options, &worker->exchange), STATUS_OK);
}

void exchange_worker_close(struct exchange_worker *worker)
{
    channel_destroy(worker->channel, 0);
    exchange_destroy(worker->exchange);
    callers_finish(&worker->callers);
    free(worker->params);
    for (uint32_t i = 0; i < block_of(worker).count; i++) {
        free(worker->vectors[i]);
    }
}

enum status exchange_worker_deliver_from(struct exchange_worker *worker, uint64_t peer,
                                         const struct message *message)
{
    struct envelope envelope;
    struct message copy = *message;
    // An envelope of floats has room for encoded bytes as well.
    size_t bytes =
        message->encoded != NULL ? message->encoded_bytes : message->span.count * sizeof(float);
    float *floats = calloc(bytes / sizeof(float) + 1, sizeof(float));
    assert_non_null(floats);
    memcpy(floats, message->encoded != NULL ? message->encoded : message->values, bytes);
    assert_int_equal(float_envelope_make(floats, bytes / sizeof(float) + 1, &envelope), STATUS_OK);
    free(floats);
    envelope.peer = peer;
    copy.values = message->encoded != NULL ? NULL : envelope.payload;
    copy.encoded = message->encoded != NULL ? envelope.payload : NULL;
    enum status status = exchange_deliver(worker->exchange, &copy, &envelope);
    envelope_release(&envelope);
    return status;
}

enum status exchange_worker_deliver(struct exchange_worker *worker, const struct message *message)
{
    uint32_t process = carriers_process(worker->carriers, message->rank % worker->world);
    uint32_t first = carriers_block(worker->carriers, process).first;
    uint64_t peer = exchange_played_peer(message->rank < worker->world ? first : message->rank);
    return exchange_worker_deliver_from(worker, peer, message);
}

/* The processes of a job. */
static uint32_t count_of(const struct exchange_job *job)
{
    return job->processes > 0 ? job->processes : job->world;
}

static void connect_by_limits(struct exchange_worker *workers, uint32_t process,
                              const struct exchange_job *job)
{
    enum all_reduce widest = all_reduce_widest(&job->limits);
    uint32_t count = count_of(job);
    if (widest == ALL_REDUCE_HALVING && count < job->world) {
        widest = ALL_REDUCE_DIRECT; // as the coordinator has it
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t other = (process + k) % count;
        bool meets = k > 0 && all_reduce_meets(widest, count, k);
        for (uint32_t i = 0; meets && i < (job->connections > 0 ? job->connections : 1); i++) {
            connect_to(&workers[process], other, workers[other].endpoint);
        }
    }
}

uint64_t exchange_workers_run(const struct exchange_job *job)
{
    uint32_t count = count_of(job);
    struct exchange_worker *workers = calloc(count, sizeof(*workers));
    assert_non_null(workers);
    for (uint32_t i = 0; i < count; i++) {
        workers[i] =
            worker_of((struct carriers){.ranks = job->world, .processes = count}, i, job->layout);
        workers[i].has_codes = job->codec.kind != CODEC_NONE;
        open_at(&workers[i], job->scheme);
    }
    for (uint32_t i = 0; i < count; i++) {
        connect_by_limits(workers, i, job);
        struct exchange_options options = exchange_worker_options(&workers[i]);
        options.limits = job->limits;
        options.codec = job->codec;
        exchange_worker_create(&workers[i], &options);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_create(&workers[i].communication, NULL, communicate, &workers[i]);
        pthread_create(&workers[i].trainer, NULL, train, &workers[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(workers[i].trainer, NULL);
    }
    for (uint32_t i = 0; i < count; i++) {
        workers[i].is_over = true;
        transport_wake(workers[i].channel->transport);
        pthread_join(workers[i].communication, NULL);
    }
    uint64_t digest = workers[0].digest;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(workers[i].digest == digest);
        exchange_worker_close(&workers[i]);
    }
    free(workers);
    return digest;
}
