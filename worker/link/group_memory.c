/* Maps the regions of all workers of a host. */
#include "worker/link/group_memory.h"

#include "worker/link/neighbours.h"

#include <assert.h>

enum status group_memory_offer(struct group_memory *memory, uint32_t rank, uint32_t world,
                               const struct layout *layout, const struct region *grads,
                               char place[ENDPOINTS_PLACE_BYTES])
{
    if (rank == 0) {
        size_t size = group_board_bytes(layout, world, grads == NULL);
        enum status status = region_create(size, &memory->board);
        if (status != STATUS_OK) {
            return status;
        }
        endpoints_add_region(place, &memory->board.key);
    }
    if (grads != NULL) {
        endpoints_add_region(place, &grads->key);
    }
    return STATUS_OK;
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

static enum status map_board(struct group_memory *memory, const char *place, bool is_own)
{
    if (is_own) {
        memory->board_bytes = memory->board.bytes;
        return STATUS_OK;
    }
    enum status status = map(place, 0, 1, &memory->board_view);
    memory->board_bytes = memory->board_view.bytes;
    return status;
}

/* Of the rank `index`. `grads`: this worker's; NULL: nobody is to have any mapped. */
static enum status map_grads(struct group_memory *memory, const char *place, uint32_t index,
                             bool is_own, const struct region *grads)
{
    uint32_t region = index == 0 ? 1 : 0; // rank 0 has the board in front
    if (grads == NULL) {
        struct region_key key;
        bool has_none = endpoints_region(place, region, &key) == STATUS_INVALID;
        return has_none ? STATUS_OK : STATUS_UNREACHABLE;
    }
    if (is_own) {
        memory->grads[index] = grads->bytes;
        return STATUS_OK;
    }
    enum status status = map(place, region, grads->key.size, &memory->views[index]);
    memory->grads[index] = (float *)(void *)memory->views[index].bytes;
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
        enum status status = map_grads(memory, place, i, i == rank, grads);
        if (status == STATUS_OK && i == 0) {
            status = map_board(memory, place, rank == 0);
        }
        if (status != STATUS_OK) {
            unmap(memory);
            return status;
        }
    }
    return STATUS_OK;
}

enum status group_memory_begin(struct group_memory *memory, uint32_t rank, uint32_t world,
                               const struct layout *layout, float *grads)
{
    bool has_bounce = memory->grads[rank] == NULL;
    if (memory->board_bytes == NULL ||
        (rank != 0 && memory->board_view.size < group_board_bytes(layout, world, has_bounce))) {
        return STATUS_MALFORMED; // what a coordinator of ours does not ask for
    }
    const struct group_options options = {
        .rank = rank,
        .world = world,
        .layout = layout,
        .own = grads,
        .grads = has_bounce ? NULL : memory->grads,
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
