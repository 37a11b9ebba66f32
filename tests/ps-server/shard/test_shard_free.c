/* Properties of a shard where every push is an update, over thousands of interleavings. */
#include "common/base/random.h"
#include "tests/support/common/float_envelope.h"
#include "tests/support/ps-server/shard_cluster.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

/* Every update was made once: the parameters say so, and the histogram. */
static void check_end(const struct cluster *cluster)
{
    uint64_t total = cluster_gradient_total(&cluster->config);
    struct span span;
    assert_int_equal(shard_version(cluster->shards[0]), total);
    assert_true(shard_params(cluster->shards[0], 0, &span)[0] == -(float)total);
    assert_int_equal(shard_staleness(cluster->shards[0])->total, total);
    assert_int_equal(total + shard_late_count(cluster->shards[0]), cluster->whole_pushes[0]);
}

static void any_interleaving_loses_no_push_and_tears_no_read(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:0", "ps-ssp:1", "ps-ssp:3"};
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 0, 0)};
        struct cluster cluster;
        uint32_t workers = 1 + (uint32_t)random_below(&random, CLUSTER_WORKERS_MAX);
        struct shard_config config = cluster_config(modes[seed % 4], "free", workers);
        config.processes = 1 + (uint32_t)random_below(&random, workers);
        config.marks.end = 1 + random_below(&random, 12);
        config.marks.period = config.marks.end;
        cluster_open(&cluster, &config, seed);
        cluster_run(&cluster);
        check_end(&cluster);
        assert_memory_equal(shard_staleness(cluster.shards[0])->counts, cluster.staleness_counts,
                            sizeof(cluster.staleness_counts));
        cluster_close(&cluster);
    }
}

/* The bound is kept in check_answer; here: who is within it is answered at once. */
static void nobody_waits_within_the_bound(void **state)
{
    (void)state;
    for (uint64_t slack = 0; slack < 4; slack++) {
        char mode[16];
        snprintf(mode, sizeof(mode), "ps-ssp:%llu", (unsigned long long)slack);
        struct shard_config config = cluster_config(mode, "free", 2);
        config.marks.end = config.marks.period = 50;
        struct cluster cluster;
        cluster_open(&cluster, &config, slack);
        for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++) {
            cluster_deliver(&cluster, 0, 0); // the seeds
        }
        // Rank 1 never pushes: rank 0 gets so far ahead as it may, and no farther.
        while (cluster.workers[0].queues[0].count > 0) {
            cluster_deliver(&cluster, 0, 0);
        }
        assert_int_equal(cluster.applied[0], slack + 1);
        cluster_close(&cluster);
    }
}

static void marks_are_kept_for_every_worker_and_nobody_hangs(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:0", "ps-ssp:2"};
    static const char *const orders[] = {"free", "seeded:uniform:0..5", "seeded:round-robin"};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 1, 0)};
        struct cluster cluster;
        uint32_t workers = 1 + (uint32_t)random_below(&random, CLUSTER_WORKERS_MAX);
        struct shard_config config = cluster_config(modes[seed % 3], orders[seed / 3 % 3], workers);
        config.keeps_marks = true;
        config.processes = 1 + (uint32_t)random_below(&random, workers);
        config.marks.end = 1 + random_below(&random, 12);
        config.marks.period = 1 + random_below(&random, 4);
        cluster_open(&cluster, &config, seed);
        cluster_run(&cluster);
        check_end(&cluster);
        cluster_close(&cluster);
    }
}

static void a_seeded_order_has_the_staleness_that_was_drawn(void **state)
{
    (void)state;
    static const char *const orders[] = {"seeded:constant:0", "seeded:constant:7",
                                         "seeded:uniform:1..6", "seeded:geometric:0.3",
                                         "seeded:round-robin"};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct cluster cluster;
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 2, 0)};
        uint32_t workers = 1 + (uint32_t)random_below(&random, CLUSTER_WORKERS_MAX);
        struct shard_config config = cluster_config("ps-async", orders[seed % 5], workers);
        config.processes = 1 + (uint32_t)random_below(&random, workers);
        config.marks.end = 12;
        config.marks.period = 5;
        config.keeps_marks = seed % 2 == 0;
        uint64_t expected[STALENESS_BINS] = {0};
        for (uint64_t t = 1; t <= cluster_gradient_total(&config); t++) {
            expected[t - 1 - order_version(&config.order, config.seed, workers, t)]++;
        }
        cluster_open(&cluster, &config, seed);
        cluster_run(&cluster);
        check_end(&cluster);
        assert_int_equal(shard_late_count(cluster.shards[0]), 0);
        assert_memory_equal(shard_staleness(cluster.shards[0])->counts, expected, sizeof(expected));
        cluster_close(&cluster);
    }
}

