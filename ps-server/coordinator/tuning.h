/* Finds the size of buckets that a job with --bucket-mb auto continues with. Pure.
 *
 * The first phases of the job are trials (see phases.h), each with another size of buckets. At the
 * end of each, every worker says how long a step took. Where workers are in step, the slowest one
 * sets the speed of the job. Where they are unsynchronised, each has a rate of its own, and the
 * rates add up. The fastest size wins. Of several sizes that are as good, the largest wins, because
 * it needs the fewest messages. There is nothing to try where no bucket travels, or where trials
 * would take too much of the job; then the default stays. */
#ifndef PS_SERVER_COORDINATOR_TUNING_H
#define PS_SERVER_COORDINATOR_TUNING_H

#include "common/job/job.h"
#include "common/job/phases.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tuning_state {
    TUNING_OFF,     // --bucket-mb is a number
    TUNING_ALONE,   // one worker exchanges nothing
    TUNING_SHORT,   // the first phase is too short for trials
    TUNING_SHARED,  // gradients are added up where they lie
    TUNING_TRYING,  // not all trials are over
    TUNING_DECIDED, // they are
};

struct tuning_trial {
    uint64_t slowest_ns; // of a step
    double rate_sum;     // steps per nanosecond, over the workers that have measured it
    uint32_t count;      // of those
};

struct tuning {
    enum tuning_state state;
    bool is_unsynchronised; // workers are unsynchronised in the trials
    uint64_t first_steps;   // of the first phase, if it is too short
    uint64_t trial_steps;   // of all trials
    struct tuning_trial trials[PHASES_TRIALS];
    uint64_t bytes; // size of buckets after the trials, once it is known
};

/* Takes a resolved job. is_shared: its ring adds up gradients in shared memory. */
void tuning_init(const struct job *job, uint64_t sample_count, bool is_shared,
                 struct tuning *ret_tuning);

/* A job that is resumed goes on with the size that was chosen; 0: none was, and it keeps the
 * default. */
void tuning_resume(struct tuning *tuning, uint64_t bytes);

/* PASSED of a worker at the end of a phase; 0: it has not measured enough steps. */
void tuning_note(struct tuning *tuning, uint32_t phase, uint64_t step_ns);

/* Returns the size that buckets are merged to, which START of a phase says. Decides once all trials
 * are over. */
uint64_t tuning_begin_phase(struct tuning *tuning, uint32_t phase);

/* Returns the milliseconds of a step in a trial; 0 if it was not measured. */
double tuning_trial_ms(const struct tuning *tuning, uint32_t trial);

/* Describes the tuning in one line: "bucket-mb auto: 0.25: 12.1, 1: 10.9, 4: 12.5, 16: 15.0 ms a
 * step; continues with 1". Returns false, and writes nothing, without --bucket-mb auto. */
bool tuning_describe(const struct tuning *tuning, char *ret_text, size_t text_size);

/* The same, but only if something became known with the beginning of this phase. */
bool tuning_describe_news(const struct tuning *tuning, uint32_t phase, char *ret_text,
                          size_t text_size);

#endif
