/* Computes means and Student's intervals. */
#include "deploy/report/statistics.h"

#include <math.h>

/* The 0.975 quantile of Student's t, by degrees of freedom from 1 (Fisher and Yates 1963). */
static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                   2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                   2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                   2.060,  2.056, 2.052, 2.048, 2.045, 2.042};

#define QUANTILES       (sizeof(quantiles) / sizeof(quantiles[0]))
#define NORMAL_QUANTILE 1.960

struct statistics statistics_of(const double *values, size_t count)
{
    struct statistics statistics = {.count = count};
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        statistics.mean += values[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        squares += (values[i] - statistics.mean) * (values[i] - statistics.mean);
    }
    if (count > 1) {
        double quantile = count - 2 < QUANTILES ? quantiles[count - 2] : NORMAL_QUANTILE;
        statistics.half_width = quantile * sqrt(squares / (double)(count - 1) / (double)count);
    }
    return statistics;
}
