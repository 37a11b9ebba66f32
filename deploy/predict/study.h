/* Predictions of a job in several modes with several numbers of workers, and what limits each. */
#ifndef DEPLOY_PREDICT_STUDY_H
#define DEPLOY_PREDICT_STUDY_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/predict/costs.h"
#include "deploy/predict/network.h"
#include "deploy/predict/prediction.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define STUDY_POINTS_MAX  64
#define STUDY_WORKERS_MAX 16384 // more than a job may have
#define STUDY_WARM_STEPS  3     // of each worker, until the course is a steady one
#define STUDY_LONG_S      5     // of a point: it is said that one takes longer

struct study_point {
    struct mode mode;
    uint32_t workers, servers;
    struct prediction made;
    double speed_up;     // images/s, against one worker that exchanges nothing
    double efficiency;   // speed-up / workers
    const char *limiter; // the cost without which a step would be shortest; "nothing"
    double limiter_gain; // by so much of the step
};

struct study {
    const char *costs_file, *network_file; // borrowed, as the others
    const struct costs *costs;
    const struct network *network;
    struct job job;      // without mode, workers and servers
    uint32_t counted;    // steps of each worker
    bool is_approximate; // jobs are made in small also where that may be off by more than 1 %
    struct study_point points[STUDY_POINTS_MAX];
    size_t point_count;
};

/* Fills in a point whose mode, workers and servers are set. Logs, also that it takes long. */
enum status study_make_point(const struct study *study, struct study_point *point);

/* A table, and below it what the model leaves out. */
void study_print(const struct study *study, FILE *stream);

/* The same values; names of fields end with their unit. NULL: no memory. The caller owns it. */
json_t *study_json(const struct study *study);

#endif
