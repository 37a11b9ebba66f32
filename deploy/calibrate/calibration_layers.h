/* What computing costs, from the steps of one run. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_LAYERS_H
#define DEPLOY_CALIBRATE_CALIBRATION_LAYERS_H

#include "common/base/status.h"
#include "deploy/calibrate/calibration_run.h"
#include "deploy/calibrate/model_layers.h"
#include "deploy/predict/basis/costs.h"

#define CALIBRATION_REST_NAME "rest of the step" // of the layer in front of those of the model

/* Layers with their spreads, that of the step, and the error of all. Layers that the run's timeline
 * does not name are shared out by parameters without spreads, and `whole_layers` is false then. All
 * are made `speed_share` times as long as the run had them. */
enum status calibration_layers_make(const struct calibration_run *run,
                                    const struct model_layers *model, double speed_share,
                                    struct costs *costs);

#endif
