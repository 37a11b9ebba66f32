/* Formats the line of a period. */
#include "ps-server/record/period_line.h"

#include "common/job/job.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct line {
    char *text; // (PERIOD_LINE_BYTES), borrowed
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void say(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size =
        vsnprintf(line->text + line->used, PERIOD_LINE_BYTES - line->used, format, arguments);
    va_end(arguments);
    line->used += size > 0 ? (size_t)size : 0;
    line->used = line->used < PERIOD_LINE_BYTES ? line->used : PERIOD_LINE_BYTES - 1;
}

/* "epoch 3 (20 of its 50 steps)" */
static void say_place(struct line *line, const struct coordinator *coordinator, uint32_t period)
{
    const struct job *job = coordinator->job;
    uint64_t samples = coordinator->train_samples;
    uint64_t end = results_period_end(&coordinator->results, job, samples, period);
    if (job->eval_every > 0 || job_is_external(job)) {
        say(line, "step %llu", (unsigned long long)end);
        return;
    }
    uint64_t per_epoch = job_steps_per_epoch(job, samples);
    uint64_t rest = per_epoch > 0 ? end % per_epoch : 0;
    say(line, "epoch %u", period + 1);
    if (rest > 0) {
        say(line, " (%llu of its %llu steps)", (unsigned long long)rest,
            (unsigned long long)per_epoch);
    }
}

/* A race that has lost a worker may lack its part of the test set. */
static void say_part(struct line *line, const struct coordinator *coordinator,
                     const struct results_period *of)
{
    if (of->test_images < coordinator->test_samples && !job_is_external(coordinator->job)) {
        say(line, " (%llu of %llu images)", (unsigned long long)of->test_images,
            (unsigned long long)coordinator->test_samples);
    }
}

/* A program tells what it likes; what it does not tell is no number, or nothing. */
void period_line_format(const struct coordinator *coordinator, uint32_t period,
                        char ret_line[PERIOD_LINE_BYTES])
{
    struct line line = {.text = ret_line};
    const struct results_period *of = &coordinator->results.periods[period];
    bool is_ours = !job_is_external(coordinator->job);
    bool has_images = is_ours || of->images > 0;
    say_place(&line, coordinator, period);
    const char *separator = ": ";
    if (has_images) {
        say(&line, "%strain loss %.4f", separator,
            of->images > 0 ? of->loss_sum / (double)of->images : 0);
        separator = ", ";
    }
    if (of->test_images > 0 && (is_ours || !isnan(of->test_loss_sum))) {
        say(&line, "%stest loss %.4f", separator, of->test_loss_sum / (double)of->test_images);
        separator = ", ";
    }
    if (of->test_images > 0) {
        say(&line, "%stest accuracy %.2f %%", separator,
            100 * results_accuracy(&coordinator->results, period));
        say_part(&line, coordinator, of);
        separator = ", ";
    }
    if (has_images) {
        say(&line, "%s%.0f images/s", separator,
            results_period_rate(&coordinator->results, period));
        separator = ", ";
    }
    say(&line, "%s%.1f s", separator, (double)of->total_ns_max / 1e9);
}
