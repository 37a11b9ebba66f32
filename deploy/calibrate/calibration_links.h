/* Reads from runs how messages travel: within a host, and between hosts. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_LINKS_H
#define DEPLOY_CALIBRATE_CALIBRATION_LINKS_H

#include "deploy/calibrate/calibration.h"

/* A line through the quickest message of each size, of all runs; and what is known without runs,
 * which counts instead. */
void calibration_take_links(struct calibration_run *const *runs, size_t run_count,
                            const struct calibration_known *known, struct calibration *calibration);

#endif
