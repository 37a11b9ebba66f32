/* Tests of whom a shard says that it waits for when one process does not reach it any more. */
#include "common/base/random.h"
#include "tests/support/ps-server/shard_cluster.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* A process of which nothing comes any more, after so many messages. */
struct cut {
    uint32_t process;
    uint64_t messages_left;
};

/* Delivers in a random order until nothing is in flight but what is cut off. */
static void run_cut(struct cluster *cluster, struct random_sequence *random, struct cut *cut)
{
    for (;;) {
        uint32_t count = 0, chosen = 0;
        for (uint32_t i = 0; i < cluster->worker_count; i++) {
            bool is_cut = i == cut->process && cut->messages_left == 0;
            bool has_message = cluster->workers[i].queues[0].count > 0 && !is_cut;
            chosen = has_message && random_below(random, ++count) == 0 ? i : chosen;
        }
        if (count == 0) {
            return;
        }
        cut->messages_left -= chosen == cut->process;
        cluster_deliver(cluster, chosen, 0);
    }
}

/* Whether a process waits for an answer that does not depend on messages of its own. */
static bool others_wait(const struct cluster *cluster, uint32_t cut)
{
    for (uint32_t i = 0; i < cluster->worker_count; i++) {
        if (i != cut && cluster->workers[i].activity != DONE) {
            return true;
        }
    }
    return false;
}

static void check_awaited(const struct cluster *cluster, const struct cut *cut)
{
    uint32_t rank;
    bool is_waiting = shard_awaits(cluster->shards[0], &rank);
    if (is_waiting != others_wait(cluster, cut->process)) {
        fail_msg("seed %llu: the shard waits for %s", (unsigned long long)cluster->seed,
                 is_waiting ? "somebody, and nobody else needs it" : "nobody, and others wait");
    }
    if (is_waiting && !rank_block_has(cluster->workers[cut->process].ranks, rank)) {
        fail_msg("seed %llu: the shard waits for rank %u, and process %u is cut off",
                 (unsigned long long)cluster->seed, rank, cut->process);
    }
}

static void try_cuts(const char *mode, const char *order, bool keeps_marks)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 0, 0)};
        struct cluster cluster;
        uint32_t workers = 2 + (uint32_t)random_below(&random, CLUSTER_WORKERS_MAX - 1);
        struct shard_config config = cluster_config(mode, order, workers);
        config.processes = 2 + (uint32_t)random_below(&random, workers - 1);
        config.keeps_marks = keeps_marks;
        config.marks.end = 1 + random_below(&random, 12);
        config.marks.period = keeps_marks ? 1 + random_below(&random, 4) : config.marks.end;
        cluster_open(&cluster, &config, seed);
        struct cut cut = {.process = (uint32_t)random_below(&random, config.processes),
                          .messages_left = random_below(&random, UINT64_C(72) * CLUSTER_BUCKETS)};
        run_cut(&cluster, &random, &cut);
        check_awaited(&cluster, &cut);
        cluster_close(&cluster);
    }
}

static void only_who_is_cut_off_is_waited_for(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:0", "ps-ssp:1", "ps-ssp:3"};
    for (uint32_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        try_cuts(modes[i], "free", false);
    }
}

static void only_who_is_cut_off_is_waited_for_at_marks(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:0", "ps-ssp:1", "ps-ssp:3"};
    for (uint32_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        try_cuts(modes[i], "free", true);
    }
}

static void only_who_is_cut_off_is_waited_for_in_a_seeded_order(void **state)
{
    (void)state;
    static const char *const orders[] = {"seeded:uniform:0..5", "seeded:round-robin"};
    for (uint32_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        try_cuts("ps-async", orders[i], false);
        try_cuts("ps-ssp:1", orders[i], true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_who_is_cut_off_is_waited_for),
        cmocka_unit_test(only_who_is_cut_off_is_waited_for_at_marks),
        cmocka_unit_test(only_who_is_cut_off_is_waited_for_in_a_seeded_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
