/* How long the way to another worker is: a few messages there and back, small ones for the latency,
 * then large ones for the bandwidth. What counts is the quickest of each: others only wait longer.
 *
 * For the communication thread; never waits. */
#ifndef WORKER_PROBE_H
#define WORKER_PROBE_H

#include "common/channel.h"
#include "common/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed is idle. */
struct probe {
    bool is_running;
    uint64_t peer;
    uint32_t round; // of the message that is out
    uint64_t sent_ns;
    uint64_t small_ns, large_ns; // quickest so far, there and back
    float *payload;              // owned
};

/* Sends the first message. */
enum status probe_begin(struct probe *probe, struct channel *channel, uint64_t peer);

/* A PROBE that came: another worker's, which is answered, or the answer to ours, after which the
 * next one is sent. *ret_is_over: that was the last. */
enum status probe_take(struct probe *probe, struct channel *channel, uint64_t peer,
                       const struct message *message, bool *ret_is_over);

/* One way, once it is over; bytes per second. */
uint64_t probe_latency_ns(const struct probe *probe);
uint64_t probe_bandwidth(const struct probe *probe);

void probe_finish(struct probe *probe); // zeroed is fine

#endif
