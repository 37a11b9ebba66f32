/* Chooses the size of buckets from the trials. */
#include "ps-server/coordinator/tuning.h"

#include <stdio.h>
#include <string.h>

#define MIB 1048576.0

// The default of --bucket-mb.
#define DEFAULT_BYTES (UINT64_C(1) << 20)

// A larger size counts as good as the fastest one up to this many times its time.
#define AS_GOOD 1.01

void tuning_init(const struct job *job, uint64_t sample_count, bool is_shared,
                 struct tuning *ret_tuning)
{
    struct phases phases;
    char why[OPTION_ERROR_BYTES];
    *ret_tuning = (struct tuning){.state = TUNING_OFF};
    if (!job_tunes_buckets(job) ||
        phases_of(job, sample_count, &phases, why, sizeof(why)) != STATUS_OK) {
        return; // the job does not fit its data: its workers have said so, and will not be ready
    }
    *ret_tuning = (struct tuning){
        .is_unsynchronised = phases.list[0].is_unsynchronised,
        .first_steps = phases.list[0].marks.end,
        .trial_steps = phases_trial_steps(job),
        .bytes = DEFAULT_BYTES,
    };
    if (job->workers == 1) {
        ret_tuning->state = TUNING_ALONE;
    } else if (is_shared) {
        ret_tuning->state = TUNING_SHARED;
    } else if (phases.trial_count == 0) {
        ret_tuning->state = TUNING_SHORT;
    } else {
        ret_tuning->state = TUNING_TRYING;
    }
}

void tuning_resume(struct tuning *tuning, uint64_t bytes)
{
    if (tuning->state == TUNING_TRYING) {
        tuning->state = TUNING_DECIDED;
    }
    if (tuning->state == TUNING_DECIDED && bytes > 0) {
        tuning->bytes = bytes;
    }
}

void tuning_note(struct tuning *tuning, uint32_t phase, uint64_t step_ns)
{
    if (tuning->state != TUNING_TRYING || phase >= PHASES_TRIALS || step_ns == 0) {
        return;
    }
    struct tuning_trial *trial = &tuning->trials[phase];
    trial->slowest_ns = step_ns > trial->slowest_ns ? step_ns : trial->slowest_ns;
    trial->rate_sum += 1 / (double)step_ns;
    trial->count++;
}

double tuning_trial_ms(const struct tuning *tuning, uint32_t trial)
{
    const struct tuning_trial *of = &tuning->trials[trial];
    if (of->count == 0) {
        return 0;
    }
    return (tuning->is_unsynchronised ? of->count / of->rate_sum : (double)of->slowest_ns) / 1e6;
}

/* Returns the largest size that is as good as the fastest one; the default if none was measured. */
static uint64_t choose(const struct tuning *tuning)
{
    double fastest_ms = 0;
    uint64_t bytes = DEFAULT_BYTES;
    for (uint32_t i = 0; i < PHASES_TRIALS; i++) {
        double ms = tuning_trial_ms(tuning, i);
        if (ms > 0 && (fastest_ms <= 0 || ms < fastest_ms)) {
            fastest_ms = ms;
        }
    }
    for (uint32_t i = 0; i < PHASES_TRIALS; i++) {
        double ms = tuning_trial_ms(tuning, i);
        if (ms > 0 && ms <= AS_GOOD * fastest_ms) {
            bytes = phases_trial_bytes(i);
        }
    }
    return bytes;
}

uint64_t tuning_begin_phase(struct tuning *tuning, uint32_t phase)
{
    if (tuning->state == TUNING_TRYING && phase >= PHASES_TRIALS) {
        tuning->state = TUNING_DECIDED;
        tuning->bytes = choose(tuning);
    }
    uint64_t bytes = tuning->state == TUNING_TRYING ? phases_trial_bytes(phase) : tuning->bytes;
    // Models were cut at the smallest size. Merging at that size would join buckets that were just
    // too large.
    return bytes == phases_trial_bytes(0) ? 0 : bytes;
}

/* Lists all trials: "0.25: 12.1, 1: 10.9". Leaves out the times if nothing was measured yet. */
static void describe_trials(const struct tuning *tuning, char *text, size_t text_size)
{
    for (uint32_t i = 0; i < PHASES_TRIALS; i++) {
        size_t used = strlen(text);
        double ms = tuning_trial_ms(tuning, i);
        int size = snprintf(text + used, text_size - used, "%s%g", i > 0 ? ", " : "",
                            (double)phases_trial_bytes(i) / MIB);
        if (tuning->state != TUNING_DECIDED || size < 0 || (size_t)size >= text_size - used) {
            continue;
        }
        used += (size_t)size;
        if (ms > 0) {
            snprintf(text + used, text_size - used, ": %.1f", ms);
        } else {
            snprintf(text + used, text_size - used, ": not measured");
        }
    }
}

bool tuning_describe(const struct tuning *tuning, char *ret_text, size_t text_size)
{
    static const char start[] = "bucket-mb auto:";
    double chosen = (double)tuning->bytes / MIB;
    char trials[128] = "";
    describe_trials(tuning, trials, sizeof(trials));
    switch (tuning->state) {
    case TUNING_OFF:
        return false;
    case TUNING_ALONE:
        snprintf(ret_text, text_size, "%s stays at %g; one worker exchanges nothing", start,
                 chosen);
        break;
    case TUNING_SHORT:
        snprintf(ret_text, text_size,
                 "%s stays at %g; %llu steps are too few for trials, which take %llu of at least "
                 "%llu",
                 start, chosen, (unsigned long long)tuning->first_steps,
                 (unsigned long long)tuning->trial_steps,
                 (unsigned long long)(PHASES_TRIALS_SHARE * tuning->trial_steps));
        break;
    case TUNING_SHARED:
        snprintf(ret_text, text_size,
                 "%s stays at %g; workers add up gradients in shared memory, so no bucket travels",
                 start, chosen);
        break;
    case TUNING_TRYING:
        snprintf(ret_text, text_size, "%s tries %s in the first %llu steps", start, trials,
                 (unsigned long long)tuning->trial_steps);
        break;
    case TUNING_DECIDED:
        snprintf(ret_text, text_size, "%s %s ms a step; continues with %g", start, trials, chosen);
        break;
    }
    return true;
}

bool tuning_describe_news(const struct tuning *tuning, uint32_t phase, char *ret_text,
                          size_t text_size)
{
    bool is_news = phase == 0 || (phase == PHASES_TRIALS && tuning->state == TUNING_DECIDED);
    return is_news && tuning_describe(tuning, ret_text, text_size);
}
