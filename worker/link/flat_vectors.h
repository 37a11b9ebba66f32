/* Parameters and gradients of a process that has no model of ours: one vector of each, on the host.
 * Gradients lie in memory that other processes can map, where the job has use for that. */
#ifndef WORKER_LINK_FLAT_VECTORS_H
#define WORKER_LINK_FLAT_VECTORS_H

#include "common/base/region.h"
#include "common/base/status.h"
#include "common/job/job.h"

#include <stdbool.h>
#include <stdint.h>

struct flat_vectors {
    uint64_t count;
    struct region region;  // of grads, or empty
    float *params, *grads; // (count), zeroed at first, owned
};

/* is_ordinary: gradients lie in ordinary memory whatever the job says. */
enum status flat_vectors_init(struct flat_vectors *vectors, const struct job *job, uint64_t count,
                              bool is_ordinary);
void flat_vectors_finish(struct flat_vectors *vectors); // zeroed, or half made, is fine

/* For link_prepare; NULL: no other process can map the gradients. */
const struct region *flat_vectors_region(const struct flat_vectors *vectors);

#endif
