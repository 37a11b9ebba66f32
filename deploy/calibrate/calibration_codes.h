/* What encoding and decoding take, from a run with codes beside one without. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_CODES_H
#define DEPLOY_CALIBRATE_CALIBRATION_CODES_H

#include "deploy/calibrate/calibration.h"

#include <stddef.h>

/* Of the first of the runs with codes; nothing if there is none. Notes where the values come from,
 * or why there are none. */
void calibration_take_codes(struct calibration_run *const *coded_runs, size_t coded_count,
                            struct calibration_run *const *runs, size_t count,
                            struct calibration *made);

#endif
