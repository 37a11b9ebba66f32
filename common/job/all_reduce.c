/* Names the algorithms of the all-reduce, and works out which is fastest. */
#include "common/job/all_reduce.h"

#include "common/plan/halving_plan.h"

#include <assert.h>
#include <math.h>

#define NS_PER_SECOND 1e9

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

/* What a bucket takes, see all_reduce.h. */
struct cost {
    double waits_s;    // of messages that are waited for, one after the other
    double further_s;  // of those beside
    double messages_s; // of all messages, handled one after the other
    double byte_s;     // each byte of the bucket
};

static struct cost cost_of(enum all_reduce algorithm, uint32_t workers,
                           const struct all_reduce_path *path)
{
    assert(workers > 0 && path->bandwidth > 0);
    double latency = (double)path->latency_ns / NS_PER_SECOND;
    double message = (double)path->message_ns / NS_PER_SECOND;
    double others = workers - 1.0;
    double waits = 2 * others, messages = 2 * others, pieces = 2 * others;
    if (algorithm == ALL_REDUCE_HALVING) {
        waits = messages = halving_hop_count(workers);
        pieces = halving_value_count(workers) + others;
    } else if (algorithm == ALL_REDUCE_DIRECT) {
        waits = 2;
    }
    return (struct cost){.waits_s = waits * latency,
                         .further_s = (messages - waits) * message,
                         .messages_s = messages * message,
                         .byte_s = pieces / workers / (double)path->bandwidth};
}

static double last_bucket_s(const struct cost *cost, double bytes)
{
    return cost->waits_s + fmax(cost->further_s, bytes * cost->byte_s);
}

/* A step of so many buckets, all of one size. */
static double step_s(const struct cost *cost, uint32_t buckets, double bytes)
{
    return last_bucket_s(cost, bytes) +
           (buckets - 1.0) * fmax(cost->messages_s, bytes * cost->byte_s);
}

enum all_reduce all_reduce_choose(const struct all_reduce_load *load,
                                  const struct all_reduce_path *path)
{
    uint32_t workers = load->workers, buckets = load->buckets;
    if (workers <= 2 || buckets == 0 || path->bandwidth == 0) {
        return ALL_REDUCE_RING; // two do the same in each of them
    }
    double bytes = (double)load->floats * sizeof(float) / buckets;
    const struct cost ring = cost_of(ALL_REDUCE_RING, workers, path);
    const struct cost direct = cost_of(ALL_REDUCE_DIRECT, workers, path);
    const struct cost halving = cost_of(ALL_REDUCE_HALVING, workers, path);
    bool is_direct =
        load->may_meet && last_bucket_s(&direct, bytes) <= WORTH * last_bucket_s(&ring, bytes);
    double best_s =
        is_direct ? step_s(&direct, buckets, bytes) : WORTH * step_s(&ring, buckets, bytes);
    if (load->may_halve && step_s(&halving, buckets, bytes) < best_s) {
        return ALL_REDUCE_HALVING;
    }
    return is_direct ? ALL_REDUCE_DIRECT : ALL_REDUCE_RING;
}
