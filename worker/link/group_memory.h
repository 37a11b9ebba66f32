/* The memory in which workers of one host all-reduce: rank 0's board, and every worker's gradients,
 * if all of them lie where others may map them. Otherwise they go by way of bounce buffers behind
 * the board. */
#ifndef WORKER_LINK_GROUP_MEMORY_H
#define WORKER_LINK_GROUP_MEMORY_H

#include "common/base/region.h"
#include "common/base/status.h"
#include "common/transport/endpoints.h"
#include "common/vector/layout.h"
#include "worker/exchange/shared/group.h"

#include <stdint.h>

/* Zeroed is empty. */
struct group_memory {
    struct region board;                                         // rank 0's own
    void *board_bytes;                                           // as it is mapped here
    struct region_view board_view, views[ALL_REDUCE_SHARED_MAX]; // of others
    float *grads[ALL_REDUCE_SHARED_MAX]; // by rank; NULL with bounce buffers
    struct group *group;                 // NULL until group_memory_begin
};

/* What others need to map what is here goes into `place`: on rank 0 of the board, which is made for
 * it, and of gradients, which NULL leaves where they are. Logs. */
enum status group_memory_offer(struct group_memory *memory, uint32_t rank, uint32_t world,
                               const struct layout *layout, const struct region *grads,
                               char place[ENDPOINTS_PLACE_BYTES]);

/* Maps what the places of all workers name: one a line, in the order of ranks. STATUS_UNREACHABLE
 * if something cannot be mapped, or some offer gradients and others do not; nothing is mapped then.
 * Does not log. */
enum status group_memory_map(struct group_memory *memory, const char *places, uint32_t rank,
                             uint32_t world, const struct region *grads);

/* Once all workers have mapped everything. `grads`: this worker's, (layout->value_count). */
enum status group_memory_begin(struct group_memory *memory, uint32_t rank, uint32_t world,
                               const struct layout *layout, float *grads);

void group_memory_finish(struct group_memory *memory); // empty is fine

#endif
