/* Tests of the shard: any interleaving of the workers gives the same bits, those of the ring. */
#include "common/base/random.h"
#include "common/job/carriers.h"
#include "common/optimizer/optimizer.h"
#include "ps-server/shard/shard.h"
#include "tests/support/common/choices.h"
#include "tests/support/common/float_envelope.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES      61
#define BUCKETS     3
#define WORKERS_MAX 5

static const struct span buckets[BUCKETS] = {{40, 21}, {2, 38}, {0, 2}};

/* A whole job in memory: K shards and N workers, one step after the other. */
struct cluster {
    uint32_t workers, shard_count;
    uint32_t processes; // that carry the workers' ranks: each pulls as its first one; 0: as many
    struct shard *shards[4];
    float params[WORKERS_MAX][VALUES];  // what each worker was sent
    uint32_t params_count[WORKERS_MAX]; // floats of the next step that have come
};

static float gradient_of(uint32_t rank, uint64_t step, uint64_t index)
{
    uint64_t key = random_key(7, RANDOM_SPLIT, rank, step);
    if (index == 5) {
        return -0.0f;
    }
    return random_unit_float(random_element(key, (uint32_t)index)) - 0.5f;
}

static struct shard_config config_of(uint32_t workers, uint32_t shard_count, uint32_t index)
{
    struct shard_config config = {
        .index = index,
        .shard_count = shard_count,
        .workers = workers,
        .layout = {.value_count = VALUES, .bucket_count = BUCKETS},
        .schedule = {.base_rate = 0.1, .start_rate = 0.1},
        .optimizer = OPTIMIZER_MOMENTUM,
        .settings = {.momentum = 0.9},
    };
    memcpy(config.layout.buckets, buckets, sizeof(buckets));
    assert_int_equal(consistency_find(mode_of("ps-sync"), &config.consistency), STATUS_OK);
    return config;
}

static void take_params(void *context, uint32_t rank, const struct message *message)
{
    struct cluster *cluster = context;
    assert_int_equal(message->kind, MESSAGE_PARAMS);
    assert_int_equal(message->rank, rank);
    memcpy(cluster->params[rank] + message->span.offset, message->values,
           message->span.count * sizeof(float));
    cluster->params_count[rank] += (uint32_t)message->span.count;
}

static enum status give(struct cluster *cluster, enum message_kind kind, uint32_t rank,
                        uint64_t step, uint32_t bucket, uint32_t shard)
{
    float values[VALUES];
    struct message message = {
        .kind = kind,
        .rank = rank,
        .step = step,
        .bucket = bucket,
        .span = span_part(buckets[bucket], cluster->shard_count, shard),
    };
    if (message.span.count == 0) {
        return STATUS_OK;
    }
    for (uint64_t i = 0; i < message.span.count; i++) {
        values[i] = kind == MESSAGE_SEED ? (float)(message.span.offset + i)
                                         : gradient_of(rank, step, message.span.offset + i);
    }
    struct envelope envelope;
    assert_int_equal(float_envelope_make(values, message.span.count, &envelope), STATUS_OK);
    message.values = kind == MESSAGE_PULL ? NULL : envelope.payload;
    enum status status =
        shard_receive(cluster->shards[shard], &message, &envelope, take_params, cluster);
    envelope_release(&envelope);
    return status;
}

static void cluster_open(struct cluster *cluster, uint32_t workers, uint32_t shard_count)
{
    *cluster = (struct cluster){.workers = workers, .shard_count = shard_count};
    for (uint32_t k = 0; k < shard_count; k++) {
        struct shard_config config = config_of(workers, shard_count, k);
        assert_int_equal(shard_create(&config, &cluster->shards[k]), STATUS_OK);
        for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
            assert_int_equal(give(cluster, MESSAGE_SEED, 0, 0, bucket, k), STATUS_OK);
        }
    }
}

static void cluster_close(struct cluster *cluster)
{
    for (uint32_t k = 0; k < cluster->shard_count; k++) {
        shard_destroy(cluster->shards[k]);
    }
}

/* Whether a rank is the one as which its process pulls. */
static bool pulls(const struct cluster *cluster, uint32_t rank)
{
    uint32_t processes = cluster->processes > 0 ? cluster->processes : cluster->workers;
    const struct carriers carriers = {cluster->workers, processes};
    return carriers_block(carriers, carriers_process(carriers, rank)).first == rank;
}

/* Every rank pushes and every process pulls every part of a step, in an order drawn from `random`.
 */
