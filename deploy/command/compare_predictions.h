/* Predictions of the jobs of a comparison, each made before its job runs. */
#ifndef DEPLOY_COMMAND_COMPARE_PREDICTIONS_H
#define DEPLOY_COMMAND_COMPARE_PREDICTIONS_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/options/options.h"

#include <stdbool.h>

struct compare_prediction_options {
    bool is_asked;
    bool has_hosts; // the jobs' are named, and may be others than this one
    bool has_keys;  // for tcp connections of the jobs
    char costs[JOB_PATH_BYTES], network[JOB_PATH_BYTES]; // files; "": both are calibrated
};

struct compare_files;

struct compare_prediction {
    const struct compare_files *files; // that it is made from; NULL: there are none; borrowed
    double images_per_s;               // 0: there is none, and why
    char why[256];
};

struct compare_predictions;

/* NULL in *ret_predictions: none are asked for, and the others do nothing. Logs what is wrong with
 * the options or the files. */
enum status compare_predictions_open(const struct compare_prediction_options *options,
                                     const struct option_program *program,
                                     struct compare_predictions **ret_predictions);
void compare_predictions_close(struct compare_predictions *predictions);

/* Unless files are named or there already, calibrates for a resolved job: files in the folder.
 * Where there would be too many, or the job has no layers that we know, nothing. Signals have to be
 * blocked. Logs. */
enum status compare_predictions_calibrate(struct compare_predictions *predictions,
                                          const struct job *job, const char *folder);

/* Of a resolved job, on one host or on several. */
void compare_predictions_make(const struct compare_predictions *predictions, const struct job *job,
                              struct compare_prediction *ret_prediction);

/* Writes prediction.json beside the summary of the job that has run: images per second and by how
 * much that is off, or why there is none. Without a summary, nothing. Logs. */
enum status compare_predictions_write(const struct compare_predictions *predictions,
                                      const struct compare_prediction *prediction,
                                      const char *folder);

#endif
