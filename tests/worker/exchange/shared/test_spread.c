/* Tests of who leaves which core. */
#include "common/base/cores.h"
#include "common/base/random.h"
#include "worker/exchange/shared/spread.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>

#define WORLD_MAX 16

static void a_share_is_the_least_that_has_room_for_all(void **state)
{
    (void)state;
    assert_int_equal(spread_share(1, 8), 1);
    assert_int_equal(spread_share(8, 8), 1);
    assert_int_equal(spread_share(9, 8), 2);
    assert_int_equal(spread_share(4, 2), 2);
    assert_int_equal(spread_share(5, 1), 5);
}

static void who_has_room_stays(void **state)
{
    (void)state;
    uint32_t full[4];
    const uint32_t even[] = {0, 1, 0, 1}, apart[] = {7, 3}, unknown[] = {CORES_UNKNOWN, 2, 2, 2};
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_int_equal(spread_full_cores(even, 4, 2, rank, full), 0);
    }
    assert_int_equal(spread_full_cores(apart, 2, 1, 0, full), 0);
    assert_int_equal(spread_full_cores(unknown, 4, 2, 0, full), 0);
}

static void who_has_none_leaves_and_passes_by_what_is_full(void **state)
{
    (void)state;
    uint32_t full[5];
    const uint32_t three_and_one[] = {1, 1, 0, 1}, two[] = {4, 4}, five[] = {0, 0, 0, 5, 5};
    assert_int_equal(spread_full_cores(three_and_one, 4, 2, 0, full), 3);
    assert_int_equal(full[0], 1);
    assert_int_equal(full[2], 1);
    assert_int_equal(spread_full_cores(three_and_one, 4, 2, 2, full), 0);
    assert_int_equal(spread_full_cores(two, 2, 1, 1, full), 2);
    assert_int_equal(full[0], 4);
    assert_int_equal(spread_full_cores(five, 5, 2, 1, full), 5);
    assert_int_equal(full[0], 0);
    assert_int_equal(full[4], 5);
}

static bool has(const uint32_t *cores, uint32_t count, uint32_t core)
{
    for (uint32_t i = 0; i < count; i++) {
        if (cores[i] == core) {
            return true;
        }
    }
    return false;
}

/* Moves whoever has to, to whatever core is left; returns how many did. */
static uint32_t move_all(uint32_t *cores, uint32_t world, uint32_t core_count,
                         struct random_sequence *random)
{
    uint32_t moved = 0, share = spread_share(world, core_count);
    for (uint32_t rank = 0; rank < world; rank++) {
        uint32_t full[WORLD_MAX];
        uint32_t full_count = spread_full_cores(cores, world, share, rank, full);
        if (full_count == 0) {
            continue;
        }
        moved++;
        do {
            cores[rank] = (uint32_t)random_below(random, core_count);
        } while (has(full, full_count, cores[rank]));
    }
    return moved;
}

static void once_each_has_looked_all_have_their_share(void **state)
{
    (void)state;
    struct random_sequence random = {.state = 3};
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (uint32_t core_count = 1; core_count <= WORLD_MAX; core_count++) {
            uint32_t cores[WORLD_MAX];
            for (uint32_t rank = 0; rank < world; rank++) {
                cores[rank] = (uint32_t)random_below(&random, core_count);
            }
            (void)move_all(cores, world, core_count, &random);
            assert_int_equal(move_all(cores, world, core_count, &random), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_is_the_least_that_has_room_for_all),
        cmocka_unit_test(who_has_room_stays),
        cmocka_unit_test(who_has_none_leaves_and_passes_by_what_is_full),
        cmocka_unit_test(once_each_has_looked_all_have_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
