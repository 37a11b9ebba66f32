/* Being slow on purpose: the delays of common/job/straggler.h, waited for. */
#ifndef WORKER_DISTURB_STRAGGLING_H
#define WORKER_DISTURB_STRAGGLING_H

#include "common/job/job.h"
#include "common/job/straggler.h"
#include "worker/exchange/exchange.h"

#include <stdint.h>

struct straggling {
    struct straggler straggler;
    uint64_t seed;
    uint32_t rank;
    uint64_t waited_ns; // in this step
    uint64_t last_ns;   // what the last step took to compute, without what was waited
    // The same of the faster of the last two, 0 before there are two: the first one pays for cold
    // caches and pages, and fifty times that is a long wait.
    uint64_t compute_ns;
};

void straggling_init(struct straggling *straggling, const struct job *job, uint32_t rank);

/* Before the forward pass, so that the gradients of the step are late. Ends early if the exchange
 * is stopped. */
void straggling_wait(struct straggling *straggling, struct exchange *exchange, uint64_t step);

/* What the step took to compute, with what was waited. */
void straggling_note(struct straggling *straggling, uint64_t compute_ns);

#endif
