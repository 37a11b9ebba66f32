/* The learning rate of a step: scaling, warm-up, then a schedule. Pure. */
#ifndef COMMON_OPTIMIZER_SCHEDULE_H
#define COMMON_OPTIMIZER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum schedule_kind { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_COSINE };

struct schedule {
    enum schedule_kind kind;
    double base_rate;      // after scaling by the number of workers, if any
    double start_rate;     // where the warm-up begins (the rate of one worker)
    uint64_t warmup_steps; // linear from start_rate to base_rate (Goyal et al. 2017)
    uint64_t period_steps; // step: multiply by gamma every so many steps
    double gamma;          // step
    uint64_t total_steps;  // cosine: where the rate reaches 0 (Loshchilov and Hutter 2017)
};

/* Whether each step has the same rate. */
bool schedule_is_constant(const struct schedule *schedule);

double schedule_rate(const struct schedule *schedule, uint64_t step);

#endif
