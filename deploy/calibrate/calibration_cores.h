/* What work takes of cores, from what runs show of the time that cores worked for their processes.
 */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_CORES_H
#define DEPLOY_CALIBRATE_CALIBRATION_CORES_H

#include "deploy/calibrate/calibration.h"
#include "deploy/calibrate/fit.h"

/* Whether a run says how long cores worked for what it computed and sent. A GPU computes without
 * them, and of several threads only one is known. */
bool calibration_knows_cores(const struct calibration_run *run);

/* By what the time of a worker's steps has to be multiplied to be that of a core: 1 if that is not
 * known. */
double calibration_core_share(const struct calibration_run *run);

/* Whether its workers had fewer cores than threads that compute, so that they took turns. */
bool calibration_is_crowded(const struct calibration_run *run);

/* Time of a core for each end of a message with values, without sums and updates: of the message,
 * and of its bytes. False: no run shows it. */
bool calibration_message(struct calibration_run *const *runs, size_t run_count,
                         struct fit_share *ret_share);

/* What threads that read batches took of cores for one. False: the run does not show it. */
bool calibration_input(const struct calibration_run *run, double *ret_input_s);

/* How many times as long as in `narrowest` the cores worked in all runs like it, in the mean: runs
 * of one worker that exchanged nothing, whose speed changes with that of the machine. 1: there are
 * no others. */
double calibration_speed_share(struct calibration_run *const *runs, size_t run_count,
                               const struct calibration_run *narrowest);

// One worker alone is as fast before the other runs as behind them, up to this factor.
// bench/predict has the same, and calibrates again.
#define CALIBRATION_ALONE_RATIO_MAX 1.1

/* Whether the machine was disturbed: the first and the last of the runs of one worker alone, of the
 * batch of `narrowest`, differ by more than that. Then their images/s are returned. */
bool calibration_is_disturbed(struct calibration_run *const *runs, size_t run_count,
                              const struct calibration_run *narrowest, double *ret_first,
                              double *ret_last);

/* Threads, input and carriage, with their notes, and a first estimate of crowding. `narrowest` is
 * one of the runs, which are in the order in which they were made. */
void calibration_take_cores(struct calibration_run *const *runs, size_t run_count,
                            const struct calibration_run *narrowest,
                            struct calibration *calibration);

/* What turns cost, behind these. Of all runs, also of other batches. */
void calibration_take_turns(struct calibration_run *const *runs, size_t run_count,
                            const struct calibration_run *narrowest,
                            struct calibration *calibration);

/* What others take from one that computes, behind these, with its note. Of the runs of
 * calibration_take_cores. */
void calibration_take_crowding(struct calibration_run *const *runs, size_t run_count,
                               const struct calibration_run *narrowest,
                               struct calibration *calibration);

#endif
