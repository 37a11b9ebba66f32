/* What a timeline shows of sums in shared memory, and of what a worker's messages take altogether,
 * which with codes is more. Pure. */
#ifndef DEPLOY_CALIBRATE_OBSERVED_EXCHANGE_H
#define DEPLOY_CALIBRATE_OBSERVED_EXCHANGE_H

#include "common/base/status.h"
#include "deploy/trace/timeline.h"

#include <stdint.h>

struct observed_exchange {
    // Of each step the least time that a worker was in the exchange, added up: who comes last waits
    // for nobody, and makes its part of the sums. 0: buckets are posted to another thread.
    double group_s;
    uint64_t group_steps;
    double post_s;         // of workers: posts of buckets, and of pushes that have waited
    double params_s;       // of workers: receives of parameters
    uint64_t worker_steps; // of all workers
};

/* own_ns: (event_count) of each slice, without those within it. Of the steps from first to end.
 * STATUS_NO_MEMORY. */
enum status observed_exchange_make(const struct timeline *timeline, const uint64_t *own_ns,
                                   uint64_t first, uint64_t end,
                                   struct observed_exchange *ret_exchange);

#endif
