/* The course of a training, over its seeds. */
#ifndef DEPLOY_REPORT_SWEEP_CURVES_H
#define DEPLOY_REPORT_SWEEP_CURVES_H

#include "common/base/status.h"
#include "deploy/report/run_folder.h"
#include "deploy/report/sweep_settings.h"

#include <stddef.h>

/* A point for each evaluation (or epoch) that one of the runs has: over those that have it. A
 * run that has ended at its target stays where it was, as long as others go on: otherwise the mean
 * would be of those that are behind. The caller frees *ret_points. */
enum status sweep_curve_of(const struct run_folder *const *runs, size_t count,
                           struct sweep_point **ret_points, size_t *ret_count);

#endif
