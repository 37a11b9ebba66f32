/* What messages take of cores that no timeline shows: the kernel does a part of its work for them
 * outside of any thread. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_UNSEEN_H
#define DEPLOY_CALIBRATE_CALIBRATION_UNSEEN_H

#include "deploy/calibrate/calibration.h"

/* Lengthens carriage, if it is known, by one factor, with which predictions of those runs that had
 * messages, and a core for each thread that computes, take as long as the runs did, in the mean of
 * the logarithms. Needs all other costs and the links. */
void calibration_take_unseen(struct calibration_run *const *runs, size_t run_count,
                             struct calibration *calibration);

#endif
