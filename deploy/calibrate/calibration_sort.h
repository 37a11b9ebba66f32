/* The runs of a calibration by what they show. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_SORT_H
#define DEPLOY_CALIBRATE_CALIBRATION_SORT_H

#include "common/base/status.h"
#include "deploy/calibrate/calibration.h"
#include "deploy/calibrate/calibration_run.h"

#include <stddef.h>
#include <stdint.h>

/* All are borrowed, and in the order in which they were given. */
struct calibration_sorted {
    struct calibration_run *runs[CALIBRATION_RUNS_MAX]; // (run_count) without codes
    size_t run_count;
    struct calibration_run *coded[CALIBRATION_RUNS_MAX]; // (coded_count)
    size_t coded_count;
    struct calibration_run *apart[CALIBRATION_RUNS_MAX]; // (apart_count) with is_apart
    size_t apart_count;
    struct calibration_run *others[CALIBRATION_RUNS_MAX]; // (other_count) of other batches: they
    size_t other_count;                                   // show only what computing costs
};

/* Fills *ret_sorted, which is zeroed. STATUS_INVALID: there is no run of the first kind, or values
 * went by several transports, or with several kinds of keys; files are of one. Logs. */
enum status calibration_sort(struct calibration_run *const *runs, size_t run_count, uint32_t batch,
                             struct calibration_sorted *ret_sorted);

#endif
