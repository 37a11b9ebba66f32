/* Computes the learning rate of a step: warm-up, then the schedule. */
#include "common/optimizer/schedule.h"

#include "common/base/power.h"

#define HALF_PI 1.57079632679489661923

/* (1 + cos(pi x)) / 2 for x in [0, 1], as the square of cos(pi x / 2) by its Taylor series: every
 * rank of a ring computes its own rate, so it must have the same bits on every machine, and the C
 * library's cos has variants that differ in the last place. */
static double half_cosine(double x)
{
    double square = HALF_PI * x * HALF_PI * x;
    double sum = 1;
    for (int n = 24; n > 0; n -= 2) { // the first term left out is below 1e-21
        sum = 1 - sum * square / (n * (n - 1));
    }
    return sum * sum;
}

static double cosine_factor(const struct schedule *schedule, uint64_t step)
{
    if (step >= schedule->total_steps) {
        return 0;
    }
    // step >= warmup_steps here, so the divisor is not 0.
    return half_cosine((double)(step - schedule->warmup_steps) /
                       (double)(schedule->total_steps - schedule->warmup_steps));
}

/* A period of 0 never ends. */
static double step_factor(const struct schedule *schedule, uint64_t step)
{
    return schedule->period_steps == 0 ? 1
                                       : power_of(schedule->gamma, step / schedule->period_steps);
}

bool schedule_is_constant(const struct schedule *schedule)
{
    return schedule->kind == SCHEDULE_CONSTANT && schedule->warmup_steps == 0;
}

double schedule_rate(const struct schedule *schedule, uint64_t step)
{
    if (step < schedule->warmup_steps) {
        return schedule->start_rate + (schedule->base_rate - schedule->start_rate) * (double)step /
                                          (double)schedule->warmup_steps;
    }
    switch (schedule->kind) {
    case SCHEDULE_CONSTANT:
        break;
    case SCHEDULE_STEP:
        return schedule->base_rate * step_factor(schedule, step);
    case SCHEDULE_COSINE:
        return schedule->base_rate * cosine_factor(schedule, step);
    }
    return schedule->base_rate;
}
