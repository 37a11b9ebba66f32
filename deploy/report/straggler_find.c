/* Finds the slowest worker by its mean times in metrics.jsonl. */
#include "deploy/report/straggler_find.h"

#include "deploy/report/metrics_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX   4096
#define RATIO_LEAST (4.0 / 3)

/* Sums over lines. In a long job, later lines cover more steps. */
struct rank_time {
    double compute_ms, steps;
};

/* Sums of every rank. How many ranks there are, or more. */
static size_t read_times(const struct run_folder *run, struct rank_time *times)
{
    struct metrics_file metrics;
    size_t ranks = 0;
    metrics_file_open(run, &metrics);
    for (json_t *entry; (entry = metrics_file_next(&metrics)) != NULL;) {
        json_int_t rank = json_integer_value(json_object_get(entry, "rank"));
        const json_t *compute = json_object_get(json_object_get(entry, "ms"), "compute");
        double steps = json_number_value(json_object_get(entry, "steps"));
        if (json_is_number(compute) && rank >= 0 && rank < RANKS_MAX) {
            times[rank].compute_ms += json_number_value(compute) * steps;
            times[rank].steps += steps;
            ranks = (size_t)rank + 1 > ranks ? (size_t)rank + 1 : ranks;
        }
        json_decref(entry);
    }
    metrics_file_close(&metrics);
    return ranks;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static bool is_uneven(json_int_t ranks, json_int_t processes)
{
    return processes > 0 && ranks % processes != 0;
}

/* Whether some process carried more ranks than another one, from the beginning or after a loss: it
 * computes longer, and is not slow. */
static bool was_dealt_unevenly(const struct run_folder *run)
{
    const json_t *options = json_object_get(run->job, "options"), *recovery;
    json_int_t ranks = json_integer_value(json_object_get(options, "workers"));
    bool is_found = is_uneven(ranks, json_integer_value(json_object_get(options, "processes")));
    size_t i;
    json_array_foreach(json_object_get(run->details, "recoveries"), i, recovery)
    {
        json_int_t carried = json_integer_value(json_object_get(recovery, "ranks"));
        is_found = is_found ||
                   is_uneven(carried, json_integer_value(json_object_get(recovery, "processes")));
    }
    return is_found;
}

bool straggler_find(const struct run_folder *run, struct straggler_found *ret_found)
{
    if (was_dealt_unevenly(run)) {
        return false;
    }
    struct rank_time *times = calloc(RANKS_MAX, sizeof(*times));
    double *others = calloc(RANKS_MAX, sizeof(*others));
    bool is_found = false;
    if (times != NULL && others != NULL) {
        size_t ranks = read_times(run, times), slowest = 0, count = 0;
        bool is_enough = true;
        for (size_t i = 0; i < ranks; i++) {
            is_enough = is_enough && times[i].steps >= STRAGGLER_STEPS_MIN;
            times[i].compute_ms /= times[i].steps > 0 ? times[i].steps : 1;
            slowest = times[i].compute_ms > times[slowest].compute_ms ? i : slowest;
        }
        for (size_t i = 0; i < ranks; i++) {
            if (i != slowest && times[i].steps > 0) {
                others[count++] = times[i].compute_ms;
            }
        }
        qsort(others, count, sizeof(*others), compare);
        double median = count > 0 ? (others[count / 2] + others[(count - 1) / 2]) / 2 : 0;
        is_found = is_enough && median > 0 && times[slowest].compute_ms >= RATIO_LEAST * median;
        if (is_found) {
            ret_found->rank = (uint32_t)slowest;
            ret_found->ratio = times[slowest].compute_ms / median;
        }
    }
    free(times);
    free(others);
    return is_found;
}
