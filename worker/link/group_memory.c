/* Maps the regions of all workers of a host. */
#include "worker/link/group_memory.h"

#include "common/vector/layout.h"
#include "worker/link/neighbours.h"

#include <assert.h>

enum status group_memory_offer(struct group_memory *memory, const struct group_members *members,
                               const struct layout *layout, const struct region *grads,
                               char place[ENDPOINTS_PLACE_BYTES])
{
    memory->members = *members;
    memory->value_count = layout->value_count;
    if (members->process == 0) {
        size_t size = group_board_bytes(layout, members->carriers.ranks, grads == NULL);
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

/* Maps a region of a place, if it is large enough. */
static enum status map(const char *place, uint32_t index, size_t size, struct region_view *ret_view)
{
    struct region_key key;
    bool is_usable = endpoints_region(place, index, &key) == STATUS_OK && key.size >= size &&
                     region_open(&key, REGION_WRITE, ret_view) == STATUS_OK;
    return is_usable ? STATUS_OK : STATUS_UNREACHABLE;
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

/* The vectors of a process lie one behind the other. */
static void note_vectors(struct group_memory *memory, struct rank_block ranks, float *first)
{
    for (uint32_t i = 0; i < ranks.count; i++) {
        memory->grads[ranks.first + i] = first + i * layout_stride(memory->value_count);
    }
}

/* Of a process. `grads`: this one's; NULL: nobody is to have any mapped. */
static enum status map_grads(struct group_memory *memory, const char *place, uint32_t process,
                             const struct region *grads)
{
    struct rank_block ranks = carriers_block(memory->members.carriers, process);
    uint32_t region = process == 0 ? 1 : 0; // the first one has the board in front
    if (grads == NULL) {
        struct region_key key;
        bool has_none = endpoints_region(place, region, &key) == STATUS_INVALID;
        bool is_alone = memory->members.carriers.processes == memory->members.carriers.ranks;
        return has_none && is_alone ? STATUS_OK : STATUS_UNREACHABLE;
    }
    if (process == memory->members.process) {
        note_vectors(memory, ranks, grads->bytes);
        return STATUS_OK;
    }
    uint64_t floats = (ranks.count - 1) * layout_stride(memory->value_count) + memory->value_count;
    struct region_view *view = &memory->views[process];
    enum status status = map(place, region, floats * sizeof(float), view);
    if (status == STATUS_OK) {
        note_vectors(memory, ranks, (float *)(void *)view->bytes);
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

enum status group_memory_map(struct group_memory *memory, const char *places,
                             const struct region *grads)
{
    const struct group_members *members = &memory->members;
    assert(members->carriers.ranks <= ALL_REDUCE_SHARED_MAX);
    const char *line = places;
    for (uint32_t i = 0; i < members->carriers.processes; i++) {
        char place[ENDPOINTS_PLACE_BYTES];
        (void)neighbours_read_place(line, place, &line); // an empty one has no region
        enum status status = map_grads(memory, place, i, grads);
        if (status == STATUS_OK && i == 0) {
            status = map_board(memory, place, members->process == 0);
        }
        if (status != STATUS_OK) {
            unmap(memory);
            return status;
        }
    }
    return STATUS_OK;
}

enum status group_memory_begin(struct group_memory *memory, const struct layout *layout,
                               float *const *vectors)
{
    const struct group_members *members = &memory->members;
    if (memory->board_bytes == NULL) {
        return STATUS_MALFORMED; // what a coordinator of ours does not ask for
    }
    struct rank_block ranks = carriers_block(members->carriers, members->process);
    bool has_bounce = memory->grads[ranks.first] == NULL;
    size_t board_bytes = group_board_bytes(layout, members->carriers.ranks, has_bounce);
    if (members->process != 0 && memory->board_view.size < board_bytes) {
        return STATUS_MALFORMED;
    }
    const struct group_options options = {
        .rank = ranks.first,
        .world = members->carriers.ranks,
        .processes = members->carriers.processes,
        .left_out = members->carriers.left_out,
        .layout = layout,
        .own = vectors[ranks.count - 1],
        .vectors = vectors,
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
