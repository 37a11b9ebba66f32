/* Times to the target of a study's points, as text and as JSON. */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_TARGET_H
#define DEPLOY_PREDICT_STUDY_STUDY_TARGET_H

#include "deploy/predict/study/study.h"

#include <jansson.h>

#include <stdio.h>

#define STUDY_TARGET_BYTES 24

/* The heading and the value of a column of tables, with the space in front; "" where the study has
 * no table of convergence. */
const char *study_target_heading(const struct study *study);
void study_target_cell(const struct study *study, const struct study_point *point,
                       char ret_text[STUDY_TARGET_BYTES]);

/* A line for each point, as things are, whose time is not known: why. */
void study_target_print_unknown(const struct study *study, FILE *stream);

/* Adds fields to a point; none without a table of convergence. */
void study_target_add_json(const struct study *study, const struct study_point *point,
                           json_t *object);

/* Seconds as people have them: "34.2 s", "5.1 min", "3.2 h", "9.7 d". */
void study_target_format(double seconds, char ret_text[STUDY_TARGET_BYTES]);

#endif
