/* Counts what a course takes, behind steps that do not count. */
#include "deploy/predict/course.h"

#include <math.h>
#include <stdlib.h>

static enum status step(struct course *course)
{
    double most = course->extent->memory_max;
    most = most > 0 ? most : PREDICTION_MEMORY_MAX;
    course->is_too_large = engine_bytes(course->engine) + course->held_bytes > most;
    return course->is_out_of_memory || course->is_too_large ? STATUS_NO_MEMORY
                                                            : engine_step(course->engine);
}

/* Until all workers have made so many steps and begin the next, or all servers so many updates; no
 * further than to a time. */
static enum status go_on(struct course *course, uint64_t steps, double end_s)
{
    enum status status = STATUS_OK;
    bool counts_updates = course_has_backup(course);
    const uint64_t *done = counts_updates ? &course->updates : &course->begun;
    uint64_t wanted = counts_updates ? steps / course->round_steps * course->shards
                                     : (steps + 1) * course->simulated;
    while (*done < wanted && status == STATUS_OK && engine_now(course->engine) <= end_s) {
        status = step(course);
    }
    return status;
}

/* Numbers that grow. */
static size_t count_size(const struct course *course)
{
    return course->network->link_count + 3 * (size_t)course->shards;
}

/* What went over links (network.link_count), how long threads of servers were busy (shards), how
 * long pushes have waited for them (shards), and how many these were (shards). */
static void read_counts(const struct course *course, double *ret_counts)
{
    uint32_t links = course->network->link_count, shards = course->shards;
    engine_link_bytes(course->engine, ret_counts);
    for (uint32_t k = 0; k < shards; k++) {
        const struct engine_usage usage = engine_usage(course->engine, course->job->workers + k);
        ret_counts[links + k] = usage.busy_s;
        ret_counts[links + shards + k] = usage.waited_s;
        ret_counts[links + 2 * shards + k] = (double)usage.taken;
    }
}

/* The link of the whole network that a simulated one stands for. */
static uint32_t origin_of(const struct course *course, uint32_t link)
{
    return course->network != course->whole ? course->reduction.origins[link] : link;
}

/* The busiest link and server of a time. */
static void find_busiest(const struct course *course, const double *before, const double *after,
                         double seconds, struct prediction *made)
{
    uint32_t links = course->network->link_count;
    bool is_reduced = course->network != course->whole;
    made->busiest_link = NETWORK_NONE;
    for (uint32_t i = 0; i < links && seconds > 0; i++) {
        uint32_t link = origin_of(course, i);
        double bandwidth = network_free(&course->whole->links[link]);
        double bytes = (after[i] - before[i]) * (is_reduced ? course->reduction.scales[i] : 1);
        if (bandwidth > 0 && bytes / bandwidth / seconds > made->busiest_use) {
            made->busiest_use = bytes / bandwidth / seconds;
            made->busiest_link = link;
            made->busiest_bytes = bytes;
        }
    }
    for (uint32_t k = 0; k < course->shards && seconds > 0; k++) {
        uint32_t waited = links + course->shards + k, taken = waited + course->shards;
        double busy = (after[links + k] - before[links + k]) / seconds;
        if (busy > made->server_busy && after[taken] > before[taken]) {
            made->server_busy = busy;
            made->server_wait_s = (after[waited] - before[waited]) / (after[taken] - before[taken]);
        }
    }
}

/* The links of a simulated process's host are known, also if nothing goes over them. */
static void know_host(const struct course *course, uint32_t process, double *bytes)
{
    const struct network_host *host = &course->network->hosts[course->hosts[process]];
    bytes[origin_of(course, host->up)] = bytes[origin_of(course, host->down)] =
        bytes[origin_of(course, host->memory)] = 0;
}

/* Keeps the bytes of a step for each link of the whole network. Several links of a job in small may
 * stand for the same one. */
