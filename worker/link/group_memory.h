/* The memory in which workers of one host all-reduce: the first one's board, and every worker's
 * gradients, one vector for each rank that it carries, if all of them lie where others may map
 * them. Otherwise they go by way of bounce buffers behind the board. */
#ifndef WORKER_LINK_GROUP_MEMORY_H
#define WORKER_LINK_GROUP_MEMORY_H

#include "common/base/region.h"
#include "common/base/status.h"
#include "common/job/carriers.h"
#include "common/transport/endpoints.h"
#include "common/vector/layout.h"
#include "worker/exchange/shared/group.h"

#include <stdint.h>

/* Which process this is, and which ranks each carries. */
struct group_members {
    struct carriers carriers;
    uint32_t process;
};

/* Zeroed is empty. */
struct group_memory {
    struct group_members members;
    uint64_t value_count;                                        // of a vector
    struct region board;                                         // the first process's own
    void *board_bytes;                                           // as it is mapped here
    struct region_view board_view, views[ALL_REDUCE_SHARED_MAX]; // of others
    float *grads[ALL_REDUCE_SHARED_MAX]; // by rank; NULL with bounce buffers
    struct group *group;                 // NULL until group_memory_begin
};

/* What others need to map what is here goes into `place`: on the first process of the board, which
 * is made for it, and of gradients, which NULL leaves where they are. Logs. */
enum status group_memory_offer(struct group_memory *memory, const struct group_members *members,
                               const struct layout *layout, const struct region *grads,
                               char place[ENDPOINTS_PLACE_BYTES]);

/* Maps what the places of all worker processes name: one a line, in their order. After
 * group_memory_offer. STATUS_UNREACHABLE if something cannot be mapped, or some offer gradients and
 * others do not; nothing is mapped then. Bounce buffers are for a process for each rank. Does not
 * log. */
enum status group_memory_map(struct group_memory *memory, const char *places,
                             const struct region *grads);

/* Once all workers have mapped everything. `vectors`: gradients of each rank that this process
 * carries, (layout->value_count). */
enum status group_memory_begin(struct group_memory *memory, const struct layout *layout,
                               float *const *vectors);

void group_memory_finish(struct group_memory *memory); // empty is fine

#endif
