/* Means of repeated runs, and how sure they are. Pure. */
#ifndef DEPLOY_REPORT_STATISTICS_H
#define DEPLOY_REPORT_STATISTICS_H

#include <stddef.h>

// So many runs are drawn each by itself; of more, the interval says what they would.
#define RUNS_DRAWN_MAX 3

struct statistics {
    size_t count;
    double mean;
    double
        half_width; // of the 95 % interval of the mean (Student's t); 0 for fewer than two values
};

struct statistics statistics_of(const double *values, size_t count);

#endif
