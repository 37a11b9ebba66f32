/* How much of a connection's data the kernel holds: as much as the path takes, and little more.
 *
 * What the kernel has was handed over: nothing that is needed sooner can overtake it (pacer.h).
 * Left alone the buffer grows to megabytes, 34 ms of a link of 1 Gbit/s, and a ring has 2(N-1) hops
 * of that. With a fixed size, a link that is fast or long is not filled. So it follows what the
 * kernel itself has measured of the connection (TCP_INFO): the rate of delivery times the least
 * round trip seen, which is what is on its way, and half a millisecond more, in which the sender
 * may be busy elsewhere. What the kernel has measured of a few messages may be wrong by half, and a
 * link whose buffer is by that too small carries less than it could; so where we have measured the
 * way ourselves, that counts. */
#ifndef COMMON_TRANSPORT_SEND_BUFFER_H
#define COMMON_TRANSPORT_SEND_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

// Until something is measured: fills a link of 100 Gbit/s for a way of 80 us and back.
#define SEND_BUFFER_START (512 << 10)

#define SEND_BUFFER_MIN (32 << 10)
#define SEND_BUFFER_MAX (4 << 20)

/* Bytes for a connection that delivers `rate` bytes per second, whose round trip takes at least
 * `rtt_us`, and whose segments have up to `mss` bytes. It always holds several segments: a receiver
 * acknowledges every second one, and a single one only when its timer is up, 40 ms later. (Those of
 * the loopback interface have 64 KiB.) */
int send_buffer_bytes(uint64_t rate, uint32_t rtt_us, uint32_t mss);

/* Fits the buffer of a connection. False if there is nothing to go by: it is not of TCP, or has
 * sent too little for its rate to be that of the way. */
bool send_buffer_fit(int descriptor);

/* The same by what somebody else has measured of the way. False if it is not of TCP. */
bool send_buffer_fit_to(int descriptor, uint64_t rate, uint32_t rtt_us);

#endif
