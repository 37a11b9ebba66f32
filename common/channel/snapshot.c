/* Keeps spans of vectors, and cuts them into pieces. */
#include "common/channel/snapshot.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum status snapshot_add(struct snapshot *snapshot, const char *vector, uint64_t total,
                         struct span span)
{
    if (span.count == 0) {
        return STATUS_OK;
    }
    if (snapshot->entry_count == snapshot->capacity) {
        uint32_t capacity = snapshot->capacity == 0 ? 16 : 2 * snapshot->capacity;
        struct snapshot_entry *entries =
            realloc(snapshot->entries, capacity * sizeof(*snapshot->entries));
        if (entries == NULL) {
            return STATUS_NO_MEMORY;
        }
        snapshot->entries = entries;
        snapshot->capacity = capacity;
    }
    struct snapshot_entry *entry = &snapshot->entries[snapshot->entry_count++];
    *entry = (struct snapshot_entry){.total = total, .span = span, .start = snapshot->value_count};
    snprintf(entry->vector, sizeof(entry->vector), "%s", vector);
    snapshot->value_count += span.count;
    return STATUS_OK;
}

enum status snapshot_allocate(struct snapshot *snapshot)
{
    assert(snapshot->memory == NULL);
    if (snapshot->value_count == 0) {
        return STATUS_OK;
    }
    snapshot->memory = memory_create_large(snapshot->value_count * sizeof(float));
    return snapshot->memory != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void snapshot_finish(struct snapshot *snapshot)
{
    memory_destroy_large(snapshot->memory, snapshot->value_count * sizeof(float));
    free(snapshot->entries);
    *snapshot = (struct snapshot){0};
}

float *snapshot_values(struct snapshot *snapshot, uint32_t entry)
{
    assert(entry < snapshot->entry_count);
    return snapshot->memory + snapshot->entries[entry].start;
}

void snapshot_rewind(struct snapshot *snapshot, uint64_t step)
{
    snapshot->step = step;
    snapshot->entry = 0;
    snapshot->offset = snapshot->sent_count = 0;
    snapshot->credits = 0;
    snapshot->is_over = false;
}

/* The one behind all others. */
static void close_with(struct snapshot *snapshot, struct wire_piece *ret_piece)
{
    *ret_piece = (struct wire_piece){.vector = "", .total = snapshot->sent_count};
    snapshot->is_over = true;
}

bool snapshot_next(struct snapshot *snapshot, struct wire_piece *ret_piece,
                   struct message *ret_message)
{
    if (snapshot->credits == 0 || snapshot->is_over) {
        return false;
    }
    snapshot->credits--;
    *ret_message =
        (struct message){.kind = MESSAGE_PIECE, .step = snapshot->step, .piece = ret_piece};
    if (snapshot->entry == snapshot->entry_count) {
        close_with(snapshot, ret_piece);
        return true;
    }
    const struct snapshot_entry *entry = &snapshot->entries[snapshot->entry];
    uint64_t left = entry->span.count - snapshot->offset;
    uint64_t count = left < SNAPSHOT_PIECE_FLOATS ? left : SNAPSHOT_PIECE_FLOATS;
    *ret_piece = (struct wire_piece){.vector = entry->vector, .total = entry->total};
    ret_message->span = (struct span){entry->span.offset + snapshot->offset, count};
    ret_message->values = snapshot->memory + entry->start + snapshot->offset;
    snapshot->sent_count++;
    snapshot->offset += count;
    if (snapshot->offset == entry->span.count) {
        snapshot->entry++;
        snapshot->offset = 0;
    }
    return true;
}
