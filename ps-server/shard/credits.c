/* Decides when a worker gets a credit for another push. */
#include "ps-server/shard/credits.h"

#include <stdlib.h>

enum status credits_begin(struct credits *credits, uint32_t worker_count, uint32_t bucket_count,
                          bool is_level)
{
    credits_finish(credits);
    *credits = (struct credits){
        .worker_count = worker_count,
        .bucket_count = bucket_count,
        .is_level = is_level,
        .pushed_bytes = calloc(worker_count, sizeof(*credits->pushed_bytes)),
        .taken_bytes = calloc(worker_count, sizeof(*credits->taken_bytes)),
        .waiting = calloc((size_t)worker_count * bucket_count, sizeof(*credits->waiting)),
        .first = calloc(worker_count, sizeof(*credits->first)),
        .waiting_count = calloc(worker_count, sizeof(*credits->waiting_count)),
    };
    bool has_all = credits->pushed_bytes != NULL && credits->taken_bytes != NULL &&
                   credits->waiting != NULL && credits->first != NULL &&
                   credits->waiting_count != NULL;
    return has_all ? STATUS_OK : STATUS_NO_MEMORY;
}

void credits_finish(struct credits *credits)
{
    free(credits->pushed_bytes);
    free(credits->taken_bytes);
    free(credits->waiting);
    free(credits->first);
    free(credits->waiting_count);
    *credits = (struct credits){0};
}

void credits_add(struct credits *credits, const struct credit *push)
{
    uint32_t rank = push->rank;
    credits->pushed_bytes[rank] += push->bytes;
    // A shard takes each bucket once in a step, and the next step begins when all have pushed.
    if (credits->waiting_count[rank] < credits->bucket_count) {
        uint32_t place =
            (credits->first[rank] + credits->waiting_count[rank]++) % credits->bucket_count;
        credits->waiting[(size_t)rank * credits->bucket_count + place] = *push;
    }
}

static uint64_t least_pushed(const struct credits *credits)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < credits->worker_count; i++) {
        least = credits->pushed_bytes[i] < least ? credits->pushed_bytes[i] : least;
    }
    return least;
}

bool credits_take(struct credits *credits, struct credit *ret_push)
{
    uint64_t limit = credits->is_level ? least_pushed(credits) : UINT64_MAX;
    for (uint32_t rank = 0; rank < credits->worker_count; rank++) {
        if (credits->waiting_count[rank] == 0) {
            continue;
        }
        uint32_t *first = &credits->first[rank];
        const struct credit *push =
            &credits->waiting[(size_t)rank * credits->bucket_count + *first];
        if (push->bytes > limit - credits->taken_bytes[rank]) {
            continue;
        }
        *ret_push = *push;
        credits->taken_bytes[rank] += push->bytes;
        *first = (*first + 1) % credits->bucket_count;
        credits->waiting_count[rank]--;
        return true;
    }
    return false;
}
