/* Sums buckets in blocks. Each idle worker takes a block, adds up the vectors of all workers, and
 * writes the mean into each of them. */
#include "worker/exchange/ring_mean.h"
#include "worker/exchange/shared/block_plan.h"
#include "worker/exchange/shared/group_state.h"

void blocks_plan(struct bucket_state *state, uint64_t value_count)
{
    state->algorithm = &group_blocks;
    state->block_floats = block_plan_floats(value_count);
    state->block_count = block_plan_count(value_count);
}

/* Writes the mean of a block into all vectors. */
static void reduce_block(const struct group *group, uint32_t bucket, uint32_t block)
{
    uint32_t world = group->options.world;
    struct span whole = group->options.layout->buckets[bucket];
    uint64_t start = block * group->buckets[bucket].block_floats;
    uint64_t rest = whole.count - start, most = group->buckets[bucket].block_floats;
    struct span span = {whole.offset + start, rest < most ? rest : most};
    float *vectors[ALL_REDUCE_SHARED_MAX];
    for (uint32_t rank = 0; rank < world; rank++) {
        vectors[rank] = group->grads[rank] + span.offset;
    }
    ring_mean(whole, span, vectors, world);
}

/* Takes a block that no worker has taken, if there is one. */
static enum status take(const struct bucket_state *state, struct counters *counters,
                        uint32_t *ret_block, bool *ret_has_block)
{
    uint32_t end = state->round * state->block_count;
    uint32_t taken = atomic_load(&counters->taken);
    *ret_has_block = false;
    do {
        if (taken == end) {
            return STATUS_OK;
        }
        if (end - taken > state->block_count) {
            return STATUS_MALFORMED; // a process that shares this memory has overwritten the board
        }
    } while (!atomic_compare_exchange_weak(&counters->taken, &taken, taken + 1));
    *ret_block = state->block_count - (end - taken);
    *ret_has_block = true;
    return STATUS_OK;
}

/* Works on a bucket for as long as it has blocks, if all workers have arrived. The last one to
 * arrive takes a single block. */
static enum status work_on(struct group *group, uint32_t bucket)
{
    struct bucket_state *state = &group->buckets[bucket];
    struct counters *counters = &group->board->buckets[bucket];
    if (state->block_count <= 1 ||
        atomic_load(&counters->arrived) != state->round * group->options.processes) {
        return STATUS_OK;
    }
    for (;;) {
        uint32_t block;
        bool has_block;
        enum status status = take(state, counters, &block, &has_block);
        if (status != STATUS_OK || !has_block) {
            return status;
        }
        reduce_block(group, bucket, block);
        uint32_t finished = atomic_fetch_add(&counters->finished, 1) + 1;
        if (finished == state->round * state->block_count) {
            bell_ring(&group->board->bell);
        }
    }
}

bool blocks_have_work(const struct group *group)
{
    for (uint32_t i = 0; i < group->options.layout->bucket_count; i++) {
        const struct bucket_state *state = &group->buckets[i];
        const struct counters *counters = &group->board->buckets[i];
        if (state->is_unfinished && state->block_count > 1 &&
            atomic_load(&counters->arrived) == state->round * group->options.processes &&
            atomic_load(&counters->taken) != state->round * state->block_count) {
            return true;
        }
    }
    return false;
}

enum status blocks_work(struct group *group)
{
    for (uint32_t i = 0; i < group->options.layout->bucket_count; i++) {
        if (!group->buckets[i].is_unfinished) {
            continue;
        }
        enum status status = work_on(group, i);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status arrive(struct group *group, uint32_t bucket)
{
    const struct bucket_state *state = &group->buckets[bucket];
    struct counters *counters = &group->board->buckets[bucket];
    uint32_t arrived = atomic_fetch_add(&counters->arrived, 1) + 1;
    if (arrived != state->round * group->options.processes) {
        return STATUS_OK;
    }
    if (state->block_count == 1) {
        // No other worker could do any of it, so there is nothing to agree on.
        reduce_block(group, bucket, 0);
        atomic_store(&counters->taken, state->round);
        atomic_store(&counters->finished, state->round);
    }
    bell_ring(&group->board->bell); // workers that sleep can help, or go on
    return STATUS_OK;
}

static bool is_complete(const struct group *group, uint32_t bucket)
{
    const struct bucket_state *state = &group->buckets[bucket];
    return atomic_load(&group->board->buckets[bucket].finished) ==
           state->round * state->block_count;
}

const struct group_algorithm group_blocks = {.arrive = arrive, .is_complete = is_complete};
