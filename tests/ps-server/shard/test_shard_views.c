/* Tests of delays for each worker: everybody sees each change when it was drawn to, and what all
 * have made is in the shard's parameters. */
#include "common/base/random.h"
#include "tests/support/ps-server/shard_cluster.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

/* Changes that a worker sees in a step: those of steps before it whose delay is over. */
static uint64_t seen(const struct shard_config *config, uint32_t seer, uint64_t step)
{
    uint64_t count = 0;
    for (uint64_t made = 0; made < step; made++) {
        for (uint32_t rank = 0; rank < config->workers; rank++) {
            uint64_t update = made * config->workers + rank + 1;
            count += made + 1 + order_delay(&config->order, config->seed, update, seer) <= step;
        }
    }
    return count;
}

static void check_view(const struct cluster *cluster, uint32_t rank, uint64_t step)
{
    const struct worker *worker = &cluster->workers[rank];
    uint64_t changes = (uint64_t)-worker->params[0];
    if (worker->activity == PULLS_MARK || worker->activity == PULLS_LAST) {
        uint64_t mark =
            worker->activity == PULLS_LAST ? cluster_mark_count(cluster) : worker->marks_closed + 1;
        assert_int_equal(changes,
                         cluster->config.workers * marks_step(&cluster->config.marks, mark));
    } else if (!worker->has_notice) {
        assert_int_equal(changes, seen(&cluster->config, rank, step));
    }
}

static void everybody_sees_each_change_after_its_delay(void **state)
{
    (void)state;
    static const char *const orders[] = {"seeded:constant:0", "seeded:constant:3",
                                         "seeded:uniform:0..4", "seeded:geometric:0.4"};
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 5, 0)};
        struct cluster cluster;
        uint32_t workers = 1 + (uint32_t)random_below(&random, CLUSTER_WORKERS_MAX);
        struct shard_config config = cluster_config("ps-async", orders[seed % 4], workers);
        config.has_views = true;
        config.keeps_marks = seed % 3 == 0;
        config.marks.end = 1 + random_below(&random, 12);
        config.marks.period = 1 + random_below(&random, 5);
        cluster_open(&cluster, &config, seed);
        cluster.check = check_view;
        cluster_run(&cluster);
        const struct staleness *staleness = shard_staleness(cluster.shards[0]);
        uint64_t total = cluster_gradient_total(&config);
        struct span span;
        assert_int_equal(shard_version(cluster.shards[0]), total);
        assert_true(shard_params(cluster.shards[0], 0, &span)[0] == -(float)total);
        assert_int_equal(staleness->total, total * workers);
        assert_int_equal(shard_late_count(cluster.shards[0]), 0);
        cluster_close(&cluster);
    }
}

/* Every delay that is drawn is in the histogram, and no other. */
static void the_histogram_is_that_of_the_drawn_delays(void **state)
{
    (void)state;
    struct shard_config config = cluster_config("ps-async", "seeded:uniform:1..5", 3);
    struct cluster cluster;
    uint64_t expected[STALENESS_BINS] = {0};
    config.has_views = true;
    config.marks.end = config.marks.period = 20;
    for (uint64_t update = 1; update <= cluster_gradient_total(&config); update++) {
        for (uint32_t seer = 0; seer < 3; seer++) {
            expected[order_delay(&config.order, config.seed, update, seer)]++;
        }
    }
    cluster_open(&cluster, &config, 1);
    cluster.check = check_view;
    cluster_run(&cluster);
    assert_memory_equal(shard_staleness(cluster.shards[0])->counts, expected, sizeof(expected));
    cluster_close(&cluster);
}

static void what_it_takes_is_known_before(void **state)
{
    (void)state;
    struct shard_config config = cluster_config("ps-async", "seeded:uniform:0..4", 3);
    uint64_t values = shard_value_count(&config) * sizeof(float);
    assert_int_equal(shard_history_bytes(&config), 5 * values);
    config.has_views = true;
    // A view and five slots for each worker, and room for a change.
    assert_int_equal(shard_history_bytes(&config), (3 * 6 + 1) * values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_sees_each_change_after_its_delay),
        cmocka_unit_test(the_histogram_is_that_of_the_drawn_delays),
        cmocka_unit_test(what_it_takes_is_known_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
