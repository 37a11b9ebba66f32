/* Places the checkpoints of a job on its steps, and says which jobs have copies to mirror. */
#include "common/job/checkpoints.h"

#include "common/job/carriers.h"
#include "common/job/job_checks.h"
#include "common/job/job_modes.h"

#include <stdio.h>

bool checkpoints_are_on(const struct job *job)
{
    return job->checkpoint_every.kind != CHECKPOINT_NEVER || job_may_redeal(job);
}

struct checkpoints checkpoints_of(const struct job *job, uint64_t sample_count)
{
    const struct checkpoint_every *every = &job->checkpoint_every;
    struct checkpoints checkpoints = {
        .are_on = checkpoints_are_on(job),
        .are_written = every->kind != CHECKPOINT_NEVER,
        .total = job_total_steps(job, sample_count),
        .sync_every = job->sync_every > 0 ? job->sync_every : 1,
    };
    if (every->kind == CHECKPOINT_STEPS) {
        checkpoints.every = every->number;
    } else if (every->kind == CHECKPOINT_EPOCH) {
        checkpoints.every = job_steps_per_epoch(job, sample_count);
    }
    return checkpoints;
}

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The first end of a round that is not before `steps`, which the phase has. Rounds of workers that
 * are in step end at marks as well. */
static uint64_t end_of_round(const struct phase *phase, uint32_t sync_every, uint64_t steps)
{
    const struct marks *marks = &phase->marks;
    uint64_t first = marks->first, next = marks->end;
    if (!phase->is_unsynchronised) {
        uint64_t mark_before = (steps - 1) / marks->period * marks->period;
        first = mark_before > first ? mark_before : first;
        next = min(mark_before + marks->period, marks->end);
    }
    uint64_t rounds = (steps - first + sync_every - 1) / sync_every;
    return min(first + rounds * sync_every, next);
}

uint64_t checkpoints_fit(const struct checkpoints *checkpoints, const struct phases *phases,
                         uint64_t steps)
{
    if (phases->trial_count > 0) {
        uint64_t trials_end = phases->list[phases->trial_count - 1].marks.end;
        steps = steps > trials_end ? steps : trials_end + 1;
    }
    for (uint32_t i = 0; i < phases->count; i++) {
        const struct phase *phase = &phases->list[i];
        if (steps <= phase->marks.first) {
            return steps; // made before this process or generation began
        }
        if (steps <= phase->marks.end) {
            uint64_t fit = end_of_round(phase, checkpoints->sync_every, steps);
            if (fit < phase->marks.end || i + 1 == phases->count) {
                return fit;
            }
            steps = fit + 1; // what a phase leaves behind is not what the next one needs
        }
    }
    return checkpoints->total;
}

uint64_t checkpoints_next(const struct checkpoints *checkpoints, const struct phases *phases,
                          uint64_t steps)
{
    uint64_t every = checkpoints->every, total = checkpoints->total;
    if (!checkpoints->are_written || steps >= total) {
        return CHECKPOINTS_NEVER;
    }
    if (every == 0) {
        return total;
    }
    uint64_t asked = steps / every * every; // which may have been moved on
    uint64_t fit = asked > 0 ? checkpoints_fit(checkpoints, phases, asked) : 0;
    if (fit > steps) {
        return fit;
    }
    return every >= total - asked ? total : checkpoints_fit(checkpoints, phases, asked + every);
}

bool checkpoints_are_due(const struct checkpoints *checkpoints, const struct phases *phases,
                         uint64_t steps)
{
    return steps > 0 && checkpoints_next(checkpoints, phases, steps - 1) == steps;
}

enum status checkpoints_check_mirror(const struct job *job, char *ret_error, size_t error_size)
{
    char bound[JOB_BOUND_BYTES];
    if (job_may_redeal(job)) {
        return STATUS_OK;
    }
    if (job_is_external(job)) {
        snprintf(ret_error, error_size,
                 "--mirror writes copies of models of ours to a folder, and a program of your own "
                 "keeps its own (--on-loss commit): leave it out");
    } else if (job->mode.kind == MODE_LOCAL || job->workers == 1) {
        snprintf(ret_error, error_size,
                 "--mirror writes the copies to a folder that let a job go on without a lost "
                 "process, and one %s has none: use --checkpoint-every",
                 job->mode.kind == MODE_LOCAL ? "in mode local" : "with one worker");
    } else if (job_is_bound(job, bound)) {
        snprintf(ret_error, error_size,
                 "--mirror writes the copies to a folder that let a job go on without a lost "
                 "process, and this one has none: %s; use --checkpoint-every",
                 bound);
    } else {
        snprintf(ret_error, error_size,
                 "--mirror writes the copies to a folder that --on-loss redeal keeps in memory, "
                 "and this job has another --on-loss: leave that out, or use --checkpoint-every");
    }
    return STATUS_INVALID;
}
