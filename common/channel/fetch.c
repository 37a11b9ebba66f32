/* Asks for pieces in their order, and puts the answers in their place. */
#include "common/channel/fetch.h"

#include "common/channel/snapshot.h"

#include <stdio.h>
#include <string.h>

struct fetch fetch_of(const char *vector, uint64_t total, struct span span, float *target)
{
    struct fetch fetch = {.total = total, .span = span, .target = target};
    snprintf(fetch.vector, sizeof(fetch.vector), "%s", vector);
    return fetch;
}

static uint64_t piece_at(const struct fetch *fetch, uint64_t offset)
{
    uint64_t left = fetch->span.count - offset;
    return left < SNAPSHOT_PIECE_FLOATS ? left : SNAPSHOT_PIECE_FLOATS;
}

bool fetch_next(struct fetch *fetch, struct wire_piece *ret_piece, struct message *ret_message)
{
    bool is_far_ahead = fetch->asked - fetch->taken >= SNAPSHOT_CREDITS * SNAPSHOT_PIECE_FLOATS;
    if (fetch->asked == fetch->span.count || is_far_ahead) {
        return false;
    }
    *ret_piece = (struct wire_piece){.vector = fetch->vector, .total = fetch->total};
    *ret_message = (struct message){.kind = MESSAGE_FETCH, .piece = ret_piece};
    ret_message->span =
        (struct span){fetch->span.offset + fetch->asked, piece_at(fetch, fetch->asked)};
    fetch->asked += ret_message->span.count;
    return true;
}

enum status fetch_take(struct fetch *fetch, const struct message *message)
{
    // Answers come in the order of the questions.
    uint64_t count = piece_at(fetch, fetch->taken);
    bool is_next = fetch->taken < fetch->asked && message->kind == MESSAGE_PIECE &&
                   strcmp(message->piece->vector, fetch->vector) == 0 &&
                   message->span.offset == fetch->span.offset + fetch->taken &&
                   message->span.count == count;
    if (!is_next) {
        return STATUS_MALFORMED;
    }
    if (message->values == NULL || message->piece->total != fetch->total) {
        return STATUS_INVALID;
    }
    memcpy(fetch->target + fetch->taken, message->values, count * sizeof(float));
    fetch->taken += count;
    return STATUS_OK;
}

bool fetch_is_over(const struct fetch *fetch)
{
    return fetch->taken == fetch->span.count;
}
