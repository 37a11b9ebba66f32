/* Figures that describe measurements: a least value and what comes on top of it, and lines. Pure.
 */
#ifndef DEPLOY_CALIBRATE_FIT_H
#define DEPLOY_CALIBRATE_FIT_H

#include "deploy/predict/basis/costs.h"

#include <stdbool.h>
#include <stddef.h>

/* Times of the same thing, as a part that is always there and one that is drawn. Their means add up
 * to the mean of what was measured. */
struct fit_spread {
    double least_s;
    struct spread spread; // SPREAD_NONE: below a thousandth of the mean
};

/* The standard error of the mean of times in their order, as a share of it, from means of eighths:
 * what drifts has a larger one than what does not. 0: too few times. */
double fit_mean_error(const double *times_s, size_t count);

/* Of at least one time. Of an exponential and of a uniform distribution the one is taken under
 * which the times are likelier; its least value and width are the unbiased estimates, but the least
 * is not below half of the smallest time. */
struct fit_spread fit_spread(const double *times_s, size_t count);

struct fit_point {
    double bytes, seconds;
};

/* seconds = latency + bytes / bandwidth, by least squares. */
struct fit_line {
    double latency_s;
    double bandwidth;   // bytes per second; 0: the points show no limit
    bool knows_latency; // two sizes at least; otherwise it is 0
};

/* Of at least one point. Neither value is below 0: where the line would begin below it, it goes
 * through 0. */
struct fit_line fit_line(const struct fit_point *points, size_t count);

/* What something takes that has so many parts and bytes. */
struct fit_load {
    double parts, bytes, seconds;
};

/* seconds = parts * part_s + bytes * byte_s, by least squares. */
struct fit_share {
    double part_s, byte_s;
    double error; // what is left over, as a share of the seconds; 0: no more loads than values
};

/* Neither value is below 0: where one would be, it is 0, and the other has all. */
struct fit_share fit_share(const struct fit_load *loads, size_t count);

#endif
