/* Adds up the times of a step by activity. */
#include "worker/train/step_clock.h"

#include "common/base/clock.h"

void step_clock_start(struct step_clock *clock, uint64_t step)
{
    uint64_t now_ns = clock_now_ns();
    *clock = (struct step_clock){.activity = STEP_INPUT,
                                 .since_ns = now_ns,
                                 .began_ns = now_ns,
                                 .step = step,
                                 .trace = clock->trace};
}

/* What is computed has events of its own. */
static void trace_activity(const struct step_clock *clock, uint64_t now_ns)
{
    const struct trace_tag tag = {
        .kind = clock->activity == STEP_INPUT ? TRACE_INPUT_WAIT : TRACE_EXCHANGE,
        .bucket = TRACE_NO_BUCKET,
        .step = clock->step,
    };
    if (clock->activity != STEP_COMPUTE && now_ns > clock->began_ns) {
        trace_record(clock->trace, clock->began_ns, now_ns, &tag);
    }
}

enum step_activity step_clock_enter(struct step_clock *clock, enum step_activity activity)
{
    enum step_activity before = clock->activity;
    uint64_t now_ns = clock_now_ns();
    if (clock->trace != NULL && activity != before) {
        trace_activity(clock, now_ns);
    }
    clock->ns[before] += now_ns - clock->since_ns;
    clock->since_ns = now_ns;
    if (activity != before) {
        clock->activity = activity;
        clock->began_ns = now_ns;
    }
    return before;
}
