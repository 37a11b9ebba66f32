/* Places the switches of a job, its trials and its marks on its steps. */
#include "common/job/phases.h"

#include "common/job/job_checks.h"
#include "common/job/job_modes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ==========================================================================================
 * Marks
 * ========================================================================================== */

/* The first multiple of the period behind `first`, in periods. */
static uint64_t first_multiple(const struct marks *marks)
{
    return marks->first / marks->period + 1;
}

uint64_t marks_count(const struct marks *marks)
{
    assert(marks->period > 0 && marks->end > marks->first);
    uint64_t whole = marks->end / marks->period;
    uint64_t before = first_multiple(marks) - 1;
    return whole - before + (marks->end % marks->period != 0);
}

uint64_t marks_step(const struct marks *marks, uint64_t number)
{
    assert(number > 0);
    uint64_t step;
    bool is_too_large =
        __builtin_mul_overflow(first_multiple(marks) - 1 + number, marks->period, &step);
    return is_too_large || step > marks->end ? marks->end : step;
}

/* ==========================================================================================
 * Phases
 * ========================================================================================== */

/* Capped: the numbers may come from a peer. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

uint64_t phases_period(const struct job *job, uint64_t sample_count)
{
    return job->eval_every > 0 ? job->eval_every : job_steps_per_epoch(job, sample_count);
}

uint64_t phases_period_end(const struct job *job, uint64_t sample_count, uint64_t index)
{
    uint64_t total = job_total_steps(job, sample_count);
    uint64_t step = times(index + 1, phases_period(job, sample_count));
    return step < total ? step : total;
}

uint64_t phases_pushes(const struct marks *marks, uint32_t workers, uint32_t sync_every,
                       uint64_t step)
{
    assert(step >= marks->first && sync_every > 0);
    return divide_up(times(step - marks->first, workers), sync_every);
}

/* Updates that a phase makes of the parameters. */
static uint64_t update_count(const struct job *job, const struct phase *phase)
{
    uint64_t steps = phase->marks.end - phase->marks.first;
    return mode_updates_on_push(phase->mode.kind)
               ? divide_up(times(steps, job->workers), job->gradients_per_update)
               : steps;
}

/* Where a rule stands in the steps of the job. */
static uint64_t step_of(const struct job *job, const struct switch_rule *rule,
                        uint64_t sample_count)
{
    return rule->is_epoch ? times(rule->at, job_steps_per_epoch(job, sample_count)) : rule->at;
}

/* Whether switches come within the job, and in their order. */
static enum status check_rules(const struct job *job, const struct switch_rules *rules,
                               uint64_t sample_count, char *ret_error, size_t error_size)
{
    uint64_t total = job_total_steps(job, sample_count), before = 0;
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct switch_rule *rule = &rules->rules[i];
        const char *unit = rule->is_epoch ? "epoch" : "step";
        uint64_t step = step_of(job, rule, sample_count);
        if (step >= total) {
            snprintf(ret_error, error_size,
                     "--switch %s:%llu=%s never comes: the job has %llu steps, %llu an epoch", unit,
                     (unsigned long long)rule->at, mode_text(rule->mode).text,
                     (unsigned long long)total,
                     (unsigned long long)job_steps_per_epoch(job, sample_count));
            return STATUS_INVALID;
        }
        if (step <= before) {
            snprintf(ret_error, error_size,
                     "--switch %s:%llu=%s is at step %llu, and the one before it at step %llu: "
                     "they must come in their order",
                     unit, (unsigned long long)rule->at, mode_text(rule->mode).text,
                     (unsigned long long)step, (unsigned long long)before);
            return STATUS_INVALID;
        }
        before = step;
    }
    return STATUS_OK;
}

/* Ends the last phase at a step, and begins another. */
static void add_phase(const struct job *job, struct phases *phases, struct mode mode, uint64_t step,
                      uint64_t total, uint64_t period)
{
    struct phase *phase = &phases->list[phases->count++];
    *phase = (struct phase){
        .marks = {.first = step, .end = total, .period = period},
        .begin = step,
        .mode = mode,
        .is_unsynchronised = job_is_unsynchronised_in(job, mode.kind),
    };
    if (phases->count > 1) {
        struct phase *before = phase - 1;
        before->marks.end = step;
        phase->updates_before = before->updates_before + update_count(job, before);
    }
}

uint64_t phases_trial_bytes(uint32_t trial)
{
    assert(trial < PHASES_TRIALS);
    return (UINT64_C(256) * 1024) << (2 * trial);
}

