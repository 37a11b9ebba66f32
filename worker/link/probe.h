/* Measures the path to another worker with messages there and back: small ones for the latency,
 * then several small ones at once for the time that each further one takes, then large ones for the
 * bandwidth. The quickest of each kind counts, because slower ones only waited longer.
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
    uint32_t round;                        // of the messages that are under way
    uint32_t out;                          // how many of them are not answered yet
    uint64_t sent_ns;                      // when the first of them was sent
    uint64_t small_ns, burst_ns, large_ns; // quickest so far, there and back
    float *payload;                        // owned
};

/* Sends the messages of the first round. */
enum status probe_begin(struct probe *probe, struct channel *channel, uint64_t peer);

/* Handles a PROBE. Answers it if it is another worker's. If it answers one of this worker's, and is
 * the last of its round, sends the next round. *ret_is_over: that was the last round. */
enum status probe_take(struct probe *probe, struct channel *channel, uint64_t peer,
                       const struct message *message, bool *ret_is_over);

/* Returns the measured path, once the probe is over. */
struct all_reduce_path probe_path(const struct probe *probe);

void probe_finish(struct probe *probe); // zeroed is fine

#endif
