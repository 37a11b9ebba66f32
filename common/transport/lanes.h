/* Lists the connections to one peer, its lanes. There are several where one does not fill the link
 * (--connections).
 *
 * Messages of one lane arrive in the order in which they were sent; those of different lanes may
 * arrive in any order. Between a worker and a shard, the messages of a bucket keep their order
 * because they take one lane. */
#ifndef COMMON_TRANSPORT_LANES_H
#define COMMON_TRANSPORT_LANES_H

#include <stdbool.h>
#include <stdint.h>

#define LANES_MAX  8
#define LANES_NONE UINT64_MAX // stands for a connection that is not known yet

/* Zeroed: there are no connections to this peer. */
struct lanes {
    uint64_t peers[LANES_MAX]; // (count) as the transport names them
    uint32_t count;
};

/* Returns the lane that a bucket takes. There has to be one. */
static inline uint32_t lanes_index_of_bucket(const struct lanes *lanes, uint32_t bucket)
{
    return bucket % lanes->count;
}

static inline uint64_t lanes_of_bucket(const struct lanes *lanes, uint32_t bucket)
{
    return lanes->peers[lanes_index_of_bucket(lanes, bucket)];
}

static inline bool lanes_have(const struct lanes *lanes, uint64_t peer)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        if (lanes->peers[i] == peer) {
            return true;
        }
    }
    return false;
}

#endif
