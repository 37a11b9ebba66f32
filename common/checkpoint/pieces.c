/* Keeps the spans of a vector that were written, in an ascending array. Where several members send
 * at once, there are as many gaps as senders. */
#include "common/checkpoint/pieces.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void pieces_finish(struct pieces *pieces)
{
    free(pieces->spans);
    *pieces = (struct pieces){0};
}

static enum status make_room(struct pieces *pieces)
{
    if (pieces->count < pieces->room) {
        return STATUS_OK;
    }
    if (pieces->count == PIECES_MAX) {
        return STATUS_MALFORMED;
    }
    uint32_t room = pieces->room > 0 ? pieces->room * 2 : 8;
    struct piece *spans = realloc(pieces->spans, room * sizeof(*spans));
    if (spans == NULL) {
        return STATUS_NO_MEMORY;
    }
    pieces->spans = spans;
    pieces->room = room;
    return STATUS_OK;
}

enum status pieces_add(struct pieces *pieces, uint64_t begin, uint64_t end)
{
    assert(begin < end);
    uint32_t at = pieces->count; // of the first span behind the new one
    while (at > 0 && pieces->spans[at - 1].begin >= begin) {
        at--;
    }
    struct piece *before = at > 0 ? &pieces->spans[at - 1] : NULL;
    struct piece *behind = at < pieces->count ? &pieces->spans[at] : NULL;
    if ((before != NULL && before->end > begin) || (behind != NULL && behind->begin < end)) {
        return STATUS_MALFORMED;
    }
    if (before != NULL && before->end == begin) {
        before->end = end;
        if (behind != NULL && behind->begin == end) {
            before->end = behind->end;
            memmove(behind, behind + 1, (pieces->count - at - 1) * sizeof(*behind));
            pieces->count--;
        }
        return STATUS_OK;
    }
    if (behind != NULL && behind->begin == end) {
        behind->begin = begin;
        return STATUS_OK;
    }
    enum status status = make_room(pieces);
    if (status != STATUS_OK) {
        return status;
    }
    memmove(&pieces->spans[at + 1], &pieces->spans[at],
            (pieces->count - at) * sizeof(pieces->spans[0]));
    pieces->spans[at] = (struct piece){begin, end};
    pieces->count++;
    return STATUS_OK;
}

uint64_t pieces_first_gap(const struct pieces *pieces)
{
    return pieces->count > 0 && pieces->spans[0].begin == 0 ? pieces->spans[0].end : 0;
}

uint64_t pieces_end(const struct pieces *pieces)
{
    return pieces->count > 0 ? pieces->spans[pieces->count - 1].end : 0;
}
