/* Opens monitors of libzmq's sockets, and reads their events. */
#include "common/transport/monitor_zmq.h"

#include <zmq.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define EVENT_BYTES 6 // 16 bits of kind, 32 of value

void *monitor_open(void *context, void *watched, int events)
{
    static _Atomic unsigned serial;
    char endpoint[64];
    snprintf(endpoint, sizeof(endpoint), "inproc://monitor-%u", atomic_fetch_add(&serial, 1));
    if (zmq_socket_monitor(watched, endpoint, events) != 0) {
        return NULL;
    }
    void *monitor = zmq_socket(context, ZMQ_PAIR);
    const int none = 0;
    if (monitor != NULL) {
        // There is no high-water mark, because libzmq's own thread would wait at one until this
        // thread reads.
        zmq_setsockopt(monitor, ZMQ_RCVHWM, &none, sizeof(none));
        zmq_setsockopt(monitor, ZMQ_LINGER, &none, sizeof(none));
    }
    if (monitor == NULL || zmq_connect(monitor, endpoint) != 0) {
        monitor_close(monitor, watched);
        return NULL;
    }
    return monitor;
}

bool monitor_next(void *monitor, struct monitor_event *ret_event)
{
    // The second frame is this side's endpoint, which the caller knows.
    unsigned char bytes[EVENT_BYTES];
    int size = zmq_recv(monitor, bytes, sizeof(bytes), ZMQ_DONTWAIT);
    if (size != EVENT_BYTES) {
        return false;
    }
    zmq_recv(monitor, NULL, 0, ZMQ_DONTWAIT);
    memcpy(&ret_event->kind, bytes, sizeof(ret_event->kind));
    memcpy(&ret_event->value, bytes + sizeof(ret_event->kind), sizeof(ret_event->value));
    return true;
}

void monitor_close(void *monitor, void *watched)
{
    zmq_socket_monitor(watched, NULL, 0);
    if (monitor != NULL) {
        zmq_close(monitor);
    }
}
