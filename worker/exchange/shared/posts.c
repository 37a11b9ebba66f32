/* Posts a worker's values in shared memory, and adds up everybody's. */
#include "worker/exchange/shared/posts.h"

#include "common/vector/layout.h"
#include "common/vector/vector.h"

#include <stdatomic.h>
#include <string.h>

// The bytes that, with their round, fill a pair of cache lines. For more, many lines would have to
// cross, and it is faster if one worker adds up a block for all than if all add up everything.
#define COUNT_MAX 31

struct post {
    _Atomic uint32_t round;
    float values[]; // of one worker
};

bool posts_serve(uint64_t count)
{
    return count <= COUNT_MAX;
}

static size_t post_bytes(uint64_t count)
{
    size_t bytes = sizeof(struct post) + count * sizeof(float);
    return (bytes + POSTS_ALIGNMENT - 1) / POSTS_ALIGNMENT * POSTS_ALIGNMENT;
}

size_t posts_bytes(uint64_t count, uint32_t world)
{
    return (size_t)2 * world * post_bytes(count);
}

static struct post *post_of(const struct posts *posts, uint32_t round, uint32_t rank)
{
    size_t index = (size_t)(round % 2) * posts->world + rank;
    return (struct post *)(void *)(posts->start + index * post_bytes(posts->count));
}

void posts_put(const struct posts *posts, uint32_t round, const float *values)
{
    struct post *post = post_of(posts, round, posts->rank);
    memcpy(post->values, values, posts->count * sizeof(float));
    atomic_store(&post->round, round);
}

bool posts_are_complete(const struct posts *posts, uint32_t round)
{
    for (uint32_t k = 1; k < posts->world; k++) {
        uint32_t rank = (posts->rank + k) % posts->world;
        if (atomic_load(&post_of(posts, round, rank)->round) != round) {
            return false;
        }
    }
    return true;
}

void posts_mean(const struct posts *posts, uint32_t round, float *ret_mean)
{
    uint32_t world = posts->world;
    for (uint32_t c = 0; c < world; c++) {
        struct span chunk = span_part((struct span){0, posts->count}, world, c);
        if (chunk.count == 0) {
            continue;
        }
        float *mean = ret_mean + chunk.offset;
        memcpy(mean, post_of(posts, round, c)->values + chunk.offset, chunk.count * sizeof(float));
        for (uint32_t k = 1; k < world; k++) {
            const struct post *post = post_of(posts, round, (c + k) % world);
            vector_add(mean, post->values + chunk.offset, chunk.count);
        }
        vector_scale(mean, 1.0f / (float)world, chunk.count);
    }
}
