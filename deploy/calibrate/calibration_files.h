/* The files of a calibration, and what is said of it on the terminal. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_FILES_H
#define DEPLOY_CALIBRATE_CALIBRATION_FILES_H

#include "common/base/status.h"
#include "deploy/calibrate/calibration.h"

#include <jansson.h>

#include <stdio.h>

/* Whether a file can be written there, before anything is measured. Logs. */
enum status calibration_check_file(const char *path);

/* What network_read reads. NULL: no memory. The caller owns it. */
json_t *calibration_network_json(const struct calibration *calibration);

/* Write the files that cost_batches_read and network_read read, each whole or not at all; one that
 * is there is replaced. Log. */
enum status calibration_write_costs(const struct calibration *calibration, const char *path);
enum status calibration_write_network(const struct calibration *calibration, const char *path);

/* What was measured, from what, and what is assumed. `network`: NULL if none was written. */
void calibration_print(FILE *stream, const struct calibration *calibration, const char *costs,
                       const char *network);

#endif
