/* What starting jobs costs, from the time that those of calibrate took until their first step. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_LAUNCH_H
#define DEPLOY_CALIBRATE_CALIBRATION_LAUNCH_H

#include "common/base/status.h"
#include "deploy/calibrate/calibration.h"

#include <stdint.h>

#define CALIBRATION_LAUNCH_NAME "launch.json" // in a run folder

/* Writes how long a job took to start, in a folder of this host: from `launched_s` by its clock to
 * the end of the job, without the time that it trained. `agents_s`: how long agents took before.
 * Writes nothing where the folder does not say when the job ended. Logs. */
enum status calibration_launch_write(const char *folder, double launched_s, double agents_s);

/* Reads that file, if it is there. */
void calibration_launch_read(struct calibration_run *run);

/* `launch` of the costs, with a note. */
void calibration_take_launch(struct calibration_run *const *runs, size_t run_count,
                             struct calibration *calibration);

#endif
