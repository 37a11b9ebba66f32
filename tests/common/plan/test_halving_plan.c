/* Tests of the schedule of halving and doubling: whole exchanges in memory, of sets of ranks. */
#include "common/plan/halving_plan.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define WORLD_MAX 70

/* A piece: values of rank `from`, or the mean, of chunk `chunk`. */
struct piece {
    uint32_t from, chunk;
    bool is_mean;
};

struct rank {
    struct piece *store;      // (halving_value_count + world)
    uint32_t added_count;     // ranks whose values are in the sum of the own chunk
    bool has_mean[WORLD_MAX]; // by chunk
};

static uint32_t bits_below(uint32_t world)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < world; i++) {
        bits += (uint32_t)__builtin_popcount(i);
    }
    return bits;
}

static uint32_t logarithm(uint32_t world)
{
    uint32_t rounds = 0;
    while (UINT32_C(1) << rounds < world) {
        rounds++;
    }
    return rounds;
}

static void begin(struct rank *ranks, uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        ranks[rank].store = calloc(halving_value_count(world) + world, sizeof(struct piece));
        assert_non_null(ranks[rank].store);
        ranks[rank].added_count = 1; // its own
        for (uint32_t ahead = 1; ahead < world; ahead++) {
            ranks[rank].store[halving_place(world, ahead, 1)] =
                (struct piece){.from = rank, .chunk = (rank + world - ahead) % world};
        }
    }
}

/* Values that came to rank `to`: they are added in the order of ranks, or kept. */
static void take_values(struct rank *ranks, uint32_t world, uint32_t to,
                        const struct halving_hop *hop, const struct piece *pieces)
{
    for (uint32_t i = 0; i < hop->count; i++) {
        uint32_t ahead = halving_ahead(hop, i);
        assert_true(ahead < world && (i == 0 || ahead > halving_ahead(hop, i - 1)));
        assert_false(pieces[i].is_mean);
        if (ahead >= 2 * hop->distance) {
            ranks[to].store[halving_place(world, ahead, 2 * hop->distance)] = pieces[i];
            continue;
        }
        assert_int_equal(pieces[i].chunk, to);
        assert_int_equal(pieces[i].from, (to + ranks[to].added_count) % world);
        ranks[to].added_count++;
    }
    if (hop->completes) {
        assert_int_equal(ranks[to].added_count, world);
        ranks[to].has_mean[to] = true;
        ranks[to].store[halving_value_count(world)] =
            (struct piece){.from = to, .chunk = to, .is_mean = true};
    }
}

static void take_means(struct rank *ranks, uint32_t to, const struct halving_hop *hop,
                       const struct piece *pieces)
{
    for (uint32_t i = 0; i < hop->count; i++) {
        assert_true(pieces[i].is_mean);
        assert_false(ranks[to].has_mean[pieces[i].chunk]);
        ranks[to].has_mean[pieces[i].chunk] = true;
        ranks[to].store[hop->first + hop->distance + i] = pieces[i];
    }
}

/* All messages of a hop at once: what is sent in it is what was there before it. */
static void run_hop(struct rank *ranks, uint32_t world, uint32_t index)
{
    struct halving_hop hop = halving_hop_at(world, index);
    struct piece *sent = calloc((size_t)world * hop.count, sizeof(*sent));
    assert_non_null(sent);
    for (uint32_t from = 0; from < world; from++) {
        memcpy(sent + (size_t)from * hop.count, ranks[from].store + hop.first,
               hop.count * sizeof(*sent));
    }
    for (uint32_t from = 0; from < world; from++) {
        uint32_t to = (from + world - hop.distance) % world;
        assert_true(halving_meets(world, (to + world - from) % world));
        if (hop.is_doubling) {
            take_means(ranks, to, &hop, sent + (size_t)from * hop.count);
        } else {
            take_values(ranks, world, to, &hop, sent + (size_t)from * hop.count);
        }
    }
    free(sent);
}

static void every_chunk_is_added_up_once_and_in_order_and_comes_to_all(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        struct rank *ranks = calloc(world, sizeof(*ranks));
        assert_non_null(ranks);
        begin(ranks, world);
        for (uint32_t hop = 1; hop <= halving_hop_count(world); hop++) {
            run_hop(ranks, world, hop);
        }
        for (uint32_t rank = 0; rank < world; rank++) {
            for (uint32_t chunk = 0; chunk < world && world > 1; chunk++) {
                assert_true(ranks[rank].has_mean[chunk]);
            }
            free(ranks[rank].store);
        }
        free(ranks);
    }
}

static void each_half_takes_log_n_messages_and_the_bytes_of_its_formula(void **state)
{
    (void)state;
    for (uint32_t world = 2; world <= 4096; world = world < 70 ? world + 1 : 2 * world - 3) {
        uint32_t rounds = logarithm(world), values = 0, means = 0;
        assert_int_equal(halving_hop_count(world), 2 * rounds);
        for (uint32_t hop = 1; hop <= 2 * rounds; hop++) {
            struct halving_hop at = halving_hop_at(world, hop);
            assert_int_equal(at.is_doubling, hop > rounds);
            assert_int_equal(at.completes, hop == rounds);
            assert_int_equal(at.goes_on, hop < 2 * rounds);
            assert_int_equal(at.distance, 1u << (hop - 1) % rounds);
            assert_true(at.count > 0);
            values += at.is_doubling ? 0 : at.count;
            means += at.is_doubling ? at.count : 0;
        }
        assert_int_equal(values, bits_below(world));
        assert_int_equal(values, halving_value_count(world));
        assert_int_equal(means, world - 1);
        if (world == 1u << rounds) {
            assert_int_equal(2 * values, world * rounds);
        }
    }
}

/* No two pieces of a worker are kept at one place, and all places are taken. */
static void the_store_has_a_place_for_every_piece_that_is_handed_on(void **state)
{
    (void)state;
    for (uint32_t world = 2; world <= WORLD_MAX; world++) {
        uint32_t count = halving_value_count(world);
        bool *taken = calloc(count, sizeof(*taken));
        assert_non_null(taken);
        for (uint32_t ahead = 1; ahead < world; ahead++) {
            for (uint32_t distance = 1; distance <= ahead; distance *= 2) {
                if ((ahead & distance) != 0) {
                    uint32_t place = halving_place(world, ahead, distance);
                    assert_true(place < count && !taken[place]);
                    taken[place] = true;
                }
            }
        }
        for (uint32_t i = 0; i < count; i++) {
            assert_true(taken[i]);
        }
        free(taken);
    }
}

static void a_worker_sends_to_as_many_as_there_are_rounds(void **state)
{
    (void)state;
    for (uint32_t world = 2; world <= 4096; world += world < 70 ? 1 : 503) {
        uint32_t met = 0;
        for (uint32_t offset = 0; offset <= world; offset++) {
            met += halving_meets(world, offset);
        }
        assert_int_equal(met, logarithm(world));
    }
    assert_false(halving_meets(1, 0));
    assert_int_equal(halving_hop_count(1), 0);
    assert_int_equal(halving_value_count(1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chunk_is_added_up_once_and_in_order_and_comes_to_all),
        cmocka_unit_test(each_half_takes_log_n_messages_and_the_bytes_of_its_formula),
        cmocka_unit_test(the_store_has_a_place_for_every_piece_that_is_handed_on),
        cmocka_unit_test(a_worker_sends_to_as_many_as_there_are_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
