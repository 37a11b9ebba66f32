/* Means of repeated runs, and how sure they are. Pure. */
#ifndef DEPLOY_REPORT_STATISTICS_H
#define DEPLOY_REPORT_STATISTICS_H

#include <stddef.h>

struct statistics {
    size_t count;
    double mean;
    double
        half_width; // of the 95 % interval of the mean (Student's t); 0 for fewer than two values
};

struct statistics statistics_of(const double *values, size_t count);

#endif