static void keep_links(const struct course *course, const double *before, const double *after,
                       uint32_t counted)
{
    double *bytes = course->extent->link_bytes;
    bool is_reduced = course->network != course->whole;
    for (uint32_t i = 0; i < course->whole->link_count; i++) {
        bytes[i] = is_reduced ? (double)NAN : 0;
    }
    for (uint32_t w = 0; w < course->simulated && is_reduced; w++) {
        know_host(course, w, bytes);
    }
    for (uint32_t k = 0; k < course->shards && is_reduced; k++) {
        know_host(course, course->job->workers + k, bytes);
    }
    for (uint32_t i = 0; i < course->network->link_count; i++) {
        double own = (after[i] - before[i]) / counted;
        if (own > 0) {
            double *all = &bytes[origin_of(course, i)];
            *all = (isnan(*all) ? 0 : *all) + own * (is_reduced ? course->reduction.scales[i] : 1);
        }
    }
}

/* Gradients that one of a sample stands for, of those that come too late. */
static double late_each(const struct course *course)
{
    uint32_t own = course->job->backup;
    return own > 0 ? (double)course->whole_job->backup / own : 1;
}

/* When steps have taken longer than they may; that much more is rounding. */
static double end_of(const struct prediction_extent *extent, double began_s, uint32_t counted)
{
    return extent->step_s_max > 0 ? began_s + extent->step_s_max * counted * (1 + 1e-9)
                                  : (double)INFINITY;
}

static enum status count_steps(struct course *course, uint32_t warm, uint32_t counted,
                               double *counts, struct prediction *ret_prediction)
{
    uint32_t images = course->whole_job->workers - course->whole_job->backup;
    for (uint32_t w = 0; w < course->simulated; w++) {
        course_begin_step(course, w);
    }
    enum status status = go_on(course, warm, (double)INFINITY);
    if (status != STATUS_OK) {
        return status;
    }
    const struct course then = *course;
    course->staleness = (struct staleness){.total = 0};
    course->lead_max = 0;
    double began_s = engine_now(course->engine);
    read_counts(course, counts);
    status = go_on(course, (uint64_t)warm + counted, end_of(course->extent, began_s, counted));
    if (status != STATUS_OK) {
        return status;
    }
    read_counts(course, counts + count_size(course));
    double seconds = engine_now(course->engine) - began_s,
           steps = (double)course->simulated * counted;
    struct prediction made = {
        .step_s = seconds / counted,
        .compute_s = (course->compute_s - then.compute_s) / steps,
        .delay_s = (course->delay_s - then.delay_s) / steps,
        .optimizer_s = (course->optimizer_s - then.optimizer_s) / steps,
        .staleness = course->staleness,
        .lead_max = course->lead_max,
        .is_reduced = course->network != course->whole,
        .reduction_error = course->estimate.is_reduced ? course->estimate.reduction_error : 0,
        .simulated = course->simulated,
        .simulated_servers = course->shards};
    made.wait_s = made.step_s - made.compute_s - made.delay_s - made.optimizer_s;
    made.wait_s = made.wait_s > 0 ? made.wait_s : 0;
    if (made.step_s > 0) {
        made.images_per_s = (double)images * course->costs->batch / made.step_s;
    }
    if (!mode_updates_on_push(course->job->mode.kind)) {
        staleness_add_many(&made.staleness, 0, (uint64_t)images * counted / course->round_steps);
    }
    if (course->late > then.late) {
        double late = (double)(course->late - then.late) * late_each(course);
        made.late = late / (late + (double)images * (double)(course->updates - then.updates));
    }
    find_busiest(course, counts, counts + count_size(course), seconds, &made);
    made.busiest_bytes /= counted;
    if (course->extent->link_bytes != NULL) {
        keep_links(course, counts, counts + count_size(course), counted);
    }
    *ret_prediction = made;
    return STATUS_OK;
}

static uint32_t whole_rounds(uint32_t steps, uint32_t round_steps)
{
    return (steps + round_steps - 1) / round_steps * round_steps;
}

enum status course_measure(struct course *course, struct prediction *ret_prediction)
{
    uint32_t warm = whole_rounds(course->extent->warm, course->round_steps);
    uint32_t counted = whole_rounds(course->extent->counted, course->round_steps);
    double *counts = calloc(2 * count_size(course), sizeof(*counts));
    enum status status = counts != NULL ? count_steps(course, warm, counted, counts, ret_prediction)
                                        : STATUS_NO_MEMORY;
    free(counts);
    return status;
}
