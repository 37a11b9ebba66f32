/* Times that come on top of others, drawn anew each time: of a step, or of a layer in it. */
#ifndef DEPLOY_PREDICT_BASIS_SPREAD_H
#define DEPLOY_PREDICT_BASIS_SPREAD_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdint.h>

enum spread_kind { SPREAD_NONE, SPREAD_EXPONENTIAL, SPREAD_UNIFORM, SPREAD_PARETO };

struct spread {
    enum spread_kind kind;
    double least_s; // uniform, pareto
    double most_s;  // uniform
    double mean_s;  // exponential
    double shape;   // pareto: above 1, so that there is a mean
};

/* Reads a place of a file. Without an object the spread stays as it is. Logs. */
enum status spread_read(const char *file, const char *place, json_t *object, struct spread *spread);

/* What it adds in the mean. */
double spread_mean_s(const struct spread *spread);

/* Its standard deviation; infinite of pareto with a shape of 2 or less. */
double spread_deviation_s(const struct spread *spread);

/* Makes all draws so many times as long. */
void spread_scale(struct spread *spread, double factor);

/* The draw of a worker's step. */
double spread_draw(const struct spread *spread, uint64_t seed, uint32_t rank, uint64_t step);

#endif
