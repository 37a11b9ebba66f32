/* Names the algorithms of the all-reduce, and works out which is fastest. */
#include "common/job/all_reduce.h"

#include "common/plan/halving_plan.h"

#include <assert.h>

#define NS_PER_SECOND 1e9
#define FLOATS_MAX    (UINT64_C(1) << 38) // of a limit that was worked out

// The ring is left for what takes at most this share of its time.
#define WORTH 0.9

static const char *const names[ALL_REDUCE_COUNT] = {
    [ALL_REDUCE_RING] = "ring",
    [ALL_REDUCE_DIRECT] = "direct",
    [ALL_REDUCE_SHARED] = "direct in shared memory",
    [ALL_REDUCE_HALVING] = "halving-doubling",
    [ALL_REDUCE_NCCL] = "nccl",
};

const char *all_reduce_name(enum all_reduce algorithm)
{
    return names[algorithm];
}

bool all_reduce_shuns_memory(enum all_reduce_choice choice)
{
    switch (choice) {
    case ALL_REDUCE_CHOICE_AUTO:
    case ALL_REDUCE_CHOICE_DIRECT:
        return false;
    case ALL_REDUCE_CHOICE_RING:
    case ALL_REDUCE_CHOICE_HALVING:
    case ALL_REDUCE_CHOICE_NCCL:
        return true;
    }
    return false;
}

bool all_reduce_meets(enum all_reduce algorithm, uint32_t workers, uint32_t offset)
{
    return algorithm != ALL_REDUCE_NCCL &&
           (offset == 1 || algorithm == ALL_REDUCE_DIRECT ||
            (algorithm == ALL_REDUCE_HALVING && halving_meets(workers, offset)));
}

enum all_reduce all_reduce_of_bucket(const struct all_reduce_limits *limits, uint64_t floats)
{
    if (floats <= limits->halving_floats_max) {
        return ALL_REDUCE_HALVING;
    }
    return floats <= limits->direct_floats_max ? ALL_REDUCE_DIRECT : ALL_REDUCE_RING;
}

enum all_reduce all_reduce_widest(const struct all_reduce_limits *limits)
{
    if (limits->direct_floats_max > limits->halving_floats_max) {
        return ALL_REDUCE_DIRECT;
    }
    return limits->halving_floats_max > 0 ? ALL_REDUCE_HALVING : ALL_REDUCE_RING;
}

/* A straight line over the bytes of a bucket. */
struct cost {
    double seconds, seconds_per_byte;
};

/* See all_reduce.h. */
static struct cost cost_of(enum all_reduce algorithm, uint32_t workers,
                           const struct all_reduce_path *path)
{
    assert(workers > 0 && path->bandwidth > 0);
    double latency = (double)path->latency_ns / NS_PER_SECOND;
    double message = (double)path->message_ns / NS_PER_SECOND;
    double others = workers - 1.0;
    double waits = 2 * others, messages = 0, pieces = 2 * others;
    if (algorithm == ALL_REDUCE_DIRECT) {
        waits = 2;
        messages = 2 * (others - 1);
    } else if (algorithm == ALL_REDUCE_HALVING) {
        waits = halving_hop_count(workers);
        pieces = halving_value_count(workers) + others;
    }
    return (struct cost){waits * latency + messages * message,
                         pieces / workers / (double)path->bandwidth};
}

/* The number of floats up to which `cost` is the lower one. 0: never. */
static uint64_t floats_below(struct cost cost, struct cost other)
{
    if (cost.seconds >= other.seconds) {
        return 0; // none of ours begins above another and gains on it
    }
    double slope = cost.seconds_per_byte - other.seconds_per_byte;
    double bytes = slope > 0 ? (other.seconds - cost.seconds) / slope : (double)UINT64_MAX;
    return bytes < (double)(FLOATS_MAX * sizeof(float)) ? (uint64_t)bytes / sizeof(float)
                                                        : FLOATS_MAX;
}

struct all_reduce_limits all_reduce_choose(uint32_t workers, bool may_meet,
                                           const struct all_reduce_path *path)
{
    if (workers <= 2 || path->bandwidth == 0) {
        return (struct all_reduce_limits){0}; // two do the same in each of them
    }
    struct cost ring = cost_of(ALL_REDUCE_RING, workers, path);
    struct cost halving = cost_of(ALL_REDUCE_HALVING, workers, path);
    struct cost direct = cost_of(ALL_REDUCE_DIRECT, workers, path);
    ring.seconds *= WORTH;
    ring.seconds_per_byte *= WORTH;
    struct all_reduce_limits limits = {.halving_floats_max = floats_below(halving, ring)};
    if (may_meet) {
        uint64_t below_direct = floats_below(halving, direct);
        limits.direct_floats_max = floats_below(direct, ring);
        limits.halving_floats_max =
            below_direct < limits.halving_floats_max ? below_direct : limits.halving_floats_max;
    }
    if (limits.direct_floats_max <= limits.halving_floats_max) {
        limits.direct_floats_max = 0; // no bucket takes it, so workers need not all connect
    }
    return limits;
}
