/* A message of each kind, with all that it may carry, and its journey over the wire. */
#ifndef TESTS_SUPPORT_COMMON_WIRE_SAMPLES_H
#define TESTS_SUPPORT_COMMON_WIRE_SAMPLES_H

#include "common/channel/wire.h"

// What was encoded last, and what was decoded last.
extern unsigned char wire_sample_header[WIRE_HEADER_BYTES];
extern struct wire_scratch wire_sample_scratch;

/* Its parts are constants. */
struct message wire_sample(enum message_kind kind);

/* Returns the size of the header. */
size_t wire_sample_encode(const struct message *message);

/* Decodes the first `size` bytes of the header, with a payload of one's own, or with the one that
 * belongs to the message. */
enum status wire_sample_decode_as(size_t size, const void *payload, size_t payload_size,
                                  struct message *ret_message);
enum status wire_sample_decode(const struct message *sent, size_t size,
                               struct message *ret_message);

/* The message after its journey. */
struct message wire_sample_send(const struct message *sent);

#endif
