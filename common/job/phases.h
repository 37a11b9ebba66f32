/* Cuts a job into phases, and says at which steps parameters are looked at. Pure.
 *
 * --switch cuts a job into phases. At the end of each all workers hold the same parameters (and the
 * optimizer's states, if servers had them), and the next one begins with those:
 *
 *     --mode ps-sync --switch epoch:3=ps-async --switch step:2000=ring
 *
 * With --bucket-mb auto the first one begins with trials, which are short phases of the same mode,
 * each with buckets of another size. Workers measure them, and the coordinator chooses. Where the
 * job is too short, or has one worker, there are none.
 *
 * Within a phase there are marks: the ends of periods (epochs, or --eval-every steps), at which the
 * test set is evaluated, and the end of the phase. */
#ifndef COMMON_JOB_PHASES_H
#define COMMON_JOB_PHASES_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/job/mode.h"
#include "common/job/switches.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// With --bucket-mb auto: sizes of buckets that are tried, the smallest first, and for how many
// rounds each (a round is a step, or --sync-every of them).
#define PHASES_TRIALS       4
#define PHASES_TRIAL_ROUNDS 12

// A first phase of less than so many times the trials' steps has none.
#define PHASES_TRIALS_SHARE 4

#define PHASES_MAX (SWITCHES_MAX + 1 + PHASES_TRIALS)

/* Of one phase, in steps of the job. */
struct marks {
    uint64_t first, end; // the phase has the steps first .. end - 1
    uint64_t period;     // at least 1: its multiples behind `first` are marks, and `end` is
};

uint64_t marks_count(const struct marks *marks);
uint64_t marks_step(const struct marks *marks, uint64_t number); // number from 1

struct phase {
    struct mode mode;
    struct marks marks;
    bool is_unsynchronised;  // see job_is_unsynchronised_in
    uint64_t updates_before; // of the parameters, in earlier phases
    uint64_t begin;          // the step that is its first in this process: marks.first, unless a
                             // job that follows a seeded order is resumed in the midst of it
};

struct phases {
    struct phase list[PHASES_MAX];
    uint32_t count;
    uint32_t trial_count; // of them, the first ones; 0 or PHASES_TRIALS
};

/* Bytes of the buckets of a trial. */
uint64_t phases_trial_bytes(uint32_t trial);

/* Bytes of the buckets that a model is cut into: with auto those of the smallest trial, which are
 * then merged. */
uint64_t phases_bucket_bytes(const struct job *job);

/* Steps of all trials of a job. Capped. */
uint64_t phases_trial_steps(const struct job *job);

/* Of a resolved job on so many training samples (at least a global batch). STATUS_INVALID with a
 * sentence for a switch that never comes, or a --sync-every that is longer than a period. */
enum status phases_of(const struct job *job, uint64_t sample_count, struct phases *ret_phases,
                      char *ret_error, size_t error_size);

/* A job that is resumed after `steps` steps, which are some: the phase that it goes on with, which
 * becomes one that begins there. With a seeded order, whose draws count from the beginning of the
 * phase, that stays, and `begin` says where to go on. STATUS_END_OF_DATA: no step is left.
 * STATUS_UNSUPPORTED: a trial would have to be resumed. */
enum status phases_resume(const struct job *job, struct phases *phases, uint64_t steps,
                          uint32_t *ret_index);

/* Marks of the phase, and rounds of an unsynchronised worker, that were before `begin`. */
uint64_t phase_marks_before(const struct phase *phase);
uint64_t phase_rounds_before(const struct phase *phase, uint32_t sync_every);

/* Rounds of workers that are in step, from the first step of a phase to the end of one of them:
 * `steps` of the job. Rounds have sync_every steps, and end at marks as well. */
uint64_t marks_rounds(const struct marks *marks, uint32_t sync_every, uint64_t steps);

/* Steps between evaluations. */
uint64_t phases_period(const struct job *job, uint64_t sample_count);

/* The step at the end of a period, from 0; the last one may be short. */
uint64_t phases_period_end(const struct job *job, uint64_t sample_count, uint64_t index);

/* Gradients (or, with --sync-every K, changes by K local steps) that an
 * unsynchronised phase has had when the average worker is at `step`. Capped. */
uint64_t phases_pushes(const struct marks *marks, uint32_t workers, uint32_t sync_every,
                       uint64_t step);

#endif
