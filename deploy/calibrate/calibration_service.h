/* What the thread of a server takes for pushes, updates and answers. It follows from the costs by
 * which predictions go, so files have no value for it. A run that had a server shows whether it is
 * so. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_SERVICE_H
#define DEPLOY_CALIBRATE_CALIBRATION_SERVICE_H

#include "deploy/calibrate/calibration.h"

struct calibrated_service {
    double push_s, push_byte_s;     // from the head of the queue to its end, without an update
    double answer_s, answer_byte_s; // of parameters
    double update_s;                // of all parameters, behind the last push of a step
};

/* The service that follows from costs. */
struct calibrated_service calibration_service(const struct costs *costs);

/* What a step takes of one server's thread in a run: *ret_said_s by the costs, *ret_was_s as it
 * was. False: the run has no server, or does not say how long cores worked for it. */
bool calibration_service_step(const struct calibration_run *run, const struct costs *costs,
                              double *ret_said_s, double *ret_was_s);

/* Adds the note `service`. The costs have to be complete. */
void calibration_note_service(struct calibration_run *const *runs, size_t run_count,
                              struct calibration *calibration);

#endif
