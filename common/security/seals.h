/* Seals: what proves who sent the header of a message that travels in clear, and that it is the
 * next one (--security auth-only).
 *
 * The coordinator draws a key for the job and hands it to members over connections that are
 * encrypted. Behind each header of a data message stands its seal:
 *
 *     stream   16 random bytes that who connects has drawn for this connection
 *     number   of the message in this stream and direction, from 1; 8 bytes, little-endian
 *     tag      16 bytes: BLAKE2b, keyed, of direction, listener, stream, number, size of the
 *              payload, and header
 *
 * The listener is 16 random bytes that who listens has drawn; it is told in its place, by way of
 * the coordinator. So a seal is good for one receiver, one connection and one place in it: what was
 * recorded cannot be said again, to whomever, and nothing can be left out or change places. A
 * connection that libzmq makes anew goes on with its numbers, if nothing of it was lost.
 *
 * Of the payload only its size is sealed: that is the point of going without encryption, and the
 * reason to do so on trusted networks alone.
 *
 * The state of one channel. Opens nothing, logs nothing. */
#ifndef COMMON_SECURITY_SEALS_H
#define COMMON_SECURITY_SEALS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEALS_KEY_BYTES   32
#define SEALS_ID_BYTES    16
#define SEALS_TAG_BYTES   16
#define SEAL_BYTES        (SEALS_ID_BYTES + 8 + SEALS_TAG_BYTES)
#define SEALS_STREAMS_MAX 65536 // that one process keeps numbers of

struct seal_stream {
    bool is_ours; // we have connected
    unsigned char id[SEALS_ID_BYTES], listener[SEALS_ID_BYTES];
    uint64_t sent, received; // messages so far
};

/* Zeroed: messages have no seals. */
struct seals {
    bool is_on;
    uint64_t clear_peer; // whose messages have none: the coordinator
    unsigned char key[SEALS_KEY_BYTES], listener[SEALS_ID_BYTES];
    struct seal_stream **streams; // each is owned, and stays where it is
    uint32_t stream_count, stream_room;
};

/* A header before its seal, and the size of what comes behind both. */
struct sealed {
    const void *header;
    size_t header_size, payload_size;
};

/* From here on all messages have seals, but those from and to clear_peer. Copies the key. */
void seals_begin(struct seals *seals, const unsigned char key[SEALS_KEY_BYTES],
                 uint64_t clear_peer);
void seals_finish(struct seals *seals); // wipes the key; zeroed is fine

/* Whether messages from and to the peer have seals. */
bool seals_apply(const struct seals *seals, uint64_t peer);

/* We have connected to somebody who listens under that name: the stream of the connection. */
enum status seals_connect(struct seals *seals, const unsigned char listener[SEALS_ID_BYTES],
                          struct seal_stream **ret_stream);

/* The seal of the stream's next message to the peer; seals_note_sent once it has been sent. NULL is
 * that of a peer that has connected to us and not said anything yet: STATUS_UNREACHABLE. */
enum status seals_make(const struct seals *seals, const struct seal_stream *stream,
                       const struct sealed *sealed, unsigned char ret_seal[SEAL_BYTES]);
void seals_note_sent(struct seal_stream *stream);

/* Whether the seal is that of the next message of its stream, which is then taken note of: a stream
 * of ours has to be `expected`, that of the connection by which the message came (NULL: it has none
 * so far); another's may come by a new connection. STATUS_MALFORMED if not. */
enum status seals_check(struct seals *seals, const struct seal_stream *expected,
                        const struct sealed *sealed, const unsigned char seal[SEAL_BYTES],
                        struct seal_stream **ret_stream);

#endif
