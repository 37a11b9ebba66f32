/* Reads what libzmq tells about a socket's connections. Private to the transport. */
#ifndef COMMON_TRANSPORT_MONITOR_ZMQ_H
#define COMMON_TRANSPORT_MONITOR_ZMQ_H

#include <stdbool.h>
#include <stdint.h>

struct monitor_event {
    uint16_t kind;  // one of ZMQ_EVENT_*
    uint32_t value; // its meaning depends on that: see zmq_socket_monitor(3)
};

/* Opens a socket that gets the events of another socket of the same context, as the mask selects.
 * Returns NULL on failure. Events wait for the reader for any time; libzmq's thread never waits for
 * it. */
void *monitor_open(void *context, void *watched, int events);

/* Takes the next event. Returns false if there is none now. */
bool monitor_next(void *monitor, struct monitor_event *ret_event);

/* Call it before `watched` is closed. NULL is fine. */
void monitor_close(void *monitor, void *watched);

#endif
