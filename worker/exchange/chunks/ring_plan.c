/* Works out which segment a worker sends and receives in each hop of the ring. */
#include "worker/exchange/chunks/ring_plan.h"

#include <assert.h>

struct ring_path ring_path_of(struct carriers carriers, uint32_t chunk)
{
    uint32_t start = carriers_process(carriers, chunk), others = carriers.processes - 1;
    bool comes_back = carriers_block(carriers, start).first != chunk;
    if (others == 0) {
        return (struct ring_path){.start = start};
    }
    uint32_t sum_hops = others + (comes_back ? 1 : 0);
    return (struct ring_path){start, sum_hops, sum_hops + others};
}

uint32_t ring_receiver(struct carriers carriers, const struct ring_path *path, uint32_t hop)
{
    return (path->start + hop) % carriers.processes;
}

struct ring_hop ring_hop_at(const struct ring_path *path, uint32_t hop)
{
    assert(hop >= 1 && hop <= path->hop_count);
    return (struct ring_hop){
        .adds = hop <= path->sum_hops,
        .completes = hop == path->sum_hops,
        .is_final = hop >= path->sum_hops,
        .goes_on = hop < path->hop_count,
    };
}

struct rank_block ring_adders(struct carriers carriers, uint32_t chunk, uint32_t hop)
{
    const struct ring_path path = ring_path_of(carriers, chunk);
    uint32_t process = ring_receiver(carriers, &path, hop);
    struct rank_block block = carriers_block(carriers, process);
    uint32_t before = chunk - block.first; // where the sum starts in its midst
    if (process != path.start) {
        return block;
    }
    return hop == 0 ? (struct rank_block){chunk, block.count - before}
                    : (struct rank_block){block.first, before};
}

uint32_t ring_chunk_of(struct span bucket, uint32_t world, uint64_t offset)
{
    assert(offset >= bucket.offset && offset - bucket.offset < bucket.count);
    uint64_t at = offset - bucket.offset, base = bucket.count / world, rest = bucket.count % world;
    uint64_t in_longer = rest * (base + 1);
    return (uint32_t)(at < in_longer ? at / (base + 1) : rest + (at - in_longer) / base);
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
