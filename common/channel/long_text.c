/* Cuts where a character ends, and keeps pieces that follow each other. */
#include "common/channel/long_text.h"

#include <stdlib.h>
#include <string.h>

void long_text_finish(struct long_text *text)
{
    free(text->bytes);
    *text = (struct long_text){0};
}

size_t long_text_cut(const char *text, size_t offset, char ret_piece[LONG_TEXT_PIECE_BYTES])
{
    const char *from = text + offset;
    size_t size = strnlen(from, LONG_TEXT_PIECE_BYTES), end = size;
    if (size == LONG_TEXT_PIECE_BYTES) {
        end = size - 1;
        while (end > 0 && ((unsigned char)from[end] & 0xC0) == 0x80) {
            end--;
        }
        end = end > 0 ? end : size - 1; // which is no UTF-8
    }
    memcpy(ret_piece, from, end);
    ret_piece[end] = '\0';
    return end;
}

/* Makes room for a text of which nothing has come. */
static enum status begin(struct long_text *text, uint64_t size)
{
    long_text_finish(text);
    text->bytes = malloc(size + 1);
    if (text->bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    text->bytes[0] = '\0';
    text->size = size;
    return STATUS_OK;
}

enum status long_text_add(struct long_text *text, uint64_t offset, uint64_t size, const char *piece)
{
    size_t length = strlen(piece);
    enum status status = offset == 0 ? begin(text, size) : STATUS_OK;
    if (status != STATUS_OK) {
        return status;
    }
    if (size != text->size || offset != text->used || length > text->size - text->used) {
        long_text_finish(text);
        return STATUS_MALFORMED;
    }
    memcpy(text->bytes + text->used, piece, length + 1);
    text->used += length;
    return STATUS_OK;
}

const char *long_text_whole(const struct long_text *text)
{
    return text->bytes != NULL && text->used == text->size ? text->bytes : NULL;
}
