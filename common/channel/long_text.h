/* A text that is longer than a message may be: cut into pieces, and put together again. Pure. */
#ifndef COMMON_CHANNEL_LONG_TEXT_H
#define COMMON_CHANNEL_LONG_TEXT_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define LONG_TEXT_PIECE_BYTES ((size_t)32 * 1024) // with the '\0'

/* What has come of a text. Zeros are a text of which nothing has. */
struct long_text {
    char *bytes;       // (size + 1), owned
    size_t size, used; // in bytes: of the whole, and what has come of it
};

void long_text_finish(struct long_text *text);

/* Copies the piece that begins at `offset`, and returns its bytes without the '\0': 0 at the end.
 * No character of UTF-8 is cut. */
size_t long_text_cut(const char *text, size_t offset, char ret_piece[LONG_TEXT_PIECE_BYTES]);

/* Takes a piece of a text of `size` bytes. One at offset 0 begins anew. STATUS_MALFORMED: it does
 * not go on where the last one ended, or is none of such a text; STATUS_NO_MEMORY: it cannot be
 * kept. After either, nothing has come. */
enum status long_text_add(struct long_text *text, uint64_t offset, uint64_t size,
                          const char *piece);

/* The text; NULL before all of it has come. Borrowed until the next call. */
const char *long_text_whole(const struct long_text *text);

#endif
