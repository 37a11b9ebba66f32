/* All-reduces in the memory of one host, as worker/exchange/shared has them: a bucket that all
 * workers have is cut into blocks, by the product's block_plan. Each worker that has nothing else
 * to do takes one after the other, on the thread that computes: it adds up the vectors of all, and
 * writes the mean into those of the others. It looks for blocks when it hands a bucket over, and at
 * the end of its step, where it makes its updates.
 *
 * News reach a worker that waits after the latency of the host's memory. */
#include "deploy/predict/course.h"
#include "worker/exchange/shared/block_plan.h"

#include <stdlib.h>

enum { TAG_ADDED, TAG_WRITTEN, TAG_UPDATED, TAG_NEWS };

/* They only grow, through all rounds. */
struct counters {
    uint64_t arrived, taken, finished; // workers, blocks, blocks
};

struct helper {         // a worker
    uint64_t *rounds;   // (buckets) how often it has arrived; owned
    uint32_t handed;    // the last bucket that it has handed over
    uint32_t awaited;   // at the end of a step: the first bucket that is not updated yet
    uint32_t works_on;  // the bucket of its block
    uint64_t block;     // how many it has taken of that bucket before, all of them
    bool is_ending;     // its backward is over
    bool sleeps, hears; // there was nothing to do; news are on their way
};

struct memory {
    struct counters *counters; // (buckets)
    struct helper *helpers;    // (workers)
};

static struct helper *helper_of(struct course *course, uint32_t worker)
{
    return &((struct memory *)course->exchange)->helpers[worker];
}

static struct counters *counters_of(struct course *course, uint32_t bucket)
{
    return &((struct memory *)course->exchange)->counters[bucket];
}

static uint32_t blocks_of(const struct course *course, uint32_t bucket)
{
    return block_plan_count(course->layout.buckets[bucket].count);
}

/* Whoever waits looks again when the news are there. */
static void tell_all(struct course *course)
{
    double latency_s = course->network->hosts[course->hosts[0]].memory_latency_s;
    for (uint32_t w = 0; w < course->job->workers; w++) {
        struct helper *helper = helper_of(course, w);
        if (helper->sleeps && !helper->hears) {
            helper->hears = true;
            engine_wake_after(course->engine, latency_s, w, course_tag(course, TAG_NEWS));
        }
    }
}

/* Whether all have arrived in the worker's round, and a block is left. */
static bool has_block(struct course *course, uint32_t worker, uint32_t bucket)
{
    const struct counters *counters = counters_of(course, bucket);
    uint64_t round = helper_of(course, worker)->rounds[bucket];
    return counters->arrived == round * course->job->workers &&
           counters->taken < round * blocks_of(course, bucket);
}

static uint64_t block_floats(const struct course *course, const struct helper *helper)
{
    uint64_t floats = course->layout.buckets[helper->works_on].count;
    uint64_t most = block_plan_floats(floats);
    uint64_t start = helper->block % blocks_of(course, helper->works_on) * most;
    return floats - start < most ? floats - start : most;
}

static double bytes_of_others(const struct course *course, const struct helper *helper)
{
    return 4.0 * (double)block_floats(course, helper) * (course->job->workers - 1);
}

static void take_block(struct course *course, uint32_t worker, uint32_t bucket)
{
    struct helper *helper = helper_of(course, worker);
    double bandwidth = course->costs->sum_bandwidth;
    helper->works_on = bucket;
    helper->block = counters_of(course, bucket)->taken++;
    engine_run(course->engine, CORES_COMPUTE,
               bandwidth > 0 ? bytes_of_others(course, helper) / bandwidth : 0, worker,
               course_tag(course, TAG_ADDED));
}

/* The mean goes to the vectors of the others: as a flow, or, where threads share cores, as work of
 * the one that writes, which crowding slows down. */
static void write_mean(struct course *course, uint32_t worker)
{
    const struct helper *helper = helper_of(course, worker);
    const struct network_host *host = &course->network->hosts[course->hosts[worker]];
    if (engine_shares_cores(course->engine, worker)) {
        double bandwidth = course->network->links[host->memory].bandwidth;
        engine_run(course->engine, CORES_COMPUTE,
                   bandwidth > 0 ? bytes_of_others(course, helper) / bandwidth : 0, worker,
                   course_tag(course, TAG_WRITTEN));
        return;
    }
    const struct packet packet = {.from = worker,
                                  .to = (worker + 1) % course->job->workers,
                                  .bytes = bytes_of_others(course, helper),
                                  .bucket = helper->works_on};
    engine_move(course->engine, &packet);
}

