/* Reduces a job that has too much to simulate: makes its network, and the workers that stand for
 * all. */
#include "deploy/predict/course.h"
#include "deploy/predict/sample.h"
#include "deploy/predict/sample_direct.h"

#include <stdlib.h>

/* Messages of a worker to all servers cost it as many, also where one server stands for them. */
static enum status reduce_servers(struct course *course)
{
    uint32_t workers = course->job->workers;
    if (course_reduction_kind(course) == REDUCTION_SYNC) {
        course->shards = 1;
    }
    for (uint32_t w = 0; w < workers; w++) {
        course->message_scale[w] *= (double)course->parts / course->shards;
    }
    return reduction_of_servers(course->whole, workers, course->parts, course->shards,
                                course->hosts, &course->reduction);
}

/* One worker's chunks are all alike, so that they are those of the others, too. */
static enum status reduce_ring(struct course *course)
{
    uint32_t workers = course->job->workers;
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        struct span *bucket = &course->layout.buckets[b];
        bucket->count = (bucket->count + workers - 1) / workers * workers;
    }
    course->simulated = 1;
    return reduction_of_ring(course->whole, workers, course->hosts, &course->reduction);
}

/* A bucket has the chunks of those that are simulated. */
static enum status sample_of_ring(struct course *course)
{
    uint32_t workers = course->whole_job->workers, count = course->sample.workers;
    course->sample.hops_each = (double)(workers - 1) / (count - 1);
    course->sample.values_each = course->sample.workers_each;
    course->layout.value_count = 0;
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        struct span *bucket = &course->layout.buckets[b];
        bucket->count = (bucket->count + workers - 1) / workers * count;
        course->layout.value_count += bucket->count;
    }
    if (course_is_direct(course)) {
        return sample_direct(course->whole, workers, course->hosts, count,
                             &course->sample.direct_each, &course->reduction);
    }
    for (uint32_t w = 0; w < count; w++) {
        course->message_scale[w] = course->work_scale[w] = course->sample.hops_each;
    }
    return sample_ring(course->whole, workers, course->hosts, count, &course->reduction);
}

/* All hops are there, as they are. Only chunks are all alike. */
static enum status sample_of_halving(struct course *course)
{
    uint32_t workers = course->whole_job->workers;
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        struct span *bucket = &course->layout.buckets[b];
        bucket->count = (bucket->count + workers - 1) / workers * workers;
    }
    course->job = course->whole_job;
    return sample_halving(course->whole, &course->reduction);
}

static enum status sample_of_servers(struct course *course)
{
    uint32_t workers = course->whole_job->workers, count = course->sample.workers;
    enum status status = sample_servers(course->whole, workers, course->parts, count, course->hosts,
                                        &course->reduction);
    for (uint32_t k = 0; k < course->parts; k++) {
        course->hosts[count + k] = course->hosts[workers + k];
        course->message_scale[count + k] = course->work_scale[count + k] =
            course->sample.workers_each;
    }
    return status;
}

static bool allocate_delays(struct course *course)
{
    struct course_sample *sample = &course->sample;
    size_t workers = course->whole_job->workers;
    sample->delays = calloc(workers, sizeof(*sample->delays));
    sample->drawn = calloc(2 * workers, sizeof(*sample->drawn));
    sample->behind_s = calloc(workers, sizeof(*sample->behind_s));
    return sample->delays != NULL && sample->drawn != NULL && sample->behind_s != NULL;
}

static enum status take_sample(struct course *course)
{
    struct course_sample *sample = &course->sample;
    sample->workers = course->estimate.sample;
    sample->workers_each = (double)course->whole_job->workers / sample->workers;
    sample->job = *course->whole_job;
    sample->job.workers = course->simulated = sample->workers;
    sample->job.backup = course->estimate.sample_backup;
    course->job = &sample->job;
    clocks_finish(&course->clocks);
    if (!clocks_init(&course->clocks, sample->workers) || !allocate_delays(course)) {
        return STATUS_NO_MEMORY;
    }
    sample_place(course->whole, course->whole_job->workers, sample->workers, course->hosts);
    return course->parts > 0                                    ? sample_of_servers(course)
           : course_reduction_kind(course) == REDUCTION_HALVING ? sample_of_halving(course)
                                                                : sample_of_ring(course);
}

enum status course_reduce(struct course *course)
{
    enum status status = course->estimate.sample > 0 ? take_sample(course)
                         : course->parts > 0         ? reduce_servers(course)
                                                     : reduce_ring(course);
    course->network = &course->reduction.network;
    return status;
}
