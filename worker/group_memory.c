/* Regions of all workers of a host, mapped. */
#include "worker/group_memory.h"

#include "worker/neighbours.h"

#include <assert.h>

enum status group_memory_offer(struct group_memory *memory, uint32_t rank, uint32_t world,
                               const struct layout *layout, const struct region *grads,
                               char place[ENDPOINTS_PLACE_BYTES])
{
    endpoints_add_region(place, &grads->key);
    if (rank != 0) {
        return STATUS_OK;
    }
    enum status status = region_create(group_board_bytes(layout, world), &memory->board);
    if (status == STATUS_OK) {
        endpoints_add_region(place, &memory->board.key);
    }
    return status;
}

/* A region of a place, if it is as large as it has to be. */
static enum status map(const char *place, uint32_t index, size_t size, struct region_view *ret_view)
{
    struct region_key key;
    enum status status = endpoints_region(place, index, &key);
    if (status == STATUS_OK && key.size < size) {
        status = STATUS_MALFORMED;
    }
    if (status == STATUS_OK) {
        status = region_open(&key, REGION_WRITE, ret_view);
    }
    return status == STATUS_OK ? STATUS_OK : STATUS_UNREACHABLE;
}

static enum status map_rank(struct group_memory *memory, const char *place, uint32_t index,
                            bool is_own, const struct region *grads)
{
    if (is_own) {
        memory->grads[index] = grads->bytes;
    } else {
        enum status status = map(place, 0, grads->key.size, &memory->views[index]);
        if (status != STATUS_OK) {
            return status;
        }
        memory->grads[index] = (float *)(void *)memory->views[index].bytes;
    }
    if (index > 0) {
        return STATUS_OK;
    }
    memory->board_bytes = memory->board.bytes;
    enum status status = STATUS_OK;
    if (!is_own) {
        status = map(place, 1, 1, &memory->board_view);
        memory->board_bytes = memory->board_view.bytes;
    }
    return status;
}

static void unmap(struct group_memory *memory)
{
    region_close(&memory->board_view);
    for (uint32_t i = 0; i < ALL_REDUCE_SHARED_MAX; i++) {
        region_close(&memory->views[i]);
        memory->grads[i] = NULL;
    }
    memory->board_bytes = NULL;
}

enum status group_memory_map(struct group_memory *memory, const char *places, uint32_t rank,
                             uint32_t world, const struct region *grads)
{
    assert(world <= ALL_REDUCE_SHARED_MAX);
    const char *line = places;
    for (uint32_t i = 0; i < world; i++) {
        char place[ENDPOINTS_PLACE_BYTES];
        (void)neighbours_read_place(line, place, &line); // an empty one has no region
        enum status status = map_rank(memory, place, i, i == rank, grads);
        if (status != STATUS_OK) {
            unmap(memory);
            return status;
        }
    }
    return STATUS_OK;
}

enum status group_memory_begin(struct group_memory *memory, uint32_t rank, uint32_t world,
                               const struct layout *layout)
{
    if (memory->board_bytes == NULL ||
        (rank != 0 && memory->board_view.size < group_board_bytes(layout, world))) {
        return STATUS_MALFORMED; // what a coordinator of ours does not ask for
    }
    const struct group_options options = {
        .rank = rank,
        .world = world,
        .layout = layout,
        .grads = memory->grads,
        .board = memory->board_bytes,
    };
    return group_create(&options, &memory->group);
}

void group_memory_finish(struct group_memory *memory)
{
    group_destroy(memory->group);
    unmap(memory);
    region_destroy(&memory->board);
    *memory = (struct group_memory){0};
}