static void run_step(struct cluster *cluster, uint64_t step, struct random_sequence *random)
{
    uint32_t order[WORKERS_MAX * BUCKETS * 4];
    uint32_t count = cluster->workers * BUCKETS * cluster->shard_count;
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = (uint32_t)random_below(random, i), swap = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swap;
    }
    memset(cluster->params_count, 0, sizeof(cluster->params_count));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = order[i] % cluster->workers;
        uint32_t bucket = order[i] / cluster->workers % BUCKETS;
        uint32_t shard = order[i] / cluster->workers / BUCKETS;
        assert_int_equal(give(cluster, MESSAGE_PUSH, rank, step, bucket, shard), STATUS_OK);
        if (pulls(cluster, rank)) {
            assert_int_equal(give(cluster, MESSAGE_PULL, rank, step + 1, bucket, shard), STATUS_OK);
        }
    }
}

/* What a ring all-reduce gives. */
static void expected_mean(uint32_t workers, uint64_t step, float *mean)
{
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        for (uint32_t chunk = 0; chunk < workers; chunk++) {
            struct span span = span_part(buckets[bucket], workers, chunk);
            for (uint64_t i = span.offset; i < span.offset + span.count; i++) {
                mean[i] = gradient_of(chunk, step, i);
                for (uint32_t k = 1; k < workers; k++) {
                    mean[i] += gradient_of((chunk + k) % workers, step, i);
                }
                mean[i] *= 1.0f / (float)workers;
            }
        }
    }
}

/* With the same optimizer. */
static void expected_params(uint32_t workers, uint64_t steps, float *params)
{
    struct optimizer *optimizer;
    struct optimizer_settings settings = {.momentum = 0.9};
    assert_int_equal(optimizer_create(OPTIMIZER_MOMENTUM, &settings, VALUES, &optimizer),
                     STATUS_OK);
    for (uint64_t i = 0; i < VALUES; i++) {
        params[i] = (float)i;
    }
    for (uint64_t step = 0; step < steps; step++) {
        float mean[VALUES];
        expected_mean(workers, step, mean);
        optimizer_apply(optimizer, (struct span){0, VALUES}, params, mean, step + 1, 0.1);
    }
    optimizer_destroy(optimizer);
}

static void any_interleaving_gives_the_bits_of_the_ring(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random_sequence random = {.state = seed};
        struct cluster cluster;
        uint32_t workers = 1 + (uint32_t)random_below(&random, WORKERS_MAX);
        uint32_t shard_count = 1 + (uint32_t)random_below(&random, 4);
        cluster_open(&cluster, workers, shard_count);
        cluster.processes = 1 + (uint32_t)random_below(&random, workers);
        for (uint64_t step = 0; step < 4; step++) {
            run_step(&cluster, step, &random);
            float expected[VALUES];
            expected_params(workers, step + 1, expected);
            for (uint32_t rank = 0; rank < workers; rank++) {
                bool has_pulled = pulls(&cluster, rank);
                if (cluster.params_count[rank] != (has_pulled ? VALUES : 0) ||
                    (has_pulled && memcmp(cluster.params[rank], expected, sizeof(expected)) != 0)) {
                    fail_msg("seed %llu: rank %u of %u, %u shards, step %llu",
                             (unsigned long long)seed, rank, workers, shard_count,
                             (unsigned long long)step);
                }
            }
        }
        for (uint32_t k = 0; k < shard_count; k++) {
            assert_int_equal(shard_version(cluster.shards[k]), 4);
        }
        cluster_close(&cluster);
    }
}

/* Bit for bit, even where a gradient is -0, and without a seed. */
static void a_shard_that_makes_no_updates_hands_back_the_mean(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 4; workers++) {
        struct random_sequence random = {.state = workers};
        struct cluster cluster = {.workers = workers, .shard_count = 1 + workers % 2};
        for (uint32_t k = 0; k < cluster.shard_count; k++) {
            struct shard_config config = config_of(workers, cluster.shard_count, k);
            config.hands_back_means = true;
            assert_int_equal(shard_create(&config, &cluster.shards[k]), STATUS_OK);
            assert_int_equal(give(&cluster, MESSAGE_SEED, 0, 0, 0, k), STATUS_MALFORMED);
        }
        for (uint64_t step = 0; step < 3; step++) {
            float expected[VALUES];
            run_step(&cluster, step, &random);
            expected_mean(workers, step, expected);
            for (uint32_t rank = 0; rank < workers; rank++) {
                assert_int_equal(cluster.params_count[rank], VALUES);
                assert_memory_equal(cluster.params[rank], expected, sizeof(expected));
            }
        }
        cluster_close(&cluster);
    }
}