uint64_t phases_bucket_bytes(const struct job *job)
{
    return job_tunes_buckets(job) ? phases_trial_bytes(0)
                                  : (uint64_t)(job->bucket_mb * 1024 * 1024);
}

uint64_t phases_trial_steps(const struct job *job)
{
    return times((uint64_t)PHASES_TRIALS * PHASES_TRIAL_ROUNDS, job->sync_every);
}

/* The trials, and the rest of the first phase, which ends at a step. */
static void add_first(const struct job *job, struct phases *phases, uint64_t end, uint64_t total,
                      uint64_t period)
{
    bool has_trials = job_tunes_buckets(job) && job->workers > 1 &&
                      end >= times(PHASES_TRIALS_SHARE, phases_trial_steps(job));
    phases->trial_count = has_trials ? PHASES_TRIALS : 0;
    uint64_t steps = phases_trial_steps(job) / PHASES_TRIALS;
    for (uint32_t i = 0; i <= phases->trial_count; i++) {
        add_phase(job, phases, job->mode, i * steps, total, period);
    }
}

enum status phases_of(const struct job *job, uint64_t sample_count, struct phases *ret_phases,
                      char *ret_error, size_t error_size)
{
    struct switch_rules rules = job_switches(job);
    struct phases phases = {.count = 0};
    uint64_t total = job_total_steps(job, sample_count);
    uint64_t period = phases_period(job, sample_count);
    if (period == 0 || total == 0) {
        snprintf(ret_error, error_size,
                 "the %llu training samples are fewer than one global batch of %u: make "
                 "--global-batch smaller",
                 (unsigned long long)sample_count, job->global_batch);
        return STATUS_INVALID;
    }
    if (job->sync_every > period) {
        snprintf(ret_error, error_size,
                 "--sync-every %u is longer than the %llu steps between evaluations: make it "
                 "smaller",
                 job->sync_every, (unsigned long long)period);
        return STATUS_INVALID;
    }
    enum status status = check_rules(job, &rules, sample_count, ret_error, error_size);
    if (status == STATUS_OK) {
        status = job_check_timeline(job, total, ret_error, error_size);
    }
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t first_end = rules.count > 0 ? step_of(job, &rules.rules[0], sample_count) : total;
    add_first(job, &phases, first_end, total, period);
    for (uint32_t i = 0; i < rules.count; i++) {
        const struct switch_rule *rule = &rules.rules[i];
        add_phase(job, &phases, rule->mode, step_of(job, rule, sample_count), total, period);
    }
    *ret_phases = phases;
    return STATUS_OK;
}

/* Whether updates follow an order that is drawn. */
static bool has_order(const struct job *job, const struct phase *phase)
{
    return mode_updates_on_push(phase->mode.kind) && strcmp(job->order, "free") != 0;
}

enum status phases_resume(const struct job *job, struct phases *phases, uint64_t steps,
                          uint32_t *ret_index)
{
    uint32_t index = 0;
    while (index < phases->count && steps >= phases->list[index].marks.end) {
        index++;
    }
    if (index == phases->count) {
        return STATUS_END_OF_DATA;
    }
    if (index < phases->trial_count) {
        return STATUS_UNSUPPORTED;
    }
    struct phase *phase = &phases->list[index];
    phase->begin = steps;
    if (!has_order(job, phase)) {
        struct phase done = *phase;
        done.marks.end = steps;
        phase->updates_before += update_count(job, &done);
        phase->marks.first = steps;
    }
    *ret_index = index;
    return STATUS_OK;
}

uint64_t phase_marks_before(const struct phase *phase)
{
    const struct marks *marks = &phase->marks;
    return phase->begin / marks->period - marks->first / marks->period;
}

uint64_t phase_rounds_before(const struct phase *phase, uint32_t sync_every)
{
    return (phase->begin - phase->marks.first) / sync_every;
}

uint64_t marks_rounds(const struct marks *marks, uint32_t sync_every, uint64_t steps)
{
    assert(steps >= marks->first && sync_every > 0 && marks->period > 0);
    uint64_t to_mark = marks->period - marks->first % marks->period;
    uint64_t made = steps - marks->first;
    if (made <= to_mark) {
        return divide_up(made, sync_every);
    }
    uint64_t behind = made - to_mark;
    return divide_up(to_mark, sync_every) +
           behind / marks->period * divide_up(marks->period, sync_every) +
           divide_up(behind % marks->period, sync_every);
}
