/* What workers wait for in a step, on purpose or as their times are spread. */
#include "deploy/predict/course.h"

#include <stdlib.h>

#define DELAYS_SEEN 13 // steps, to know how far delays set workers apart

struct course_delays course_delays_of(const struct course *course, uint32_t rank, uint64_t step)
{
    uint64_t compute_ns = (uint64_t)(costs_compute_s(course->costs) * 1e9),
             seed = course->job->seed;
    return (struct course_delays){
        (double)straggler_delay_ns(&course->straggler, seed, rank, step, compute_ns) * 1e-9,
        spread_draw(&course->costs->spread, seed, rank, step)};
}

double course_delays_apart_s(const struct course *course, uint32_t workers)
{
    double apart_s = 0;
    for (uint64_t step = 0; step < DELAYS_SEEN; step++) {
        double latest_s = 0, sum_s = 0;
        for (uint32_t rank = 0; rank < workers; rank++) {
            const struct course_delays delays = course_delays_of(course, rank, step);
            double own_s = course_delays_sum(&delays);
            latest_s = own_s > latest_s ? own_s : latest_s;
            sum_s += own_s;
        }
        apart_s += (latest_s - sum_s / workers) / DELAYS_SEEN;
    }
    return apart_s;
}

/* A worker that stands for all has the delays of the latest, as all wait for that one. */
static void draw_for_all(struct course *course, uint32_t index)
{
    struct course_worker *worker = &course->workers[index];
    uint64_t step = course->clocks.steps[index];
    uint32_t count = course->job->workers / course->simulated;
    struct course_delays latest = course_delays_of(course, index, step), sum = latest;
    for (uint32_t rank = 1; rank < count; rank++) {
        const struct course_delays other = course_delays_of(course, rank, step);
        sum.begin_s += other.begin_s;
        sum.spread_s += other.spread_s;
        latest = course_delays_sum(&other) > course_delays_sum(&latest) ? other : latest;
    }
    course->delay_s += sum.begin_s / count;
    worker->spread_s = latest.spread_s;
    worker->spread_mean_s = sum.spread_s / count;
    worker->begin_s = latest.begin_s;
}

static int is_longer(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first < second) - (first > second);
}

/* Finds from which delay on somebody is among the latest in a step, and what all have. */
static const struct course_latest *find_latest(struct course *course, uint64_t step)
{
    struct course_sample *sample = &course->sample;
    struct course_latest *found = &sample->latest[step % 2];
    uint32_t workers = course->whole_job->workers;
    struct course_delays sum = {0, 0};
    if (found->step == step + 1) {
        return found;
    }
    for (uint32_t rank = 0; rank < workers; rank++) {
        const struct course_delays own = course_delays_of(course, rank, step);
        sum.begin_s += own.begin_s;
        sum.spread_s += own.spread_s;
        sample->delays[rank] = course_delays_sum(&own);
    }
    qsort(sample->delays, workers, sizeof(*sample->delays), is_longer);
    found->step = step + 1;
    found->least_s = sample->delays[sample->workers / COURSE_LATEST_SHARE];
    found->begin_mean_s = sum.begin_s / workers;
    found->spread_mean_s = sum.spread_s / workers;
    return found;
}

/* One of a sample has its own delays. Where workers wait for each other, it has those of one that
 * it stands for, if that is among the latest of all. */
static void draw_of_sample(struct course *course, uint32_t index)
{
    struct course_worker *worker = &course->workers[index];
    uint32_t count = course->sample.workers;
    uint64_t step = course->clocks.steps[index];
    struct course_delays own = course_delays_of(course, index, step), mean = own;
    if (course_has_backup(course)) {
        own = course_backup_draw(course, index, step, &mean);
    } else if (!mode_updates_on_push(course->job->mode.kind)) {
        const struct course_latest *latest = find_latest(course, step);
        mean = (struct course_delays){latest->begin_mean_s, latest->spread_mean_s};
        for (uint32_t rank = index + count; rank < course->whole_job->workers; rank += count) {
            const struct course_delays other = course_delays_of(course, rank, step);
            if (course_delays_sum(&other) >= latest->least_s &&
                course_delays_sum(&other) > course_delays_sum(&own)) {
                own = other;
            }
        }
    }
    course->delay_s += mean.begin_s;
    worker->spread_s = own.spread_s;
    worker->spread_mean_s = mean.spread_s;
    worker->begin_s = own.begin_s;
}

void course_draw_delays(struct course *course, uint32_t index)
{
    if (course->sample.workers > 0) {
        draw_of_sample(course, index);
    } else {
        draw_for_all(course, index);
    }
}
