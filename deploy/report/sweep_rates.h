/* The largest learning rate that training survived, where a sweep has several. */
#ifndef DEPLOY_REPORT_SWEEP_RATES_H
#define DEPLOY_REPORT_SWEEP_RATES_H

#include "deploy/report/sweep_settings.h"

#include <stddef.h>

#define SWEEP_RATES_MAX 64

struct sweep_rate {
    char label[256];        // of the settings, without the rate
    double staleness;       // mean
    struct statistics rate; // the largest one that a seed survived, over the seeds
    double relative;        // to the least stale row
    double theory;          // the same by theory: sin(pi / (4 tau + 2)), relative
};

/* A row for each staleness, sorted by it; none unless the sweep has several rates. A run survived
 * if it was completed, with at least half of the best accuracy of the sweep. The theory is that of
 * gradient descent on a quadratic function with gradients that are tau updates old: it converges
 * below 2 sin(pi / (4 tau + 2)) over the largest curvature. */
size_t sweep_rates_of(const struct sweep_results *results,
                      struct sweep_rate ret_rates[SWEEP_RATES_MAX]);

#endif
