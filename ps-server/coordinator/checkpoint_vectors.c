/* Finds vectors by name, and checks pieces of them. */
#include "ps-server/coordinator/checkpoint_vectors.h"

#include "common/channel/snapshot.h"
#include "ps-server/coordinator/coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS_MAX 65536

struct checkpoint_total *checkpoint_vectors_find(struct checkpoint_vectors *vectors,
                                                 const char *name)
{
    for (uint32_t i = 0; i < vectors->count; i++) {
        if (strcmp(vectors->list[i].name, name) == 0) {
            return &vectors->list[i];
        }
    }
    if (vectors->count == vectors->capacity) {
        uint32_t capacity = vectors->capacity == 0 ? 16 : 2 * vectors->capacity;
        struct checkpoint_total *list =
            capacity <= VECTORS_MAX ? realloc(vectors->list, capacity * sizeof(*list)) : NULL;
        if (list == NULL) {
            return NULL;
        }
        vectors->list = list;
        vectors->capacity = capacity;
    }
    struct checkpoint_total *vector = &vectors->list[vectors->count++];
    *vector = (struct checkpoint_total){.total = 0};
    snprintf(vector->name, sizeof(vector->name), "%s", name);
    return vector;
}

bool checkpoint_piece_is_sound(const struct coordinator *coordinator, const struct sender *from,
                               const struct message *message)
{
    struct piece_name name;
    const struct wire_piece *piece = message->piece;
    if (!piece_name_parse(piece->vector, &name) || message->values == NULL ||
        message->span.count > SNAPSHOT_PIECE_FLOATS || message->span.offset > piece->total ||
        message->span.count > piece->total - message->span.offset) {
        return false;
    }
    bool is_own = from->role == ROLE_WORKER &&
                  rank_block_has(carriers_block(coordinator->carriers, from->index), name.rank);
    bool is_statistics = name.has_rank && strstr(piece->vector, "/statistics") != NULL;
    return (!name.has_rank || is_own) &&
           (is_statistics ? piece->total <= SUMS_COUNT_MAX
                          : piece->total == coordinator->layout.value_count);
}
