/* Sums of parameters, by pieces: a piece is what a shard's part of a bucket and a watched span have
 * in common. */
#include "worker/exchange/delivered.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LANES      4
#define LANE_BYTES sizeof(uint64_t)
#define PRIME      UINT64_C(0x9E3779B185EBCA87)

struct piece {
    struct span span;
    uint32_t watched; // its index
    uint64_t sum;
};

struct delivered {
    struct piece *pieces; // (piece_count) ascending; owned
    uint32_t piece_count;
};

/* Of the bits: another value at one place always gives another sum. In lanes, so that one product
 * does not wait for the one before. */
static uint64_t sum_of(const float *values, uint64_t count)
{
    const unsigned char *bytes = (const unsigned char *)values;
    uint64_t size = count * sizeof(float);
    uint64_t lanes[LANES] = {1, 2, 3, 4};
    for (; size >= LANES * LANE_BYTES; size -= LANES * LANE_BYTES, bytes += LANES * LANE_BYTES) {
        uint64_t words[LANES];
        memcpy(words, bytes, sizeof(words));
        for (int i = 0; i < LANES; i++) {
            lanes[i] = (lanes[i] ^ words[i]) * PRIME;
        }
    }
    for (; size > 0; size -= sizeof(float), bytes += sizeof(float)) {
        uint32_t word;
        memcpy(&word, bytes, sizeof(word));
        lanes[0] = (lanes[0] ^ word) * PRIME;
    }
    uint64_t sum = 0;
    for (int i = 0; i < LANES; i++) {
        sum = (sum ^ lanes[i]) * PRIME;
    }
    return sum;
}

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
        if (sum_of(params + piece->span.offset, piece->span.count) != piece->sum) {
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
        piece->sum = sum_of(params + piece->span.offset, piece->span.count);
    }
}
