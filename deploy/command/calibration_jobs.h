/* The jobs that `ringside calibrate` runs by itself, each with a timeline: local with one worker,
 * also with other batches; with several, ring, ring that exchanges nothing before its last step,
 * ring with small buckets, and ps-sync; then the second one of ring and local again and, on this
 * host alone, ring on as few cores as one of the workers needs; these two once more with longer
 * steps, where steps are short. */
#ifndef DEPLOY_COMMAND_CALIBRATION_JOBS_H
#define DEPLOY_COMMAND_CALIBRATION_JOBS_H

#include "common/base/signals.h"
#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/calibrate/calibration.h"
#include "deploy/calibrate/observation.h"
#include "deploy/command/session.h"
#include "deploy/launch/launch.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    CALIBRATION_LOCAL,
    CALIBRATION_BATCH, // local with another batch; one for each
    CALIBRATION_RING,
    CALIBRATION_APART, // ring whose workers exchange nothing before the last step
    CALIBRATION_SMALL,
    CALIBRATION_SERVERS,
    CALIBRATION_CODES, // servers with --compress, if that is asked for
    CALIBRATION_APART_AGAIN,
    CALIBRATION_AGAIN, // local once more: machines get quicker and slower
    CALIBRATION_TURNS, // the last of the list, as not all calibrations have it
    // Where steps are shorter than turns, both once more with a batch whose steps are not:
    CALIBRATION_LONG,
    CALIBRATION_LONG_TURNS,
    CALIBRATION_KINDS
};

#define CALIBRATION_STEPS_LEAST (OBSERVATION_WARM_STEPS + UINT64_C(3)) // of a job that counts
#define CALIBRATION_JOBS_MAX    (CALIBRATION_KINDS + CALIBRATION_BATCHES_MAX)

static_assert(CALIBRATION_JOBS_MAX <= CALIBRATION_RUNS_MAX, "all jobs are calibrated from");

/* Large: on the heap. */
struct calibration_jobs {
    struct session session;
    struct job job;                            // what the options ask for
    uint32_t batches[CALIBRATION_BATCHES_MAX]; // (batch_count) others than the job's
    size_t batch_count;
    int kinds[CALIBRATION_JOBS_MAX];                     // (count) of those above
    struct job list[CALIBRATION_JOBS_MAX];               // (count) resolved
    char folders[CALIBRATION_JOBS_MAX][LAUNCH_PATH_MAX]; // (count)
    size_t count;
    double agents_s;   // until the session was open
    bool is_temporary; // the session's folder is removed in the end
};

/* Reads batches, separated by commas. Logs what is wrong. */
enum status calibration_jobs_take_batches(const char *text, struct calibration_jobs *jobs);

/* After the options were parsed into job and session: makes the list. Logs. */
enum status calibration_jobs_make(struct calibration_jobs *jobs,
                                  const struct option_program *program);

/* Runs them, one after the other, in `folder`, or, if that is "", in a temporary one. The first
 * that does not end well ends all. Logs. */
enum exit_code calibration_jobs_run(struct calibration_jobs *jobs, const char *folder);

/* Closes the session, and removes a temporary folder. */
void calibration_jobs_finish(struct calibration_jobs *jobs);

#endif