/* With c gradients an update, an update moves parameters by their mean: 1 again. */
static void an_update_takes_so_many_gradients_and_the_last_one_what_is_left(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 3, 0)};
        struct cluster cluster;
        uint32_t workers = 1 + (uint32_t)random_below(&random, CLUSTER_WORKERS_MAX);
        uint32_t each = 1 + (uint32_t)random_below(&random, workers);
        struct shard_config config = cluster_config("ps-async", "free", workers);
        config.processes = 1 + (uint32_t)random_below(&random, workers);
        config.gradients_per_update = each;
        config.marks.end = 1 + random_below(&random, 12);
        config.marks.period = config.marks.end;
        cluster_open(&cluster, &config, seed);
        cluster.has_sums = true;
        cluster_run(&cluster);
        uint64_t updates = (cluster_gradient_total(&config) + each - 1) / each;
        assert_int_equal(shard_version(cluster.shards[0]), updates);
        assert_int_equal(shard_staleness(cluster.shards[0])->total,
                         cluster_gradient_total(&config));
        cluster_close(&cluster);
    }
}

static void expect_no_answer(void *context, uint32_t rank, const struct message *message)
{
    (void)context;
    fail_msg("rank %u is answered for step %llu", rank, (unsigned long long)message->step);
}

static void pull(struct shard *shard, uint32_t rank, uint64_t step, shard_send_fn *send,
                 void *context)
{
    for (uint32_t bucket = 0; bucket < CLUSTER_BUCKETS; bucket++) {
        const struct shard_config *config = shard_config(shard);
        const struct message message = {.kind = MESSAGE_PULL,
                                        .rank = rank,
                                        .step = step,
                                        .bucket = bucket,
                                        .span = config->layout.buckets[bucket]};
        struct envelope envelope = {0};
        assert_int_equal(shard_receive(shard, &message, &envelope, send, context), STATUS_OK);
    }
}

static void note_outcome(void *context, uint32_t rank, const struct message *message)
{
    (void)rank;
    *(struct wire_outcome *)context = *message->outcome;
}

/* A process that carries ranks 0 and 1 pulls for the second as soon as it has pushed for the first:
 * what it gets is what its own gradient has made, and says what became of that. */
static void a_rank_is_answered_when_the_one_before_it_was_applied(void **state)
{
    (void)state;
    struct shard_config config = cluster_config("ps-async", "free", 3);
    struct cluster cluster;
    config.processes = 2;
    config.marks.end = config.marks.period = 50;
    cluster_open(&cluster, &config, 1);
    for (uint32_t i = 0; i < CLUSTER_BUCKETS; i++) {
        cluster_deliver(&cluster, 0, 0); // the seeds
    }
    pull(cluster.shards[0], 1, 0, expect_no_answer, NULL);
    struct wire_outcome outcome = {.staleness = UINT64_MAX};
    for (uint32_t bucket = 0; bucket < CLUSTER_BUCKETS; bucket++) {
        const float ones[CLUSTER_VALUES] = {1};
        struct message push = {
            .kind = MESSAGE_PUSH, .bucket = bucket, .span = config.layout.buckets[bucket]};
        struct envelope envelope;
        assert_int_equal(float_envelope_make(ones, push.span.count, &envelope), STATUS_OK);
        push.values = envelope.payload;
        bool is_last = bucket + 1 == CLUSTER_BUCKETS;
        assert_int_equal(shard_receive(cluster.shards[0], &push, &envelope,
                                       is_last ? note_outcome : expect_no_answer, &outcome),
                         STATUS_OK);
    }
    assert_int_equal(outcome.staleness, 0);
    assert_true(outcome.rate == 1); // that of rank 0's, as rank 1 has had none
    cluster_close(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_interleaving_loses_no_push_and_tears_no_read),
        cmocka_unit_test(nobody_waits_within_the_bound),
        cmocka_unit_test(marks_are_kept_for_every_worker_and_nobody_hangs),
        cmocka_unit_test(an_update_takes_so_many_gradients_and_the_last_one_what_is_left),
        cmocka_unit_test(a_rank_is_answered_when_the_one_before_it_was_applied),
        cmocka_unit_test(a_seeded_order_has_the_staleness_that_was_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
