/* When a server changes its parameters, and when a worker may use parameters that other workers are
 * still changing.
 *
 * A mode with servers comes down to two numbers. An update is made from the gradients of all
 * workers, or from each one as it comes. The clock of a worker is the number of steps whose
 * gradient has been applied; a worker at `step` may read parameters when the smallest clock of all
 * workers is at least step - slack_steps:
 *
 *     ps-sync     all      0          one update per step, from the mean of all gradients
 *     ps-ssp:S    each     S          bounded staleness (Ho et al. 2013)
 *     ps-async    each     unbounded  nobody waits (Hogwild-style; Dean et al. 2012)
 *
 * ps-ssp:0 waits as ps-sync does, but updates on every push: with momentum it is not the same. */
#ifndef COMMON_JOB_CONSISTENCY_H
#define COMMON_JOB_CONSISTENCY_H

#include "common/base/status.h"
#include "common/job/mode.h"

#include <stdbool.h>
#include <stdint.h>

enum update_rule {
    UPDATE_WHEN_ALL_PUSHED,
    UPDATE_ON_PUSH,
};

struct consistency {
    enum update_rule update;
    uint64_t slack_steps; // UINT64_MAX: unbounded
};

/* STATUS_INVALID if the mode has no servers. */
enum status consistency_find(struct mode mode, struct consistency *ret_consistency);

bool consistency_may_read(const struct consistency *consistency, uint64_t params_clock,
                          uint64_t step);

#endif
