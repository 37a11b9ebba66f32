/* How long cores worked in a step of a job, by the counters and slices of a timeline. Pure.
 *
 * Unlike times that passed, these have no waits for a core in them. */
#ifndef DEPLOY_CALIBRATE_OBSERVED_CPU_H
#define DEPLOY_CALIBRATE_OBSERVED_CPU_H

#include "common/base/status.h"
#include "deploy/trace/timeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a step, in the mean of the processes of a kind. */
struct observed_cpu {
    uint32_t processes; // 0: the timeline does not say
    double compute_s;   // the thread that computes
    double messages_s;  // the thread that communicates, or a server's threads of shards
    double others_s;    // all others: they read batches, and carry messages
    double ends;        // of messages of the exchange: sent and received
    double bytes;       // of values that threads of this end move
};

struct observed_cores {
    struct observed_cpu workers, servers;
    double step_s; // that passed, of a step
    double busy;   // cores that all of them kept busy, in the mean
};

/* Of the steps [first, end) of a job. `lends`: its messages have loans of values, which stay where
 * they are: the receiver copies them, or adds them up in place. */
void observed_cores_make(const struct timeline *timeline, uint64_t first, uint64_t end, bool lends,
                         struct observed_cores *ret_cores);

/* Of each event (event_count), in nanoseconds without what lies within it: how long a core worked,
 * or, where the timeline does not say, the time that `passed_ns` has. */
void observed_own_ns(const struct timeline *timeline, const uint64_t *passed_ns, uint64_t *ret_ns);

/* Whether a message is of an exchange, and has values; and whether it is of one at all. */
bool observed_has_values(const struct timeline_event *event);
bool observed_is_of_exchange(const struct timeline_event *event);

#endif
