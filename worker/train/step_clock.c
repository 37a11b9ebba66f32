/* Adds up the times of a step by activity. */
#include "worker/train/step_clock.h"

#include "common/base/clock.h"

void step_clock_start(struct step_clock *clock)
{
    *clock = (struct step_clock){.activity = STEP_INPUT, .since_ns = clock_now_ns()};
}

enum step_activity step_clock_enter(struct step_clock *clock, enum step_activity activity)
{
    enum step_activity before = clock->activity;
    uint64_t now_ns = clock_now_ns();
    clock->ns[before] += now_ns - clock->since_ns;
    clock->since_ns = now_ns;
    clock->activity = activity;
    return before;
}
