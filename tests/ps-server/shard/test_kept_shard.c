/* Tests of what a server keeps of its shard, and that races go on from there. */
#include "common/base/random.h"
#include "tests/support/ps-server/shard_cluster.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

/* A race of some workers, in some processes, on some shards. */
static struct shard_config draw_race(struct random_sequence *random)
{
    static const char *const modes[] = {"ps-async", "ps-ssp:0", "ps-ssp:2"};
    uint32_t workers = 1 + (uint32_t)random_below(random, CLUSTER_WORKERS_MAX);
    struct shard_config config = cluster_config(modes[random_below(random, 3)], "free", workers);
    config.processes = 1 + (uint32_t)random_below(random, workers);
    config.shard_count = 1 + (uint32_t)random_below(random, CLUSTER_SHARDS_MAX);
    config.keeps_marks = random_below(random, 2) == 0;
    config.marks.end = 2 + random_below(random, 11);
    config.marks.period = 1 + random_below(random, config.marks.end);
    return config;
}

/* Keeps all shards; returns the step that all of them have the gradients of. */
static uint64_t keep(struct cluster *cluster, struct kept_shard *ret_kept)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < cluster->config.shard_count; i++) {
        assert_int_equal(kept_shard_take(&ret_kept[i], cluster->shards[i]), STATUS_OK);
        least = ret_kept[i].gradients < least ? ret_kept[i].gradients : least;
    }
    return least / cluster->config.workers;
}

/* The step that a generation begins at: this one, or one or two before it, as where an evaluation
 * is made again. */
static uint64_t draw_begin(uint64_t step, struct random_sequence *random)
{
    return step - random_below(random, step < 3 ? 1 : 3);
}

/* Every parameter has moved by 1 with each gradient. */
static void expect_all_gradients(const struct cluster *cluster)
{
    uint64_t total = cluster_gradient_total(&cluster->config),
             before = cluster->config.workers * cluster->config.marks.first;
    for (uint32_t i = 0; i < cluster->config.shard_count; i++) {
        assert_int_equal(shard_version(cluster->shards[i]), total - before); // of this phase
        for (uint32_t bucket = 0; bucket < CLUSTER_BUCKETS; bucket++) {
            struct span span;
            const float *params = shard_params(cluster->shards[i], bucket, &span);
            for (uint64_t k = 0; k < span.count; k++) {
                assert_true(params[k] == -(float)total);
            }
        }
    }
}

/* In the place of the cluster comes one that goes on from what it has kept. */
static void go_on(struct cluster *cluster, uint64_t step, struct random_sequence *random,
                  struct kept_shard *kept)
{
    struct shard_config config = cluster->config;
    config.marks.first = step;
    config.processes = 1 + (uint32_t)random_below(random, config.workers);
    cluster_close(cluster);
    cluster_open_in_place(cluster, &config, cluster->seed, kept);
}

static void a_race_that_goes_on_in_place_has_each_gradient_once_on_every_shard(void **state)
{
    (void)state;
    uint32_t gone_on = 0, losses = 0, ahead = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 4, 0)};
        struct shard_config config = draw_race(&random);
        struct kept_shard kept[CLUSTER_SHARDS_MAX] = {{.gradients = 0}};
        struct cluster cluster;
        uint64_t losses_left = 1 + random_below(&random, 3), step;
        cluster_open(&cluster, &config, seed);
        cluster.is_apart = true;
        cluster_run_for(&cluster, random_below(&random, 60 * config.marks.end));
        step = keep(&cluster, kept);
        while (losses_left > 0 && step > 0 && step < config.marks.end) {
            go_on(&cluster, draw_begin(step, &random), &random, kept);
            losses++;
            ahead += cluster.config.gradients_ahead > 0;
            losses_left--;
            if (losses_left > 0) { // soon: what is ahead may not have been passed over
                cluster_run_for(&cluster, random_below(&random, 30));
                step = keep(&cluster, kept);
            }
        }
        if (losses_left == 0) {
            cluster_run(&cluster);
            expect_all_gradients(&cluster);
            gone_on++;
        }
        for (uint32_t i = 0; i < config.shard_count; i++) {
            kept_shard_finish(&kept[i]);
        }
        cluster_close(&cluster);
    }
    assert_in_range(gone_on, 1000, 3000);
    assert_in_range(losses, gone_on + 500, 3 * 3000);
    assert_in_range(ahead, 500, losses);
}

/* Two gradients each: the fifth waits for a sixth, and was counted. */
static void a_gradient_that_waits_for_another_is_an_update_of_its_own(void **state)
{
    (void)state;
    struct shard_config config = cluster_config("ps-async", "free", 1);
    struct kept_shard kept = {.gradients = 0};
    struct cluster cluster;
    struct span span;
    config.gradients_per_update = 2;
    config.marks.end = config.marks.period = 50;
    cluster_open(&cluster, &config, 1);
    cluster.has_sums = true;
    while (cluster.whole_pushes[0] < 5) {
        cluster_deliver(&cluster, 0, 0);
    }
    assert_int_equal((int)shard_params(cluster.shards[0], 0, &span)[0], -2);
    assert_int_equal(keep(&cluster, &kept), 5);
    assert_int_equal(kept.gradients, shard_staleness(cluster.shards[0])->total);
    assert_int_equal((int)shard_params(cluster.shards[0], 0, &span)[0], -3);
    kept_shard_finish(&kept);
    cluster_close(&cluster);
}

static void a_shard_cannot_go_on_at_a_step_that_it_has_not_come_to(void **state)
{
    (void)state;
    struct kept_shard kept = {.gradients = 11};
    uint64_t ahead = 0;
    assert_int_equal(kept_shard_ahead(&kept, 3, 3, &ahead), STATUS_OK);
    assert_int_equal(ahead, 2);
    assert_int_equal(kept_shard_ahead(&kept, 4, 3, &ahead), STATUS_INVALID);
    kept.gradients = UINT64_MAX; // no values, of any step
    assert_int_equal(kept_shard_ahead(&kept, 4, 3, &ahead), STATUS_OK);
    assert_int_equal(ahead, 0);
    kept_shard_finish(&kept);
    assert_int_equal(kept_shard_ahead(&kept, 0, 3, &ahead), STATUS_INVALID);
}

/* A server that is not the same one: the job must not go on with half of a vector. */
static void a_shard_of_another_place_is_not_restored(void **state)
{
    (void)state;
    struct shard_config config = cluster_config("ps-async", "free", 2);
    struct kept_shard kept[2] = {{.gradients = 0}};
    struct cluster cluster;
    struct shard *other;
    config.shard_count = 2;
    config.marks.end = config.marks.period = 50;
    cluster_open(&cluster, &config, 1);
    cluster.is_apart = true;
    cluster_run_for(&cluster, 200);
    (void)keep(&cluster, kept);
    config.is_restored = true;
    config.index = 1;
    assert_int_equal(shard_create(&config, &other), STATUS_OK);
    assert_int_equal(kept_shard_restore(&kept[0], other), STATUS_INVALID);
    shard_destroy(other);
    kept_shard_finish(&kept[0]);
    kept_shard_finish(&kept[1]);
    cluster_close(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_race_that_goes_on_in_place_has_each_gradient_once_on_every_shard),
        cmocka_unit_test(a_gradient_that_waits_for_another_is_an_update_of_its_own),
        cmocka_unit_test(a_shard_cannot_go_on_at_a_step_that_it_has_not_come_to),
        cmocka_unit_test(a_shard_of_another_place_is_not_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
