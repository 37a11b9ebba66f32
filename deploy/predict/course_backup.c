/* What workers of a sample are late by, in a job with backup workers.
 *
 * An update comes with the gradient of the worker that so many others are later than. So a sample
 * needs the delay of exactly that one of all workers, whatever is left out.
 *
 * A sample without backup workers of its own has none but workers that are on time. Who of all is
 * late is followed by delays alone: one that is late begins its next step by as much later.
 *
 * In a sample with backup workers of its own, each has the delay of all workers' that is as far up
 * as its own is in the sample: its first one that is on time has that of the whole job's first. */
#include "deploy/predict/course.h"

#include <assert.h>
#include <stdlib.h>

static int is_longer(const void *a, const void *b)
{
    double first = course_delays_sum(a), second = course_delays_sum(b);
    return (first < second) - (first > second);
}

/* Those of all workers in a step, into a list; and their means. */
static void draw_all(const struct course *course, uint64_t step, struct course_delays *ret_delays,
                     struct course_latest *ret_latest)
{
    uint32_t workers = course->whole_job->workers;
    struct course_delays sum = {0, 0};
    for (uint32_t rank = 0; rank < workers; rank++) {
        ret_delays[rank] = course_delays_of(course, rank, step);
        sum.begin_s += ret_delays[rank].begin_s;
        sum.spread_s += ret_delays[rank].spread_s;
    }
    *ret_latest = (struct course_latest){.step = step + 1,
                                         .begin_mean_s = sum.begin_s / workers,
                                         .spread_mean_s = sum.spread_s / workers};
}

/* Who begins a step later than the others, as it was late in the one before, which took so long;
 * and how many came too late for its update. */
static void follow_late(struct course *course, double step_s)
{
    struct course_sample *sample = &course->sample;
    uint32_t workers = course->whole_job->workers, begun = 0;
    uint32_t wanted = workers - course->whole_job->backup;
    for (uint32_t rank = 0; rank < workers; rank++) {
        bool has_begun = sample->behind_s[rank] < step_s;
        double behind_s = has_begun
                              ? course_delays_sum(&sample->drawn[rank]) - sample->latest[0].most_s
                              : sample->behind_s[rank] - step_s;
        sample->behind_s[rank] = behind_s > 0 ? behind_s : 0;
        begun += has_begun;
    }
    course->late += (uint64_t)(begun > wanted ? begun - wanted : 0) * course->shards;
}

/* By how much all are later than the first in a step, in sample->drawn. All of the sample ask for a
 * step before any asks for the next one. */
static const struct course_latest *find_on_time(struct course *course, uint64_t step)
{
    struct course_sample *sample = &course->sample;
    struct course_latest *found = &sample->latest[0];
    uint32_t workers = course->whole_job->workers, late = course->whole_job->backup;
    struct course_delays *sorted = sample->drawn + workers;
    double now = engine_now(course->engine);
    if (found->step == step + 1) {
        return found;
    }
    assert(found->step == step);
    if (step > 0) {
        follow_late(course, now - sample->began_s);
    }
    sample->began_s = now;
    draw_all(course, step, sample->drawn, found);
    for (uint32_t rank = 0; rank < workers; rank++) {
        sample->drawn[rank].spread_s += sample->behind_s[rank];
        sorted[rank] = sample->drawn[rank];
    }
    qsort(sorted, workers, sizeof(*sorted), is_longer);
    found->most_s = course_delays_sum(&sorted[late]);
    found->least_s = course_delays_sum(&sorted[late + sample->workers / COURSE_LATEST_SHARE]);
    return found;
}

/* The latest that is on time of those for which a worker stands, or the first of them. */
static struct course_delays draw_on_time(struct course *course, uint32_t index, uint64_t step)
{
    const struct course_latest *found = find_on_time(course, step);
    const struct course_sample *sample = &course->sample;
    const struct course_delays *own = NULL;
    for (uint32_t rank = index; rank < course->whole_job->workers; rank += sample->workers) {
        const struct course_delays *its = &sample->drawn[rank];
        bool is_later = own != NULL && course_delays_sum(its) >= found->least_s &&
                        course_delays_sum(its) > course_delays_sum(own);
        if (course_delays_sum(its) <= found->most_s && (own == NULL || is_later)) {
            own = its;
        }
    }
    return own != NULL ? *own : (struct course_delays){0, found->most_s};
}

/* The delays of all in a step, the longest first. */
static const struct course_delays *find_sorted(struct course *course, uint64_t step)
{
    struct course_sample *sample = &course->sample;
    uint32_t workers = course->whole_job->workers;
    struct course_delays *sorted = sample->drawn + step % 2 * workers;
    if (sample->latest[step % 2].step != step + 1) {
        draw_all(course, step, sorted, &sample->latest[step % 2]);
        qsort(sorted, workers, sizeof(*sorted), is_longer);
    }
    return sorted;
}

static struct course_delays draw_by_place(struct course *course, uint32_t index, uint64_t step)
{
    const struct course_delays own = course_delays_of(course, index, step);
    uint32_t all = course->whole_job->workers, all_late = course->whole_job->backup;
    uint32_t count = course->sample.workers, late = course->job->backup, place = 0;
    for (uint32_t other = 0; other < count; other++) {
        const struct course_delays its = course_delays_of(course, other, step);
        place += course_delays_sum(&its) > course_delays_sum(&own) ||
                 (course_delays_sum(&its) == course_delays_sum(&own) && other < index);
    }
    double whole_place =
        place < late ? (place + 0.5) * all_late / late
                     : all_late + (double)(place - late) * (all - all_late) / (count - late);
    return find_sorted(course, step)[(uint32_t)whole_place];
}

struct course_delays course_backup_draw(struct course *course, uint32_t index, uint64_t step,
                                        struct course_delays *ret_mean)
{
    bool has_late = course->job->backup > 0;
    const struct course_delays made =
        has_late ? draw_by_place(course, index, step) : draw_on_time(course, index, step);
    const struct course_latest *latest = &course->sample.latest[has_late ? step % 2 : 0];
    *ret_mean = (struct course_delays){latest->begin_mean_s, latest->spread_mean_s};
    return made;
}
