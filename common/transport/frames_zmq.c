/* Sends and receives frames through a socket of libzmq. */
#include "common/transport/frames_zmq.h"

#include "common/transport/private_socket.h"
#include "common/transport/send_buffer.h"

#include <zmq.h>

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void *socket_create(void *context, int type)
{
    void *socket = zmq_socket(context, type);
    if (socket == NULL) {
        return NULL;
    }
    const int none = 0, mandatory = 1, backlog = PRIVATE_SOCKET_BACKLOG;
    zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_BACKLOG, &backlog, sizeof(backlog));
    if (type == ZMQ_ROUTER) {
        zmq_setsockopt(socket, ZMQ_ROUTER_MANDATORY, &mandatory, sizeof(mandatory));
    }
    return socket;
}

void socket_destroy(void *socket, int linger_ms)
{
    if (socket != NULL) {
        zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
        zmq_close(socket);
    }
}

void socket_set_endpoint(void *socket, const char *endpoint, int64_t frame_max)
{
    // IPv6 numbers stand in brackets.
    const int is_ipv6 = strchr(endpoint, '[') != NULL;
    zmq_setsockopt(socket, ZMQ_IPV6, &is_ipv6, sizeof(is_ipv6));
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof(frame_max));
    if (strncmp(endpoint, "tcp:", strlen("tcp:")) == 0) {
        const int bytes = SEND_BUFFER_START;
        zmq_setsockopt(socket, ZMQ_SNDBUF, &bytes, sizeof(bytes));
    }
}

bool frames_send_bytes(void *socket, const void *bytes, size_t size, bool has_more)
{
    int sent;
    do {
        sent = zmq_send(socket, bytes, size, ZMQ_DONTWAIT | (has_more ? ZMQ_SNDMORE : 0));
    } while (sent < 0 && zmq_errno() == EINTR);
    return sent >= 0;
}

/* A payload that libzmq holds. What the sender did before must be seen by the callback: libzmq
 * orders the two threads, but says so to nobody (the thread sanitizer), so the flag says it
 * again. */
struct held_payload {
    struct payload payload;
    atomic_bool is_handed_over;
};

void payload_keep(void *hint)
{
    (void)hint;
}

static void release_payload(void *bytes, void *hint)
{
    (void)bytes;
    struct held_payload *held = hint;
    bool is_handed_over = atomic_load_explicit(&held->is_handed_over, memory_order_acquire);
    assert(is_handed_over);
    held->payload.release(held->payload.hint);
    free(held);
}

/* Lets libzmq read the bytes in place, or copies them. */
static bool frame_init_payload(zmq_msg_t *frame, const struct payload *payload)
{
    if (payload->release == NULL) {
        if (zmq_msg_init_size(frame, payload->size) != 0) {
            return false;
        }
        memcpy(zmq_msg_data(frame), payload->bytes, payload->size);
        return true;
    }
    struct held_payload *held = malloc(sizeof(*held));
    if (held == NULL) {
        return false;
    }
    held->payload = *payload;
    atomic_store_explicit(&held->is_handed_over, true, memory_order_release);
    // libzmq only reads, though its interface does not say so.
    union {
        const void *in;
        void *out;
    } cast = {.in = payload->bytes};
    if (zmq_msg_init_data(frame, cast.out, payload->size, release_payload, held) != 0) {
        free(held);
        return false;
    }
    return true;
}

enum status frames_send_payload(void *socket, const struct payload *payload)
{
    zmq_msg_t frame;
    if (!frame_init_payload(&frame, payload)) {
        // The message has begun: an empty frame ends it, and the receiver drops it.
        frames_send_bytes(socket, "", 0, false);
        return STATUS_NO_MEMORY;
    }
    int sent;
    do {
        sent = zmq_msg_send(&frame, socket, ZMQ_DONTWAIT);
    } while (sent < 0 && zmq_errno() == EINTR);
    if (sent < 0) {
        zmq_msg_close(&frame); // calls release
    }
    return STATUS_OK;
}

bool frames_receive(void *socket, void *ret_frame)
{
    // Frames of a message arrive together.
    zmq_msg_init(ret_frame);
    int got;
    do {
        got = zmq_msg_recv(ret_frame, socket, ZMQ_DONTWAIT);
    } while (got < 0 && zmq_errno() == EINTR);
    return got >= 0;
}

void frames_drain(void *socket)
{
    int more = 1;
    size_t size = sizeof(more);
    while (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) == 0 && more != 0) {
        zmq_msg_t frame;
        zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0) {
            return;
        }
        zmq_msg_close(&frame);
    }
}
