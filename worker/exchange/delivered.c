/* Sums of parameters, by pieces: a piece is what a shard's part of a bucket and a watched span have
 * in common. */
#include "worker/exchange/delivered.h"

#include "common/vector/bit_sum.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

struct piece {
    struct span span;
    uint32_t watched;   // its index
    struct bit_sum sum; // of what came there last
};

struct delivered {
    struct piece *pieces; // (piece_count) ascending; owned
    uint32_t piece_count;
};

/* Cuts a part, of whose begin `*watched_index` is the watched span. */
static void add_pieces(struct delivered *delivered, struct span part, const struct span *watched,
                       uint32_t *watched_index)
{
    while (part.count > 0) {
        struct span span = watched[*watched_index];
        struct span both = span_intersect(part, span);
        assert(both.count > 0 && both.offset == part.offset);
        delivered->pieces[delivered->piece_count++] =
            (struct piece){.span = both, .watched = *watched_index};
        part.offset += both.count;
        part.count -= both.count;
        if (part.offset == span.offset + span.count) {
            ++*watched_index;
        }
    }
}

enum status delivered_create(const struct layout *layout, uint32_t shard_count,
                             const struct span *watched, uint32_t watched_count,
                             const float *params, struct delivered **ret_delivered)
{
    struct delivered *delivered = calloc(1, sizeof(*delivered));
    if (delivered == NULL) {
        return STATUS_NO_MEMORY;
    }
    size_t piece_max = (size_t)layout->bucket_count * shard_count + watched_count;
    delivered->pieces = calloc(piece_max, sizeof(*delivered->pieces));
    if (delivered->pieces == NULL) {
        delivered_destroy(delivered);
        return STATUS_NO_MEMORY;
    }
    uint32_t watched_index = 0;
    for (uint32_t bucket = layout->bucket_count; bucket-- > 0;) { // which descend
        for (uint32_t shard = 0; shard < shard_count; shard++) {
            struct span part = span_part(layout->buckets[bucket], shard_count, shard);
            add_pieces(delivered, part, watched, &watched_index);
        }
    }
    assert(watched_index == watched_count && delivered->piece_count <= piece_max);
    delivered_note(delivered, params, (struct span){0, layout->value_count});
    *ret_delivered = delivered;
    return STATUS_OK;
}

void delivered_destroy(struct delivered *delivered)
{
    if (delivered != NULL) {
        free(delivered->pieces);
        free(delivered);
    }
}

/* The index of the first piece of a part; parts begin with one. */
static uint32_t first_piece(const struct delivered *delivered, struct span part)
{
    uint32_t low = 0, high = delivered->piece_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (delivered->pieces[middle].span.offset < part.offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_in(const struct piece *piece, struct span part)
{
    return piece->span.offset < part.offset + part.count;
}

uint32_t delivered_find_written(const struct delivered *delivered, const float *params,
                                struct span part)
{
    for (uint32_t i = first_piece(delivered, part);
         i < delivered->piece_count && is_in(&delivered->pieces[i], part); i++) {
        const struct piece *piece = &delivered->pieces[i];
        struct bit_sum sum = bit_sum_of(params + piece->span.offset, piece->span.count);
        if (!bit_sum_equals(sum, piece->sum)) {
            return piece->watched;
        }
    }
    return DELIVERED_SAME;
}

void delivered_note(struct delivered *delivered, const float *params, struct span part)
{
    for (uint32_t i = first_piece(delivered, part);
         i < delivered->piece_count && is_in(&delivered->pieces[i], part); i++) {
        struct piece *piece = &delivered->pieces[i];
        piece->sum = bit_sum_of(params + piece->span.offset, piece->span.count);
    }
}

uint32_t delivered_take(struct delivered *delivered, float *params, struct span part,
                        const float *values)
{
    uint32_t written = DELIVERED_SAME;
    for (uint32_t i = first_piece(delivered, part);
         i < delivered->piece_count && is_in(&delivered->pieces[i], part); i++) {
        struct piece *piece = &delivered->pieces[i];
        struct bit_sum last = piece->sum;
        struct bit_sum over =
            bit_sum_copy(params + piece->span.offset, values + (piece->span.offset - part.offset),
                         piece->span.count, &piece->sum);
        if (written == DELIVERED_SAME && !bit_sum_equals(over, last)) {
            written = piece->watched;
        }
    }
    return written;
}
