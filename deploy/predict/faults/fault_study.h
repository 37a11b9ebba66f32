/* What the faults of a job (--fault) cost in each point of a study. */
#ifndef DEPLOY_PREDICT_FAULTS_FAULT_STUDY_H
#define DEPLOY_PREDICT_FAULTS_FAULT_STUDY_H

#include "common/base/status.h"
#include "deploy/predict/faults/fault_course.h"
#include "deploy/predict/study/study.h"

#include <jansson.h>

#include <stdint.h>
#include <stdio.h>

struct fault_study {
    const struct study *study; // borrowed
    struct faults faults;
    uint64_t steps;                                // of the whole job
    struct fault_course courses[STUDY_POINTS_MAX]; // of the study's points as things are
};

/* Reads --fault and --job-steps, and checks them against the points, before any is made. Logs. */
enum status fault_study_take(const struct study *study, const char *faults, uint64_t steps,
                             struct fault_study *ret_study);

/* Of a study that was made. Logs. */
enum status fault_study_make(struct fault_study *faults);

/* A table, and what is assumed in it. */
void fault_study_print(const struct fault_study *faults, FILE *stream);

/* The same values; NULL: no memory. The caller owns it. */
json_t *fault_study_json(const struct fault_study *faults);

#endif
