/* Averages the curves of several runs, epoch by epoch. */
#include "deploy/report/sweep_curves.h"

#include <stdbool.h>
#include <stdlib.h>

static const json_t *epoch_at(const struct run_folder *run, size_t index)
{
    return json_array_get(run_folder_epochs(run), index);
}

/* Seconds of training until the end of an epoch. */
static double seconds_until(const struct run_folder *run, size_t index)
{
    double seconds = 0;
    for (size_t i = 0; i <= index; i++) {
        seconds += json_number_value(json_object_get(epoch_at(run, i), "seconds"));
    }
    return seconds;
}

/* Whether a run has ended because it had reached its target. */
static bool has_reached(const struct run_folder *run)
{
    return json_is_number(json_object_get(json_object_get(run->details, "target"), "steps"));
}

static struct sweep_point point_at(const struct run_folder *const *runs, size_t count, size_t index)
{
    double seconds[SWEEP_REPEAT_MAX], losses[SWEEP_REPEAT_MAX], accuracies[SWEEP_REPEAT_MAX];
    struct sweep_point point = {.step = (double)(index + 1)};
    size_t running = 0, there = 0, evaluated = 0;
    for (size_t i = 0; i < count; i++) {
        size_t epochs = json_array_size(run_folder_epochs(runs[i]));
        bool is_running = index < epochs;
        if (!is_running && (epochs == 0 || !has_reached(runs[i]))) {
            continue;
        }
        const json_t *epoch = epoch_at(runs[i], is_running ? index : epochs - 1);
        const json_t *accuracy = json_object_get(epoch, "test_accuracy");
        if (is_running) {
            point.step = json_number_value(json_object_get(epoch, "step"));
            seconds[running++] = seconds_until(runs[i], index);
        }
        losses[there++] = json_number_value(json_object_get(epoch, "train_loss"));
        if (json_is_number(accuracy)) {
            accuracies[evaluated++] = 100 * json_number_value(accuracy);
        }
    }
    point.seconds = statistics_of(seconds, running);
    point.train_loss = statistics_of(losses, there);
    point.accuracy = statistics_of(accuracies, evaluated);
    return point;
}

enum status sweep_curve_of(const struct run_folder *const *runs, size_t count,
                           struct sweep_point **ret_points, size_t *ret_count)
{
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t epochs = json_array_size(run_folder_epochs(runs[i]));
        longest = epochs > longest ? epochs : longest;
    }
    struct sweep_point *points = calloc(longest + 1, sizeof(*points));
    if (points == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < longest; i++) {
        points[i] = point_at(runs, count, i);
    }
    *ret_points = points;
    *ret_count = longest;
    return STATUS_OK;
}
