/* When a worker may use parameters that other workers are still changing.
 *
 * The parameter-server modes are rows of one table. The clock of a set of parameters is the number
 * of steps that every active worker has already contributed to it. A worker at `step` may read
 * parameters whose clock is at least step - slack_steps:
 *
 *     ps-sync   slack 0   one update per step, from the mean of all gradients
 */
#ifndef COMMON_CONSISTENCY_H
#define COMMON_CONSISTENCY_H

#include "common/status.h"

#include <stdbool.h>
#include <stdint.h>

enum update_rule {
    UPDATE_WHEN_ALL_PUSHED,
};

struct consistency {
    const char *mode;
    enum update_rule update;
    uint64_t slack_steps;
};

/* STATUS_INVALID if the mode has no parameter server. */
enum status consistency_find(const char *mode, struct consistency *ret_consistency);

bool consistency_may_read(const struct consistency *consistency, uint64_t params_clock,
                          uint64_t step);

#endif