/* What a worker does at the end of its step: nothing, until the next bucket has its mean. */
static void end_step(struct course *course, uint32_t worker)
{
    struct helper *helper = helper_of(course, worker);
    uint32_t bucket = helper->awaited;
    if (bucket == course->layout.bucket_count) {
        helper->is_ending = false;
        course_end_step(course, worker);
        return;
    }
    helper->sleeps =
        counters_of(course, bucket)->finished < helper->rounds[bucket] * blocks_of(course, bucket);
    if (!helper->sleeps) {
        double update_s = course_update_s(course, bucket);
        course->optimizer_s += update_s;
        helper->awaited++;
        engine_run(course->engine, CORES_COMPUTE, update_s, worker,
                   course_tag(course, TAG_UPDATED));
    }
}

/* Takes a block, or goes on with the step. */
static void help(struct course *course, uint32_t worker)
{
    struct helper *helper = helper_of(course, worker);
    for (uint32_t b = helper->is_ending ? helper->awaited : 0; b <= helper->handed; b++) {
        if (has_block(course, worker, b)) {
            take_block(course, worker, b);
            return;
        }
    }
    if (helper->is_ending) {
        end_step(course, worker);
    } else {
        course_go_on(course, worker, helper->handed);
    }
}

static void memory_ready(struct course *course, uint32_t worker, uint32_t bucket)
{
    struct helper *helper = helper_of(course, worker);
    struct counters *counters = counters_of(course, bucket);
    helper->handed = bucket;
    helper->rounds[bucket]++;
    helper->awaited = 0;
    helper->is_ending = bucket + 1 == course->layout.bucket_count;
    bool is_last = ++counters->arrived == helper->rounds[bucket] * course->job->workers;
    if (is_last && blocks_of(course, bucket) == 1) {
        take_block(course, worker, bucket); // nobody else could do any of it
        return;
    }
    if (is_last) {
        tell_all(course);
    }
    help(course, worker);
}

/* The worker's block is done. */
static void finish_block(struct course *course, uint32_t worker)
{
    struct helper *helper = helper_of(course, worker);
    struct counters *counters = counters_of(course, helper->works_on);
    if (++counters->finished ==
        helper->rounds[helper->works_on] * blocks_of(course, helper->works_on)) {
        tell_all(course);
    }
    help(course, worker);
}

static void memory_wake(struct course *course, uint32_t worker, uint32_t tag)
{
    struct helper *helper = helper_of(course, worker);
    if (tag == TAG_ADDED) {
        write_mean(course, worker);
    } else if (tag == TAG_WRITTEN) {
        finish_block(course, worker);
    } else if (tag == TAG_UPDATED) {
        help(course, worker);
    } else {
        helper->hears = false;
        if (helper->sleeps) {
            helper->sleeps = false;
            help(course, worker);
        }
    }
}

static double memory_work_s(void *owner, const struct packet *packet)
{
    (void)owner;
    (void)packet;
    return 0;
}

static void memory_deliver(void *owner, const struct packet *packet)
{
    finish_block(owner, packet->from);
}

static void memory_destroy(struct course *course)
{
    struct memory *memory = course->exchange;
    for (uint32_t w = 0; memory != NULL && memory->helpers != NULL && w < course->job->workers;
         w++) {
        free(memory->helpers[w].rounds);
    }
    if (memory != NULL) {
        free(memory->helpers);
        free(memory->counters);
    }
    free(memory);
}

static enum status memory_create(struct course *course)
{
    struct memory *memory = calloc(1, sizeof(*memory));
    course->exchange = memory;
    if (memory == NULL) {
        return STATUS_NO_MEMORY;
    }
    memory->counters = calloc(course->layout.bucket_count, sizeof(*memory->counters));
    memory->helpers = calloc(course->job->workers, sizeof(*memory->helpers));
    if (memory->counters == NULL || memory->helpers == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t w = 0; w < course->job->workers; w++) {
        memory->helpers[w].rounds = calloc(course->layout.bucket_count, sizeof(uint64_t));
        if (memory->helpers[w].rounds == NULL) {
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

const struct course_exchange course_in_memory = {.keeps_thread = true,
                                                 .create = memory_create,
                                                 .destroy = memory_destroy,
                                                 .ready = memory_ready,
                                                 .work_s = memory_work_s,
                                                 .deliver = memory_deliver,
                                                 .wake = memory_wake};
