/* Works out the hops of halving and doubling from the bits of differences between ranks. */
#include "common/plan/halving_plan.h"

#include <assert.h>
#include <stddef.h>

static uint32_t round_count(uint32_t world)
{
    assert(world > 0 && world <= UINT32_C(1) << 24);
    return world == 1 ? 0 : 32 - (uint32_t)__builtin_clz(world - 1);
}

uint32_t halving_hop_count(uint32_t world)
{
    return 2 * round_count(world);
}

/* Numbers below `world` that have bit `bit`. */
static uint32_t count_with(uint32_t world, uint32_t bit)
{
    uint32_t whole = world / (2 * bit) * bit, rest = world % (2 * bit);
    return whole + (rest > bit ? rest - bit : 0);
}

/* Pieces in the store before those that go by `distance`. */
static uint32_t count_before(uint32_t world, uint32_t distance)
{
    uint32_t count = 0;
    for (uint32_t bit = 1; bit < distance; bit *= 2) {
        count += count_with(world, bit);
    }
    return count;
}

uint32_t halving_value_count(uint32_t world)
{
    return count_before(world, UINT32_C(1) << round_count(world));
}

struct halving_hop halving_hop_at(uint32_t world, uint32_t hop)
{
    uint32_t rounds = round_count(world);
    assert(hop >= 1 && hop <= 2 * rounds);
    uint32_t distance = UINT32_C(1) << (hop - 1) % rounds;
    if (hop <= rounds) {
        return (struct halving_hop){
            .completes = hop == rounds,
            .goes_on = true,
            .distance = distance,
            .first = count_before(world, distance),
            .count = count_with(world, distance),
        };
    }
    return (struct halving_hop){
        .is_doubling = true,
        .goes_on = hop < 2 * rounds,
        .distance = distance,
        .first = halving_value_count(world),
        .count = distance <= world - distance ? distance : world - distance,
    };
}

bool halving_meets(uint32_t world, uint32_t offset)
{
    uint32_t back = world - offset;
    return offset > 0 && offset < world && (back & (back - 1)) == 0;
}

uint32_t halving_ahead(const struct halving_hop *hop, uint32_t index)
{
    assert(!hop->is_doubling && index < hop->count);
    uint32_t low = index % hop->distance;
    return 2 * (index - low) + hop->distance + low;
}

uint32_t halving_place(uint32_t world, uint32_t ahead, uint32_t distance)
{
    uint32_t left = ahead & ~(distance - 1);
    assert(ahead < world && left != 0);
    uint32_t next = left & -left;
    uint32_t low = ahead % next;
    return count_before(world, next) + (ahead - low - next) / 2 + low;
}
