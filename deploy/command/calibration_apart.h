/* The jobs of `ringside calibrate` whose workers are apart: they exchange nothing before the last
 * step, so that none waits for another, and show what computing takes longer beside others. */
#ifndef DEPLOY_COMMAND_CALIBRATION_APART_H
#define DEPLOY_COMMAND_CALIBRATION_APART_H

#include "deploy/command/calibration_jobs.h"

#include <stdbool.h>

/* Whether a kind of jobs is such a one. */
bool calibration_apart_is(int kind);

/* Whether there may be such jobs: on this host, with a core for each worker, in steps. */
bool calibration_apart_may_be(const struct calibration_jobs *jobs);

/* Behind the first job, which says how long an epoch is: workers exchange at its end at the latest.
 * So these jobs get no more steps, or are taken off the list, if those would be too few. */
void calibration_apart_fit(struct calibration_jobs *jobs);

#endif
