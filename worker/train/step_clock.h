/* Tells where the time of a step goes: to input, computing, or the exchange.
 *
 * One of the three goes on at any time. Code that begins another says so and gets back what went on
 * before, to return to it afterwards: a bucket that is summed in the midst of backward is
 * exchange, an update in the midst of an exchange is computing. */
#ifndef WORKER_TRAIN_STEP_CLOCK_H
#define WORKER_TRAIN_STEP_CLOCK_H

#include "common/trace/trace.h"

#include <stdint.h>

enum step_activity { STEP_INPUT, STEP_COMPUTE, STEP_EXCHANGE, STEP_ACTIVITIES };

struct step_clock {
    enum step_activity activity;  // that goes on
    uint64_t since_ns;            // when it was counted last
    uint64_t began_ns;            // when it began
    uint64_t ns[STEP_ACTIVITIES]; // of the step so far
    uint64_t step;                // of the job, that it is of
    struct trace_tape *trace;     // of the thread; borrowed; NULL: none
};

/* A step begins, with its input. Zeroed before the first; `trace` stays. */
void step_clock_start(struct step_clock *clock, uint64_t step);

/* From here on the time counts as this activity. Returns the one before. */
enum step_activity step_clock_enter(struct step_clock *clock, enum step_activity activity);

#endif
