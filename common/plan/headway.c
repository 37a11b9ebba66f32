/* Finds the moment at which a job has made again what it lost. */
#include "common/plan/headway.h"

void headway_begin(struct headway *headway, uint64_t begin_step, uint64_t target_step,
                   uint64_t now_ms)
{
    *headway = (struct headway){.begin_step = begin_step,
                                .target_step = target_step,
                                .last_ms = now_ms,
                                .last_step = begin_step,
                                .has_regained = target_step <= begin_step,
                                .regained_ms = now_ms};
}

void headway_note(struct headway *headway, uint64_t step, uint64_t now_ms)
{
    if (step <= headway->last_step) {
        return;
    }
    if (!headway->has_regained && step >= headway->target_step) {
        double part = (double)(headway->target_step - headway->last_step) /
                      (double)(step - headway->last_step);
        headway->has_regained = true;
        headway->regained_ms =
            headway->last_ms + (uint64_t)(part * (double)(now_ms - headway->last_ms));
    }
    headway->last_step = step;
    headway->last_ms = now_ms;
}

uint64_t headway_repeated(const struct headway *headway)
{
    uint64_t until = headway->has_regained ? headway->target_step : headway->last_step;
    return until > headway->begin_step ? until - headway->begin_step : 0;
}
