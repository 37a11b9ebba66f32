/* What the thread of a server takes for pushes, updates and answers. It follows from costs that
 * predictions use, so no file has it as a value of its own; a job that had a server shows whether
 * it is so. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_SERVICE_H
#define DEPLOY_CALIBRATE_CALIBRATION_SERVICE_H

#include "deploy/calibrate/calibration.h"

struct calibrated_service {
    double push_s, push_byte_s;     // from the head of the queue to its end, without an update
    double answer_s, answer_byte_s; // of parameters
    double update_s;                // of all parameters, behind the last push of a step
};

/* By costs that are there. `lends`: values are read where they are. */
struct calibrated_service calibration_service(const struct costs *costs, bool lends);

/* A step of one server's thread in a run: as costs say it, and as it was. False: the run has no
 * server, or does not say how long cores worked for it. */
bool calibration_service_step(const struct calibration_run *run, const struct costs *costs,
                              double *ret_said_s, double *ret_was_s);

/* Adds the note `service`. Costs are complete. */
void calibration_note_service(struct calibration_run *const *runs, size_t run_count,
                              struct calibration *calibration);

#endif
