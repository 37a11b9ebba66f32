/* Measures the path to another worker: a few messages there and back, small ones for the latency,
 * then several small ones at once for what each further one takes, then large ones for the
 * bandwidth. What counts is the quickest of each: others only wait longer.
 *
 * For the communication thread; never waits. */
#ifndef WORKER_LINK_PROBE_H
#define WORKER_LINK_PROBE_H

#include "common/base/status.h"
#include "common/channel/channel.h"
#include "common/job/all_reduce.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed is idle. */
struct probe {
    bool is_running;
    uint64_t peer;
    uint32_t round;                        // of the messages that are out
    uint32_t out;                          // so many of them are not answered
    uint64_t sent_ns;                      // when the first of them was sent
    uint64_t small_ns, burst_ns, large_ns; // quickest so far, there and back
    float *payload;                        // owned
};

/* Sends the messages of the first round. */
enum status probe_begin(struct probe *probe, struct channel *channel, uint64_t peer);

/* A PROBE that came: another worker's, which is answered, or the answer to one of ours; after the
 * last of its round the next round is sent. *ret_is_over: that was the last round. */
enum status probe_take(struct probe *probe, struct channel *channel, uint64_t peer,
                       const struct message *message, bool *ret_is_over);

/* What was found out, once it is over. */
struct all_reduce_path probe_path(const struct probe *probe);

void probe_finish(struct probe *probe); // zeroed is fine

#endif
