/* Tests of the arithmetic of the ring: whole rings in memory. */
#include "worker/exchange/chunks/ring_plan.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define WORLD_MAX  9
#define VALUES_MAX 23

/* Runs a whole ring over vectors of small integers, whose sums are exact, segment by segment. */
static void run_ring(uint32_t world, uint64_t count, uint64_t segment_max,
                     float values[WORLD_MAX][VALUES_MAX])
{
    struct span whole = {0, count};
    for (uint32_t chunk = 0; chunk < world; chunk++) {
        struct span span = span_part(whole, world, chunk);
        for (uint32_t i = 0; i < ring_segment_count(span, segment_max); i++) {
            struct span segment = ring_segment(span, segment_max, i);
            for (uint32_t hop = 1; hop <= ring_hop_count(world); hop++) {
                uint32_t from = (chunk + hop - 1) % world, to = (chunk + hop) % world;
                assert_int_equal(ring_chunk_at(world, to, hop), chunk);
                for (uint64_t k = segment.offset; k < segment.offset + segment.count; k++) {
                    float own = ring_hop_at(world, hop).adds ? values[to][k] : 0;
                    values[to][k] = values[from][k] + own;
                }
            }
        }
    }
}

static void every_rank_ends_with_the_exact_sum(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (uint64_t count = 0; count <= VALUES_MAX; count++) {
            float values[WORLD_MAX][VALUES_MAX];
            for (uint32_t rank = 0; rank < world; rank++) {
                for (uint64_t k = 0; k < count; k++) {
                    values[rank][k] = (float)((uint64_t)(rank + 1) * 100 + k);
                }
            }
            run_ring(world, count, 2, values);
            for (uint32_t rank = 0; rank < world; rank++) {
                for (uint64_t k = 0; k < count; k++) {
                    float sum = (float)(50 * (uint64_t)world * (world + 1) + world * k);
                    assert_float_equal(values[rank][k], sum, 0);
                }
            }
        }
    }
}

static void the_first_half_adds_and_its_last_hop_completes(void **state)
{
    (void)state;
    for (uint32_t world = 2; world <= WORLD_MAX; world++) {
        for (uint32_t hop = 1; hop <= ring_hop_count(world); hop++) {
            struct ring_hop at = ring_hop_at(world, hop);
            assert_int_equal(at.adds, hop <= world - 1);
            assert_int_equal(at.completes, hop == world - 1);
            assert_int_equal(at.is_final, hop >= world - 1);
            assert_int_equal(at.goes_on, hop != 2 * world - 2);
        }
    }
}

static void one_worker_hands_nothing_on(void **state)
{
    (void)state;
    assert_int_equal(ring_hop_count(1), 0);
}

static void every_rank_sends_two_n_minus_one_nths(void **state)
{
    (void)state;
    for (uint32_t world = 2; world <= WORLD_MAX; world++) {
        for (uint32_t rank = 0; rank < world; rank++) {
            uint64_t received = 0;
            for (uint32_t hop = 1; hop <= ring_hop_count(world); hop++) {
                uint32_t chunk = ring_chunk_at(world, rank, hop);
                received += span_part((struct span){0, (uint64_t)world * 10}, world, chunk).count;
            }
            assert_int_equal(received, 2 * (uint64_t)(world - 1) * 10);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_ends_with_the_exact_sum),
        cmocka_unit_test(the_first_half_adds_and_its_last_hop_completes),
        cmocka_unit_test(one_worker_hands_nothing_on),
        cmocka_unit_test(every_rank_sends_two_n_minus_one_nths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
