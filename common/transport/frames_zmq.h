/* Creates sockets of libzmq, and moves frames through them. Private to the transport. */
#ifndef COMMON_TRANSPORT_FRAMES_ZMQ_H
#define COMMON_TRANSPORT_FRAMES_ZMQ_H

#include "common/base/status.h"
#include "common/transport/transport.h"

#include <stdbool.h>
#include <stddef.h>

/* Creates a socket without high-water marks and lingering. Returns NULL on failure. */
void *socket_create(void *context, int type);
void socket_destroy(void *socket, int linger_ms); // NULL is fine

/* Sets the address family and the largest frame for the next bind or connect, which is to
 * `endpoint`. */
void socket_set_endpoint(void *socket, const char *endpoint, int64_t frame_max);

/* Queues one frame. Returns false if the peer is not there. */
bool frames_send_bytes(void *socket, const void *bytes, size_t size, bool has_more);

/* Queues the last frame of a message that has begun: in place, or copied. STATUS_NO_MEMORY: the
 * message is ended, so that the receiver drops it, and release was not called. */
enum status frames_send_payload(void *socket, const struct payload *payload);

/* Takes a frame that is there now into the zmq_msg_t. Returns false, and leaves that empty, if
 * there is none. */
bool frames_receive(void *socket, void *ret_frame);

/* Reads and drops the rest of a foreign message. */
void frames_drain(void *socket);

#endif