static void nobody_reads_before_all_have_pushed(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 2, 1);
    assert_int_equal(give(&cluster, MESSAGE_PUSH, 0, 0, 0, 0), STATUS_OK);
    assert_int_equal(give(&cluster, MESSAGE_PULL, 0, 1, 0, 0), STATUS_OK);
    assert_int_equal(cluster.params_count[0], 0);
    assert_int_equal(give(&cluster, MESSAGE_PUSH, 1, 0, 0, 0), STATUS_OK);
    assert_int_equal(cluster.params_count[0], buckets[0].count);
    assert_int_equal(cluster.params_count[1], 0); // it has not asked
    cluster_close(&cluster);
}

static void what_the_protocol_does_not_allow_changes_nothing(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 2, 1);
    assert_int_equal(give(&cluster, MESSAGE_PUSH, 0, 0, 0, 0), STATUS_OK);
    assert_int_equal(give(&cluster, MESSAGE_PUSH, 0, 0, 0, 0), STATUS_MALFORMED); // twice
    assert_int_equal(give(&cluster, MESSAGE_PUSH, 1, 1, 0, 0), STATUS_MALFORMED); // too early
    assert_int_equal(give(&cluster, MESSAGE_PUSH, 7, 0, 0, 0), STATUS_MALFORMED); // nobody
    assert_int_equal(give(&cluster, MESSAGE_SEED, 0, 0, 0, 0), STATUS_MALFORMED); // twice
    assert_int_equal(give(&cluster, MESSAGE_SEED, 1, 0, 0, 0), STATUS_MALFORMED); // not rank 0
    assert_int_equal(give(&cluster, MESSAGE_CHUNK, 1, 0, 0, 0), STATUS_MALFORMED);
    assert_int_equal(give(&cluster, MESSAGE_PULL, 0, 1, 0, 0), STATUS_OK);
    assert_int_equal(give(&cluster, MESSAGE_PULL, 0, 1, 0, 0), STATUS_MALFORMED); // twice
    assert_int_equal(give(&cluster, MESSAGE_PUSH, 1, 0, 0, 0), STATUS_OK);
    float expected[VALUES];
    expected_params(2, 1, expected);
    assert_memory_equal(cluster.params[0] + buckets[0].offset, expected + buckets[0].offset,
                        buckets[0].count * sizeof(float));
    cluster_close(&cluster);
}

static void a_push_before_the_seed_is_refused(void **state)
{
    (void)state;
    struct cluster cluster = {.workers = 1, .shard_count = 1};
    struct shard_config config = config_of(1, 1, 0);
    assert_int_equal(shard_create(&config, &cluster.shards[0]), STATUS_OK);
    assert_int_equal(give(&cluster, MESSAGE_PUSH, 0, 0, 0, 0), STATUS_MALFORMED);
    cluster_close(&cluster);
}

static void more_shards_than_floats_leave_some_empty(void **state)
{
    (void)state;
    struct shard_config config = config_of(1, 100, 99);
    struct shard *shard;
    assert_int_equal(shard_create(&config, &shard), STATUS_OK);
    struct span span;
    shard_params(shard, 0, &span);
    assert_int_equal(span.count, 0);
    assert_int_equal(shard_version(shard), 0);
    shard_destroy(shard);
}

/* Over several connections the seed of one bucket may come behind the pushes of another. */
static void a_bucket_is_answered_before_others_are_seeded(void **state)
{
    (void)state;
    struct cluster cluster = {.workers = 2, .shard_count = 1};
    struct shard_config config = config_of(2, 1, 0);
    assert_int_equal(shard_create(&config, &cluster.shards[0]), STATUS_OK);
    uint64_t answered = 0;
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        answered += buckets[bucket].count;
        assert_int_equal(give(&cluster, MESSAGE_PUSH, 0, 0, bucket, 0), STATUS_MALFORMED);
        assert_int_equal(give(&cluster, MESSAGE_PUSH, 1, 0, bucket, 0), STATUS_OK);
        assert_int_equal(give(&cluster, MESSAGE_SEED, 0, 0, bucket, 0), STATUS_OK);
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(give(&cluster, MESSAGE_PULL, rank, 1, bucket, 0), STATUS_OK);
        }
        assert_int_equal(give(&cluster, MESSAGE_PUSH, 0, 0, bucket, 0), STATUS_OK);
        assert_int_equal(cluster.params_count[0], answered);
        assert_int_equal(cluster.params_count[1], answered);
    }
    cluster_close(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_interleaving_gives_the_bits_of_the_ring),
        cmocka_unit_test(a_shard_that_makes_no_updates_hands_back_the_mean),
        cmocka_unit_test(nobody_reads_before_all_have_pushed),
        cmocka_unit_test(what_the_protocol_does_not_allow_changes_nothing),
        cmocka_unit_test(a_push_before_the_seed_is_refused),
        cmocka_unit_test(more_shards_than_floats_leave_some_empty),
        cmocka_unit_test(a_bucket_is_answered_before_others_are_seeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
