/* What libzmq tells of a socket's connections. Private to the transport. */
#ifndef COMMON_TRANSPORT_MONITOR_ZMQ_H
#define COMMON_TRANSPORT_MONITOR_ZMQ_H

#include <stdbool.h>
#include <stdint.h>

struct monitor_event {
    uint16_t kind;  // one of ZMQ_EVENT_*
    uint32_t value; // its meaning depends on that: see zmq_socket_monitor(3)
};

/* A socket that gets the events of another one of the same context: those of the mask. NULL if
 * there is none to be had. Events wait for the reader, however long it takes: libzmq's thread never
 * waits for it. */
void *monitor_open(void *context, void *watched, int events);

/* False: there is none now. */
bool monitor_next(void *monitor, struct monitor_event *ret_event);

/* Before `watched` is closed. NULL is fine. */
void monitor_close(void *monitor, void *watched);

#endif
