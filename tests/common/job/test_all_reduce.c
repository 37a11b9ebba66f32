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

/* The formulas of all_reduce.h. */
static double seconds_by(enum all_reduce algorithm, uint32_t workers, uint64_t bytes,
                         const struct all_reduce_path *path)
{
    double latency = (double)path->latency_ns * 1e-9, message = (double)path->message_ns * 1e-9;
    double n = workers, part = (double)bytes / n / (double)path->bandwidth;
    if (algorithm == ALL_REDUCE_DIRECT) {
        return 2 * latency + 2 * (n - 2) * message + 2 * (n - 1) * part;
    }
    if (algorithm == ALL_REDUCE_HALVING) {
        return halving_hop_count(workers) * latency + (halving_value_count(workers) + n - 1) * part;
    }
    return 2 * (n - 1) * latency + 2 * (n - 1) * part;
}

static void the_cost_of_each_is_that_of_its_formula(void **state)
{
    (void)state;
    // 100 us, 10 us, 1 GB/s; 8 workers, 8 MB: a part is 1 ms.
    const struct all_reduce_path way = {100000, 10000, 1000000000};
    double ring = seconds_by(ALL_REDUCE_RING, 8, 8000000, &way);
    double direct = seconds_by(ALL_REDUCE_DIRECT, 8, 8000000, &way);
    double halving = seconds_by(ALL_REDUCE_HALVING, 8, 8000000, &way);
    assert_true(fabs(ring - (14 * 100e-6 + 14e-3)) < 1e-9);
    assert_true(fabs(direct - (2 * 100e-6 + 12 * 10e-6 + 14e-3)) < 1e-9);
    assert_true(fabs(halving - (6 * 100e-6 + (12 + 7) * 1e-3)) < 1e-9);
}

static double seconds_of(uint32_t workers, uint64_t floats, const struct all_reduce_limits *limits,
                         const struct all_reduce_path *way)
{
    return seconds_by(all_reduce_of_bucket(limits, floats), workers, floats * sizeof(float), way);
}

/* Whatever is chosen takes no longer than what could have been, but for the tenth of the ring. */
static void what_is_chosen_takes_the_least_time(void **state)
{
    (void)state;
    for (uint32_t workers = 2; workers <= 600; workers += workers < 70 ? 1 : 97) {
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            for (int may_meet = 0; may_meet <= 1; may_meet++) {
                struct all_reduce_limits limits = all_reduce_choose(workers, may_meet, &ways[i]);
                for (uint64_t floats = 1; floats < UINT64_C(1) << 33; floats *= 2) {
                    uint64_t bytes = floats * sizeof(float);
                    double chosen = seconds_of(workers, floats, &limits, &ways[i]);
                    double ring = seconds_by(ALL_REDUCE_RING, workers, bytes, &ways[i]);
                    double halving = seconds_by(ALL_REDUCE_HALVING, workers, bytes, &ways[i]);
                    double direct = seconds_by(ALL_REDUCE_DIRECT, workers, bytes, &ways[i]);
                    assert_true(chosen <= ring);
                    assert_true(chosen <= halving / 0.899);
                    assert_true(!may_meet || chosen <= direct / 0.899);
                    enum all_reduce algorithm = all_reduce_of_bucket(&limits, floats);
                    assert_true(algorithm == ALL_REDUCE_RING || chosen <= 0.901 * ring);
                    assert_true(may_meet || algorithm != ALL_REDUCE_DIRECT);
                }
            }
        }
    }
}

static void small_buckets_of_many_go_by_halving_and_larger_ones_directly(void **state)
{
    (void)state;
    const struct all_reduce_path way = {50000, 5000, 100000000};
    struct all_reduce_limits few = all_reduce_choose(8, true, &way);
    struct all_reduce_limits many = all_reduce_choose(64, true, &way);
    struct all_reduce_limits strangers = all_reduce_choose(1000, false, &way);
    assert_int_equal(few.halving_floats_max, 0);
    assert_true(few.direct_floats_max > 0);
    assert_true(many.halving_floats_max > 0 && many.direct_floats_max > many.halving_floats_max);
    assert_true(strangers.halving_floats_max > 0 && strangers.direct_floats_max == 0);
    assert_int_equal(all_reduce_widest(&few), ALL_REDUCE_DIRECT);
    assert_int_equal(all_reduce_widest(&many), ALL_REDUCE_DIRECT);
    assert_int_equal(all_reduce_widest(&strangers), ALL_REDUCE_HALVING);
    assert_int_equal(all_reduce_of_bucket(&many, many.halving_floats_max), ALL_REDUCE_HALVING);
    assert_int_equal(all_reduce_of_bucket(&many, many.halving_floats_max + 1), ALL_REDUCE_DIRECT);
    assert_int_equal(all_reduce_of_bucket(&many, many.direct_floats_max + 1), ALL_REDUCE_RING);
}

static void two_workers_and_who_has_measured_nothing_take_the_ring(void **state)
{
    (void)state;
    const struct all_reduce_path way = {50000, 5000, 100000000}, none = {0};
    struct all_reduce_limits two = all_reduce_choose(2, true, &way);
    struct all_reduce_limits unknown = all_reduce_choose(8, true, &none);
    assert_int_equal(all_reduce_widest(&two), ALL_REDUCE_RING);
    assert_int_equal(all_reduce_widest(&unknown), ALL_REDUCE_RING);
    assert_int_equal(all_reduce_of_bucket(&two, 1), ALL_REDUCE_RING);
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
        cmocka_unit_test(small_buckets_of_many_go_by_halving_and_larger_ones_directly),
        cmocka_unit_test(two_workers_and_who_has_measured_nothing_take_the_ring),
        cmocka_unit_test(the_next_worker_is_met_by_messages_and_direct_meets_all),
        cmocka_unit_test(ring_halving_and_nccl_leave_memory_alone_where_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
