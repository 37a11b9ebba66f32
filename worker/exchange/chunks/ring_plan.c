/* Works out which segment a worker sends and receives in each hop of the ring. */
#include "worker/exchange/chunks/ring_plan.h"

#include <assert.h>

uint32_t ring_hop_count(uint32_t world)
{
    assert(world > 0);
    return 2 * (world - 1);
}

struct ring_hop ring_hop_at(uint32_t world, uint32_t hop)
{
    assert(hop >= 1 && hop <= ring_hop_count(world));
    return (struct ring_hop){
        .adds = hop < world,
        .completes = hop == world - 1,
        .is_final = hop >= world - 1,
        .goes_on = hop < ring_hop_count(world),
    };
}

uint32_t ring_chunk_at(uint32_t world, uint32_t rank, uint32_t hop)
{
    // The chunk has moved `hop` ranks on from where it started.
    return (rank + world - hop % world) % world;
}

uint32_t ring_segment_count(struct span chunk, uint64_t segment_count_max)
{
    return (uint32_t)((chunk.count + segment_count_max - 1) / segment_count_max);
}

struct span ring_segment(struct span chunk, uint64_t segment_count_max, uint32_t index)
{
    uint64_t start = index * segment_count_max;
    assert(start < chunk.count);
    uint64_t rest = chunk.count - start;
    return (struct span){chunk.offset + start, rest < segment_count_max ? rest : segment_count_max};
}
