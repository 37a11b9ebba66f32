/* A global batch that the workers of a study share, whatever their number is (strong scaling). */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_BATCHES_H
#define DEPLOY_PREDICT_STUDY_STUDY_BATCHES_H

#include "common/base/status.h"
#include "deploy/predict/basis/costs.h"
#include "deploy/predict/study/study.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define STUDY_BATCH_BYTES 16

/* Whether the study has one. Otherwise all workers have the batch of its costs. */
bool study_is_strong(const struct study *study);

/* Images of a worker's step: of the worker that has most, and the mean of all workers. */
uint32_t study_batch(const struct study *study, uint32_t workers);
double study_mean_batch(const struct study *study, uint32_t workers);

/* The costs of a worker's step, of the worker that has most images. After study_check_batches. */
void study_find_costs(const struct study *study, uint32_t workers, struct costs *ret_costs);

/* Whether each of the study's numbers of workers can share the global batch, and times of the
 * shares are known. Logs, and warns of shares that differ and of times that are extrapolated. */
enum status study_check_batches(const struct study *study);

/* A line for each number of workers; nothing without a global batch. */
void study_print_batches(const struct study *study, FILE *stream);

/* The heading and the value of a column of tables, with the space in front; "" without a global
 * batch. */
const char *study_batch_heading(const struct study *study);
void study_batch_cell(const struct study *study, uint32_t workers,
                      char ret_text[STUDY_BATCH_BYTES]);

/* Adds `batch`, or `global_batch`, to the study's object, and `batch` to a point's, where times are
 * on a line with `batch_from`. */
void study_batches_add_json(const struct study *study, json_t *object);
void study_batch_add_json(const struct study *study, uint32_t workers, json_t *object);

/* Whether the times of some number of workers are on a line, since no run had their batch. */
bool study_has_lines(const struct study *study);

#endif
