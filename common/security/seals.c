/* Makes and checks seals. */
#include "common/security/seals.h"

#include <sodium.h>

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 8

enum direction { TO_LISTENER = 1, FROM_LISTENER = 2 };

void seals_begin(struct seals *seals, const unsigned char key[SEALS_KEY_BYTES], uint64_t clear_peer)
{
    seals->is_on = true;
    seals->clear_peer = clear_peer;
    memcpy(seals->key, key, SEALS_KEY_BYTES);
    randombytes_buf(seals->listener, SEALS_ID_BYTES);
}

void seals_finish(struct seals *seals)
{
    for (uint32_t i = 0; i < seals->stream_count; i++) {
        free(seals->streams[i]);
    }
    free(seals->streams);
    sodium_memzero(seals, sizeof(*seals));
}

bool seals_apply(const struct seals *seals, uint64_t peer)
{
    return seals->is_on && peer != seals->clear_peer;
}

static struct seal_stream *find_id(const struct seals *seals, const unsigned char *id)
{
    for (uint32_t i = 0; i < seals->stream_count; i++) {
        if (memcmp(seals->streams[i]->id, id, SEALS_ID_BYTES) == 0) {
            return seals->streams[i];
        }
    }
    return NULL;
}

/* A copy of the stream, owned by the seals. NULL: there are too many, or there is no memory. */
static struct seal_stream *add_stream(struct seals *seals, const struct seal_stream *stream)
{
    if (seals->stream_count == seals->stream_room) {
        uint32_t room = seals->stream_room == 0 ? FIRST_ROOM : 2 * seals->stream_room;
        struct seal_stream **streams =
            room <= SEALS_STREAMS_MAX ? realloc(seals->streams, room * sizeof(struct seal_stream *))
                                      : NULL;
        if (streams == NULL) {
            return NULL;
        }
        seals->streams = streams;
        seals->stream_room = room;
    }
    struct seal_stream *added = malloc(sizeof(*added));
    if (added != NULL) {
        *added = *stream;
        seals->streams[seals->stream_count++] = added;
    }
    return added;
}

enum status seals_connect(struct seals *seals, const unsigned char listener[SEALS_ID_BYTES],
                          struct seal_stream **ret_stream)
{
    struct seal_stream stream = {.is_ours = true};
    memcpy(stream.listener, listener, SEALS_ID_BYTES);
    randombytes_buf(stream.id, SEALS_ID_BYTES);
    *ret_stream = add_stream(seals, &stream);
    return *ret_stream != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static void put_number(uint64_t number, unsigned char ret_bytes[8])
{
    for (unsigned i = 0; i < 8; i++) {
        ret_bytes[i] = (unsigned char)(number >> (8 * i));
    }
}

static void make_tag(const struct seals *seals, const struct seal_stream *stream,
                     enum direction direction, uint64_t number, const struct sealed *sealed,
                     unsigned char ret_tag[SEALS_TAG_BYTES])
{
    crypto_generichash_state state;
    unsigned char direction_byte = (unsigned char)direction, numbers[2][8];
    put_number(number, numbers[0]);
    put_number(sealed->payload_size, numbers[1]);
    crypto_generichash_init(&state, seals->key, SEALS_KEY_BYTES, SEALS_TAG_BYTES);
    crypto_generichash_update(&state, &direction_byte, 1);
    crypto_generichash_update(&state, stream->listener, SEALS_ID_BYTES);
    crypto_generichash_update(&state, stream->id, SEALS_ID_BYTES);
    crypto_generichash_update(&state, numbers[0], sizeof(numbers));
    crypto_generichash_update(&state, sealed->header, sealed->header_size);
    crypto_generichash_final(&state, ret_tag, SEALS_TAG_BYTES);
}

enum status seals_make(const struct seals *seals, const struct seal_stream *stream,
                       const struct sealed *sealed, unsigned char ret_seal[SEAL_BYTES])
{
    if (stream == NULL) {
        return STATUS_UNREACHABLE;
    }
    uint64_t number = stream->sent + 1;
    memcpy(ret_seal, stream->id, SEALS_ID_BYTES);
    put_number(number, ret_seal + SEALS_ID_BYTES);
    make_tag(seals, stream, stream->is_ours ? TO_LISTENER : FROM_LISTENER, number, sealed,
             ret_seal + SEALS_ID_BYTES + 8);
    return STATUS_OK;
}

void seals_note_sent(struct seal_stream *stream)
{
    stream->sent++;
}

/* The seal has to be exactly what the sender of that message would have made. */
static bool is_next(const struct seals *seals, const struct seal_stream *stream,
                    const struct sealed *sealed, const unsigned char *seal)
{
    unsigned char expected[SEAL_BYTES];
    uint64_t number = stream->received + 1;
    memcpy(expected, stream->id, SEALS_ID_BYTES);
    put_number(number, expected + SEALS_ID_BYTES);
    make_tag(seals, stream, stream->is_ours ? FROM_LISTENER : TO_LISTENER, number, sealed,
             expected + SEALS_ID_BYTES + 8);
    return sodium_memcmp(expected, seal, SEAL_BYTES) == 0;
}

enum status seals_check(struct seals *seals, const struct seal_stream *expected,
                        const struct sealed *sealed, const unsigned char seal[SEAL_BYTES],
                        struct seal_stream **ret_stream)
{
    struct seal_stream *stream = find_id(seals, seal);
    if (stream != NULL) {
        // Ours comes back where it went; another's may have been connected anew.
        if ((stream->is_ours && stream != expected) || !is_next(seals, stream, sealed, seal)) {
            return STATUS_MALFORMED;
        }
        stream->received++;
        *ret_stream = stream;
        return STATUS_OK;
    }
    struct seal_stream first = {0};
    memcpy(first.id, seal, SEALS_ID_BYTES);
    memcpy(first.listener, seals->listener, SEALS_ID_BYTES);
    if (!is_next(seals, &first, sealed, seal)) {
        return STATUS_MALFORMED;
    }
    first.received = 1;
    *ret_stream = add_stream(seals, &first);
    return *ret_stream != NULL ? STATUS_OK : STATUS_MALFORMED;
}
