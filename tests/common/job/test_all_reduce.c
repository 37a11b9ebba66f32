/* Tests of what each algorithm is reckoned to take, and of the choice between them. */
#include "common/job/all_reduce.h"
#include "common/plan/halving_plan.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

// Of some networks: a fast and a slow one, and a host where messages cost about what they wait.
static const struct all_reduce_path ways[] = {
    {10000, 1000, 10000000000}, {200000, 5000, 100000000}, {30000, 12000, 1000000000}, {1, 1, 1}};

struct costs {
    double waits_s, further_s, messages_s, bytes_s;
};

/* The formulas of all_reduce.h, for a bucket. */
static struct costs costs_by(enum all_reduce algorithm, uint32_t workers, double bytes,
                             const struct all_reduce_path *path)
{
    double latency = (double)path->latency_ns * 1e-9, message = (double)path->message_ns * 1e-9;
    double n = workers, part_s = bytes / n / (double)path->bandwidth;
    double hops = halving_hop_count(workers);
    if (algorithm == ALL_REDUCE_DIRECT) {
        return (struct costs){2 * latency, 2 * (n - 2) * message, 2 * (n - 1) * message,
                              2 * (n - 1) * part_s};
    }
    if (algorithm == ALL_REDUCE_HALVING) {
        return (struct costs){hops * latency, 0, hops * message,
                              (halving_value_count(workers) + n - 1) * part_s};
    }
    return (struct costs){2 * (n - 1) * latency, 0, 2 * (n - 1) * message, 2 * (n - 1) * part_s};
}

/* Of so many buckets that are equally large. */
static double seconds_by(enum all_reduce algorithm, const struct all_reduce_load *load,
                         const struct all_reduce_path *path)
{
    double bytes = (double)load->floats * sizeof(float) / load->buckets;
    const struct costs costs = costs_by(algorithm, load->workers, bytes, path);
    return costs.waits_s + fmax(costs.further_s, costs.bytes_s) +
           (load->buckets - 1) * fmax(costs.messages_s, costs.bytes_s);
}

static void the_cost_of_each_is_that_of_its_formula(void **state)
{
    (void)state;
    // 100 us, 10 us, 1 GB/s; 8 workers, 8 MB a bucket: a part is 1 ms.
    const struct all_reduce_path way = {100000, 10000, 1000000000};
    const struct all_reduce_load load = {.workers = 8, .buckets = 3, .floats = 6000000};
    double ring = seconds_by(ALL_REDUCE_RING, &load, &way);
    double direct = seconds_by(ALL_REDUCE_DIRECT, &load, &way);
    double halving = seconds_by(ALL_REDUCE_HALVING, &load, &way);
    assert_true(fabs(ring - (14 * 100e-6 + 3 * 14e-3)) < 1e-9);
    assert_true(fabs(direct - (2 * 100e-6 + 3 * 14e-3)) < 1e-9);
    assert_true(fabs(halving - (6 * 100e-6 + 3 * (12 + 7) * 1e-3)) < 1e-9);
    const struct all_reduce_load small = {.workers = 8, .buckets = 3, .floats = 6};
    assert_true(fabs(seconds_by(ALL_REDUCE_DIRECT, &small, &way) -
                     (2 * 100e-6 + 12 * 10e-6 + 2 * 14 * 10e-6)) < 1e-7);
}

/* Whatever is chosen takes no longer than what could have been, but for the tenths of the ring. */
static void expect_the_least(const struct all_reduce_load *load, const struct all_reduce_path *way)
{
    enum all_reduce algorithm = all_reduce_choose(load, way);
    double chosen = seconds_by(algorithm, load, way);
    double ring = seconds_by(ALL_REDUCE_RING, load, way);
    double halving = seconds_by(ALL_REDUCE_HALVING, load, way);
    double direct = seconds_by(ALL_REDUCE_DIRECT, load, way);
    assert_true(chosen <= ring * 1.000001);
    assert_true(!load->may_halve || chosen <= halving / 0.899);
    assert_true(!load->may_meet || chosen <= direct / 0.899);
    assert_true(load->may_meet || algorithm != ALL_REDUCE_DIRECT);
    assert_true(load->may_halve || algorithm != ALL_REDUCE_HALVING);
    assert_true(algorithm != ALL_REDUCE_HALVING || chosen <= 0.901 * ring ||
                (load->may_meet && chosen <= direct));
}

static void what_is_chosen_takes_the_least_time(void **state)
{
    (void)state;
    for (uint32_t workers = 2; workers <= 600; workers += workers < 70 ? 1 : 97) {
        for (uint32_t i = 0; i < 8 * sizeof(ways) / sizeof(ways[0]); i++) {
            const struct all_reduce_path *way = &ways[i / 8];
            struct all_reduce_load load = {.workers = workers,
                                           .buckets = i & 4 ? 1 : 30,
                                           .may_meet = i & 1,
                                           .may_halve = i & 2};
            for (load.floats = load.buckets; load.floats < UINT64_C(1) << 33; load.floats *= 2) {
                expect_the_least(&load, way);
            }
        }
    }
}

/* As `predict` has it of 16 workers with 25 Gbit/s: 47 ms a step, and 67 by rings or directly. Of
 * fewer and larger buckets messages are little. */
