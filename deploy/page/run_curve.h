/* The training loss of a run, as its metrics have it. */
#ifndef DEPLOY_PAGE_RUN_CURVE_H
#define DEPLOY_PAGE_RUN_CURVE_H

#include "common/base/status.h"
#include "deploy/report/run_folder.h"

#include <stdbool.h>
#include <stddef.h>

struct curve_point {
    double step, seconds, loss; // mean over the ranks that reported this step
};

/* At most `most` points, in the order of steps: if there are more, neighbours are averaged. Lines
 * that are damaged are left out, which is logged if says_damage; so are losses that are not finite.
 * A run without metrics has no points. The caller frees *ret_points. STATUS_NO_MEMORY. */
enum status run_curve_read(const struct run_folder *run, size_t most, bool says_damage,
                           struct curve_point **ret_points, size_t *ret_count);

#endif
