/* The size of buckets that a job with --bucket-mb auto goes on with. Pure.
 *
 * The first phases of the job are trials (see phases.h), each with buckets of another size. At the
 * end of each, every worker says what a step took it. Where workers are in step, the slowest one is
 * how fast the job was; where they are unsynchronised each goes at its own rate, and the rates add
 * up. The fastest size wins, and of sizes that are as good as that the largest, which makes the
 * fewest messages. There is nothing to try where no bucket travels, or where trials would be too
 * much of the job: that keeps the default. */
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
    double rate_sum;     // steps a nanosecond, of the workers that have measured it
    uint32_t count;      // of those
};

struct tuning {
    enum tuning_state state;
    bool is_unsynchronised; // workers are, in the trials
    uint64_t first_steps;   // of the first phase, if it is too short
    uint64_t trial_steps;   // of all trials
    struct tuning_trial trials[PHASES_TRIALS];
    uint64_t bytes; // of the buckets of phases that are no trials; once it is known
};

/* Of a resolved job; is_shared: its ring adds up gradients in shared memory. */
void tuning_init(const struct job *job, uint64_t sample_count, bool is_shared,
                 struct tuning *ret_tuning);

/* PASSED of a worker at the end of a phase; 0: it has not measured enough steps. */
void tuning_note(struct tuning *tuning, uint32_t phase, uint64_t step_ns);

/* What START of a phase says: the size that buckets are merged to. Decides, once all trials are
 * over. */
uint64_t tuning_begin_phase(struct tuning *tuning, uint32_t phase);

/* Milliseconds of a step in a trial; 0: not measured. */
double tuning_trial_ms(const struct tuning *tuning, uint32_t trial);

/* One line: "bucket-mb auto: 0.25: 12.1, 1: 10.9, 4: 12.5, 16: 15.0 ms a step; continues with 1".
 * False, and nothing, without --bucket-mb auto. */
bool tuning_describe(const struct tuning *tuning, char *ret_text, size_t text_size);

/* The same if the beginning of this phase is when it became known. */
bool tuning_describe_news(const struct tuning *tuning, uint32_t phase, char *ret_text,
                          size_t text_size);

#endif