static void many_buckets_go_by_the_fewest_messages(void **state)
{
    (void)state;
    const struct all_reduce_path way = {60000, 40000, 3125000000};
    struct all_reduce_load load = {
        .workers = 16, .buckets = 37, .floats = 9000000, .may_meet = true, .may_halve = true};
    assert_int_equal(all_reduce_choose(&load, &way), ALL_REDUCE_HALVING);
    load.may_halve = false;
    assert_int_equal(all_reduce_choose(&load, &way), ALL_REDUCE_DIRECT);
    load.may_halve = true;
    load.buckets = 9;
    assert_int_equal(all_reduce_choose(&load, &way), ALL_REDUCE_DIRECT);
    load.may_meet = false;
    load.buckets = 1;
    assert_int_equal(all_reduce_choose(&load, &way), ALL_REDUCE_RING);
}

static void small_gradients_go_directly_among_few_and_by_halving_among_many(void **state)
{
    (void)state;
    const struct all_reduce_path way = {50000, 5000, 100000000};
    struct all_reduce_load load = {
        .workers = 8, .buckets = 1, .floats = 1000, .may_meet = true, .may_halve = true};
    assert_int_equal(all_reduce_choose(&load, &way), ALL_REDUCE_DIRECT);
    load.workers = 64;
    load.floats = 64;
    assert_int_equal(all_reduce_choose(&load, &way), ALL_REDUCE_HALVING);
    load.floats = 100000000;
    assert_int_equal(all_reduce_choose(&load, &way), ALL_REDUCE_RING);
}

static void two_workers_and_who_has_measured_nothing_take_the_ring(void **state)
{
    (void)state;
    const struct all_reduce_path way = {50000, 5000, 100000000}, none = {0};
    struct all_reduce_load load = {
        .workers = 2, .buckets = 1, .floats = 1, .may_meet = true, .may_halve = true};
    assert_int_equal(all_reduce_choose(&load, &way), ALL_REDUCE_RING);
    load.workers = 8;
    assert_int_equal(all_reduce_choose(&load, &none), ALL_REDUCE_RING);
}

static void buckets_up_to_a_limit_take_its_algorithm(void **state)
{
    (void)state;
    const struct all_reduce_limits both = {10, 20}, halving = {10, 0}, direct = {0, 20}, none = {0};
    assert_int_equal(all_reduce_of_bucket(&both, 10), ALL_REDUCE_HALVING);
    assert_int_equal(all_reduce_of_bucket(&both, 11), ALL_REDUCE_DIRECT);
    assert_int_equal(all_reduce_of_bucket(&both, 21), ALL_REDUCE_RING);
    assert_int_equal(all_reduce_widest(&both), ALL_REDUCE_DIRECT);
    assert_int_equal(all_reduce_widest(&direct), ALL_REDUCE_DIRECT);
    assert_int_equal(all_reduce_widest(&halving), ALL_REDUCE_HALVING);
    assert_int_equal(all_reduce_widest(&none), ALL_REDUCE_RING);
}

static void the_next_worker_is_met_by_messages_and_direct_meets_all(void **state)
{
    (void)state;
    for (uint32_t workers = 2; workers <= 20; workers++) {
        uint32_t halving = 0;
        for (uint32_t offset = 1; offset < workers; offset++) {
            assert_int_equal(all_reduce_meets(ALL_REDUCE_RING, workers, offset), offset == 1);
            assert_int_equal(all_reduce_meets(ALL_REDUCE_SHARED, workers, offset), offset == 1);
            assert_true(all_reduce_meets(ALL_REDUCE_DIRECT, workers, offset));
            assert_false(all_reduce_meets(ALL_REDUCE_NCCL, workers, offset)); // the library does
            halving += all_reduce_meets(ALL_REDUCE_HALVING, workers, offset);
        }
        assert_true(all_reduce_meets(ALL_REDUCE_HALVING, workers, 1));
        assert_in_range(halving, 1, 6); // of 20: 1, and 20 less 1, 2, 4, 8, 16
    }
}

static void ring_halving_and_nccl_leave_memory_alone_where_asked_for(void **state)
{
    (void)state;
    assert_true(all_reduce_shuns_memory(ALL_REDUCE_CHOICE_RING));
    assert_true(all_reduce_shuns_memory(ALL_REDUCE_CHOICE_HALVING));
    assert_true(all_reduce_shuns_memory(ALL_REDUCE_CHOICE_NCCL));
    assert_false(all_reduce_shuns_memory(ALL_REDUCE_CHOICE_DIRECT));
    assert_false(all_reduce_shuns_memory(ALL_REDUCE_CHOICE_AUTO));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cost_of_each_is_that_of_its_formula),
        cmocka_unit_test(what_is_chosen_takes_the_least_time),
        cmocka_unit_test(many_buckets_go_by_the_fewest_messages),
        cmocka_unit_test(small_gradients_go_directly_among_few_and_by_halving_among_many),
        cmocka_unit_test(buckets_up_to_a_limit_take_its_algorithm),
        cmocka_unit_test(two_workers_and_who_has_measured_nothing_take_the_ring),
        cmocka_unit_test(the_next_worker_is_met_by_messages_and_direct_meets_all),
        cmocka_unit_test(ring_halving_and_nccl_leave_memory_alone_where_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
