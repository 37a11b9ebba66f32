/* Sets how much of a connection's data the kernel holds: as much as the path takes, and little
 * more.
 *
 * Nothing that is needed sooner can overtake what the kernel holds (pacer.h). Left alone, the
 * buffer grows to megabytes, which is 34 ms of a link of 1 Gbit/s, and a ring has 2(N-1) such hops.
 * With a fixed size, a fast or long link is not filled. So the size follows what the kernel has
 * measured of the connection (TCP_INFO): the delivery rate times the least round trip, which is
 * what is under way, and half a millisecond more, in which the sender may be busy elsewhere. What
 * the kernel measures over a few messages may be wrong by half, and with too small a buffer a link
 * carries less than it could. So where Ringside has measured the path itself, that counts.
 *
 * Connections that share a link deliver at a part of its rate each. Where a round trip takes
 * milliseconds, one whose buffer is fitted to that part cannot use the link when the others are
 * idle. The kernel counts for how long a buffer has held its connection back. If on such a path
 * that is more than a sixteenth of the time in which the connection had data to send, the buffer
 * grows again, up to its first size. */
#ifndef COMMON_TRANSPORT_SEND_BUFFER_H
#define COMMON_TRANSPORT_SEND_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

// The size until something is measured. Fills a link of 100 Gbit/s with a round trip of 80 us.
#define SEND_BUFFER_START (512 << 10)

#define SEND_BUFFER_MIN (32 << 10)
#define SEND_BUFFER_MAX (4 << 20)

/* Returns the bytes for a connection that delivers `rate` bytes per second, whose round trip takes
 * at least `rtt_us`, and whose segments have up to `mss` bytes. The buffer always holds several
 * segments: a receiver acknowledges every second one, and a single one only when its timer expires
 * 40 ms later. (Segments on the loopback interface have 64 KiB.) */
int send_buffer_bytes(uint64_t rate, uint32_t rtt_us, uint32_t mss);

/* What the kernel says of a connection. */
struct send_buffer_past {
    int bytes;        // of its buffer, as asked for
    uint32_t rtt_us;  // the least round trip
    uint64_t busy_us; // the time in which it had data to send,
    uint64_t held_us; // and the part of it in which its buffer has held it back
};

/* Returns the bytes for a connection with such a past, where `fitted` is right for its rate. */
int send_buffer_grow(int fitted, const struct send_buffer_past *past);

/* Fits the buffer of a connection. Returns false if nothing is known: it is not a TCP connection,
 * or has sent too little for its rate to be the path's, and was not held back. */
bool send_buffer_fit(int descriptor);

/* The same, from a measurement of the path that the caller has. Returns false if it is not a TCP
 * connection. */
bool send_buffer_fit_to(int descriptor, uint64_t rate, uint32_t rtt_us);

#endif
