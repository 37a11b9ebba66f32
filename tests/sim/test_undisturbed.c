/* Jobs that nothing disturbs, in virtual time: they end with what plain loops say. */
#include "tests/sim/cluster.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_gradients.h"
#include "tests/sim/story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

static const struct world_costs costs = {
    .latency_ns = 50000, .jitter_ns = 100000, .near_ns = 10000};

static void run(const struct cluster_shape *shape, uint64_t seed)
{
    static struct cluster cluster;
    float expected[SIM_VALUES_MAX];
    story_clear();
    cluster_begin(&cluster, shape, seed, &costs);
    bool has_ended = cluster_run(&cluster, 300 * SECOND_NS);
    if (!has_ended || cluster.verdict != STATUS_OK) {
        fail_msg("%s, seed %llu: %s\n%s", shape->mode, (unsigned long long)seed,
                 has_ended ? status_text(cluster.verdict) : "it does not end", story_text());
    }
    sim_expected(&cluster.job, shape->value_count, shape->steps, expected);
    for (uint32_t rank = 0; rank < shape->workers; rank++) {
        if (memcmp(cluster.trainings[rank].params, expected, shape->value_count * sizeof(float)) !=
            0) {
            fail_msg("%s, seed %llu: worker %u ends with other parameters\n%s", shape->mode,
                     (unsigned long long)seed, rank, story_text());
        }
    }
}

static const struct cluster_shape ring = {.mode = "ring",
                                          .all_reduce = "ring",
                                          .workers = 4,
                                          .steps = 10,
                                          .value_count = 61,
                                          .bucket_count = 3,
                                          .compute_ns = 2000000};

static void every_mode_ends_with_what_plain_loops_say(void **state)
{
    (void)state;
    static const struct cluster_shape shapes[] = {
        {.mode = "ps-sync", .workers = 4, .servers = 1},
        {.mode = "ps-sync", .workers = 4, .servers = 3},
        {.mode = "ring", .workers = 4, .all_reduce = "ring"},
        {.mode = "ring", .workers = 4, .all_reduce = "direct"},
        {.mode = "ring", .workers = 4, .all_reduce = "halving-doubling"},
        {.mode = "ps-ssp:2", .workers = 4, .servers = 2},
        {.mode = "ps-async", .workers = 4, .servers = 2},
    };
    for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct cluster_shape shape = shapes[i];
        shape.steps = 10;
        shape.value_count = 61;
        shape.bucket_count = 3;
        shape.compute_ns = 2000000;
        for (uint64_t seed = 0; seed < 3; seed++) {
            run(&shape, seed);
            world_end();
        }
    }
}

struct course {
    uint64_t events, messages, bytes, end_ns;
};

static struct course course_of(uint64_t seed)
{
    run(&ring, seed);
    const struct course course = {world_event_count(), network_message_count(world_network()),
                                  network_bytes(world_network()), world_now_ns()};
    world_end();
    return course;
}

static void a_seed_repeats_a_run_event_by_event(void **state)
{
    (void)state;
    const struct course first = course_of(7), again = course_of(7), other = course_of(8);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_int_not_equal(first.end_ns, other.end_ns);
}

static double seconds_with(struct world_costs changed)
{
    static struct cluster cluster;
    cluster_begin(&cluster, &ring, 1, &changed);
    assert_true(cluster_run(&cluster, 300 * SECOND_NS));
    assert_int_equal(cluster.verdict, STATUS_OK);
    double seconds = (double)world_now_ns() / 1e9;
    world_end();
    return seconds;
}

/* Ten steps of four workers: 2 (N - 1) hops each, one after the other. */
static void a_step_of_the_ring_takes_its_hops(void **state)
{
    (void)state;
    double near = seconds_with((struct world_costs){.latency_ns = 1000});
    double far = seconds_with((struct world_costs){.latency_ns = 10000000});
    double hops = 10 * 2 * 3;
    assert_true(far - near > hops * 0.0099);
    assert_true(far - near < (hops + 20) * 0.0101); // and those of the handshake
}

/* Each of two hosts is as far from the other as the seed says, within the bounds. */
static void pairs_of_hosts_have_their_own_delays(void **state)
{
    (void)state;
    const struct world_costs apart = {.latency_ns = 1000, .pair_ns = 10000000, .near_ns = 10};
    world_begin(7, &apart);
    uint64_t there = world_latency_ns(1, 2), back = world_latency_ns(2, 1);
    assert_int_equal(world_latency_ns(1, 2), there);
    assert_int_not_equal(there, back);
    assert_true(there >= apart.latency_ns && there < apart.latency_ns + apart.pair_ns);
    assert_int_equal(world_latency_ns(3, 3), apart.near_ns);
    world_begin(8, &apart);
    assert_int_not_equal(world_latency_ns(1, 2), there);
    world_end();
    double near = seconds_with((struct world_costs){.latency_ns = 1000});
    assert_true(seconds_with(apart) > near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_hosts_have_their_own_delays),
        cmocka_unit_test(every_mode_ends_with_what_plain_loops_say),
        cmocka_unit_test(a_seed_repeats_a_run_event_by_event),
        cmocka_unit_test(a_step_of_the_ring_takes_its_hops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
