/* Speed-up and efficiency of each design over the number of workers. Pure.
 *
 * Speed-up: the rate over that of the design with the fewest workers, times that number.
 * Efficiency: the speed-up over the number of workers. A design that was not run with one worker,
 * while a job without any network was, is compared with that. */
#ifndef DEPLOY_REPORT_SCALING_H
#define DEPLOY_REPORT_SCALING_H

#include "deploy/report/statistics.h"

#include <stdbool.h>
#include <stddef.h>

#define SCALING_DESIGNS_MAX 64
#define SCALING_POINTS_MAX  32

/* One setting. */
struct scaling_input {
    const char *design; // all about the setting but the number of workers; borrowed
    bool is_local;      // one worker without a network
    unsigned workers;
    struct statistics rate; // images per second; count 0: unknown
};

struct scaling_point {
    unsigned workers;
    size_t input; // which one
    struct statistics speed_up, efficiency;
};

struct scaling_design {
    const char *name;                                // borrowed from the input
    struct scaling_point points[SCALING_POINTS_MAX]; // by workers
    size_t count;                                    // at least 2
    unsigned base_workers;                           // of what the others are compared with
    bool is_base_local;
};

/* The designs that have two numbers of workers at least. Returns how many. */
size_t scaling_of(const struct scaling_input *inputs, size_t count,
                  struct scaling_design ret_designs[SCALING_DESIGNS_MAX]);

#endif
