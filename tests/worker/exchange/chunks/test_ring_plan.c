/* Tests of the arithmetic of the ring: whole rings in memory. */
#include "worker/exchange/chunks/ring_plan.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define WORLD_MAX 9

/* The ranks in a sum, in the order in which they were added. */
struct sum {
    uint32_t ranks[2 * WORLD_MAX];
    uint32_t count;
};

static void add(struct sum *sum, struct rank_block adders)
{
    for (uint32_t i = 0; i < adders.count; i++) {
        sum->ranks[sum->count++] = adders.first + i;
    }
}

/* Sends a chunk round the ring; every process ends with it. */
static void go_round(struct carriers carriers, uint32_t chunk)
{
    const struct ring_path path = ring_path_of(carriers, chunk);
    bool has_it[WORLD_MAX] = {false};
    struct sum sum = {.count = 0};
    add(&sum, ring_adders(carriers, chunk, 0));
    for (uint32_t hop = 1; hop <= path.hop_count; hop++) {
        struct ring_hop at = ring_hop_at(&path, hop);
        if (at.adds) {
            add(&sum, ring_adders(carriers, chunk, hop));
        }
        assert_int_equal(at.completes, at.adds && sum.count == carriers.ranks);
        assert_int_equal(at.is_final, sum.count == carriers.ranks);
        uint32_t receiver = ring_receiver(carriers, &path, hop);
        assert_int_equal(at.goes_on, hop < path.hop_count);
        if (at.is_final) {
            assert_false(has_it[receiver]);
            has_it[receiver] = true;
        }
    }
    for (uint32_t process = 0; process < carriers.processes; process++) {
        assert_int_equal(has_it[process], carriers.processes > 1);
    }
    for (uint32_t k = 0; k < sum.count; k++) {
        assert_int_equal(sum.ranks[k], (chunk + k) % carriers.ranks);
    }
}

static void a_chunk_is_added_up_in_the_order_of_ranks_whoever_carries_them(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (uint32_t processes = 1; processes <= world; processes++) {
            for (uint32_t chunk = 0; chunk < world; chunk++) {
                go_round((struct carriers){.ranks = world, .processes = processes}, chunk);
            }
        }
    }
}

static void with_a_rank_for_each_process_the_first_half_of_the_hops_adds(void **state)
{
    (void)state;
    for (uint32_t world = 2; world <= WORLD_MAX; world++) {
        for (uint32_t chunk = 0; chunk < world; chunk++) {
            const struct carriers carriers = {world, world};
            const struct ring_path path = ring_path_of(carriers, chunk);
            assert_int_equal(path.start, chunk);
            assert_int_equal(path.hop_count, 2 * (world - 1));
            assert_int_equal(path.sum_hops, world - 1);
            assert_int_equal(ring_receiver(carriers, &path, 1), (chunk + 1) % world);
        }
    }
}

static void one_process_hands_nothing_on(void **state)
{
    (void)state;
    assert_int_equal(ring_path_of((struct carriers){.ranks = 1, .processes = 1}, 0).hop_count, 0);
    assert_int_equal(ring_path_of((struct carriers){.ranks = 5, .processes = 1}, 3).hop_count, 0);
}

static void every_rank_sends_two_n_minus_one_nths(void **state)
{
    (void)state;
    for (uint32_t world = 2; world <= WORLD_MAX; world++) {
        uint64_t received[WORLD_MAX] = {0};
        for (uint32_t chunk = 0; chunk < world; chunk++) {
            const struct carriers carriers = {world, world};
            const struct ring_path path = ring_path_of(carriers, chunk);
            for (uint32_t hop = 1; hop <= path.hop_count; hop++) {
                received[ring_receiver(carriers, &path, hop)] +=
                    span_part((struct span){0, (uint64_t)world * 10}, world, chunk).count;
            }
        }
        for (uint32_t rank = 0; rank < world; rank++) {
            assert_int_equal(received[rank], 2 * (uint64_t)(world - 1) * 10);
        }
    }
}

static void the_chunk_of_a_float_is_the_part_that_has_it(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (uint64_t count = 1; count <= 23; count++) {
            const struct span bucket = {7, count};
            for (uint64_t at = 7; at < 7 + count; at++) {
                struct span chunk = span_part(bucket, world, ring_chunk_of(bucket, world, at));
                assert_true(at >= chunk.offset && at - chunk.offset < chunk.count);
            }
        }
    }
}

static void segments_cover_a_chunk(void **state)
{
    (void)state;
    for (uint64_t count = 0; count <= 23; count++) {
        const struct span chunk = {5, count};
        uint64_t next = 5;
        for (uint32_t i = 0; i < ring_segment_count(chunk, 2); i++) {
            struct span segment = ring_segment(chunk, 2, i);
            assert_int_equal(segment.offset, next);
            assert_in_range(segment.count, 1, 2);
            next += segment.count;
        }
        assert_int_equal(next, 5 + count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_is_added_up_in_the_order_of_ranks_whoever_carries_them),
        cmocka_unit_test(with_a_rank_for_each_process_the_first_half_of_the_hops_adds),
        cmocka_unit_test(one_process_hands_nothing_on),
        cmocka_unit_test(every_rank_sends_two_n_minus_one_nths),
        cmocka_unit_test(the_chunk_of_a_float_is_the_part_that_has_it),
        cmocka_unit_test(segments_cover_a_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
