/* Figures of convergence: training loss and accuracy over steps and over seconds. */
#include "common/job/mode.h"
#include "deploy/page/figure_parts.h"
#include "deploy/page/figures.h"
#include "deploy/page/run_curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of all series of a figure together, and of one.
#define POINTS_MAX     60000
#define RUN_POINTS_MAX 400
#define RUN_POINTS_MIN 30

#define NOTE_BYTES 512

// Three times the loss of guessing one of ten: what has diverged is cut off there.
#define LOSS_SHOWN_MAX 6.9

struct course {
    const char *id, *what, *title, *x, *y;
    bool is_loss, is_seconds;
};

/* The points of a run: losses of the metrics, or accuracies (percent) of the evaluations. */
static enum status read_points(const struct course *course, const struct run_folder *run,
                               size_t most, struct curve_point **ret_points, size_t *ret_count)
{
    if (course->is_loss) {
        return run_curve_read(run, most, !course->is_seconds, ret_points, ret_count); // once
    }
    const json_t *epochs = run_folder_epochs(run), *epoch;
    struct curve_point *points = calloc(json_array_size(epochs) + 1, sizeof(*points));
    size_t count = 0, i;
    double seconds = 0;
    if (points == NULL) {
        return STATUS_NO_MEMORY;
    }
    json_array_foreach(epochs, i, epoch)
    {
        const json_t *accuracy = json_object_get(epoch, "test_accuracy");
        const json_t *step = json_object_get(epoch, "step");
        seconds += json_number_value(json_object_get(epoch, "seconds"));
        if (json_is_number(accuracy)) {
            points[count++] =
                (struct curve_point){json_is_number(step) ? json_number_value(step) : (double)i + 1,
                                     seconds, 100 * json_number_value(accuracy)};
        }
    }
    *ret_points = points;
    *ret_count = count;
    return STATUS_OK;
}

/* The runs of a group with their points. */
struct courses {
    struct curve_point *points[RUN_GROUP_RUNS_MAX]; // owned
    size_t counts[RUN_GROUP_RUNS_MAX];
    size_t count;
};

static double x_of(const struct course *course, const struct curve_point *point)
{
    return course->is_seconds ? point->seconds : point->step;
}

/* Marks where a run that was not completed has ended. */
static void add_end(const struct course *course, const struct run_folder *run,
                    const struct courses *courses, size_t index, json_t *series)
{
    char outcome[64];
    size_t count = courses->counts[index];
    if (run_folder_is_completed(run) || count == 0) {
        return;
    }
    const struct curve_point *last = &courses->points[index][count - 1];
    double y = course->is_loss ? fmin(last->loss, LOSS_SHOWN_MAX) : last->loss;
    run_folder_outcome(run, outcome, sizeof(outcome));
    json_array_append_new(json_object_get(series, "ends"),
                          json_pack("[f, f, s]", x_of(course, last), y, outcome));
}

/* The mean of the completed runs (of all, if none was) at each point that all of them have. */
static void add_means(const struct course *course, const struct run_group *group,
                      const struct courses *courses, json_t *series)
{
    double losses[RUN_GROUP_RUNS_MAX];
    size_t longest = 0;
    for (size_t i = 0; i < courses->count; i++) {
        longest = courses->counts[i] > longest ? courses->counts[i] : longest;
    }
    for (size_t k = 0; k < longest; k++) {
        size_t there = 0;
        double x = 0;
        for (size_t i = 0; i < courses->count; i++) {
            bool counts = group->completed == 0 || run_folder_is_completed(group->runs[i]);
            if (counts && k < courses->counts[i]) {
                losses[there++] = courses->points[i][k].loss;
                x += x_of(course, &courses->points[i][k]);
            }
        }
        if (there > 0) {
            struct statistics mean = statistics_of(losses, there);
            json_array_append_new(json_object_get(series, "points"),
                                  figure_mean(x / (double)there, &mean));
        }
    }
}

static void add_run(const struct course *course, const struct courses *courses, size_t index,
                    json_t *series)
{
    json_t *run = json_array();
    for (size_t k = 0; k < courses->counts[index]; k++) {
        const struct curve_point *point = &courses->points[index][k];
        json_array_append_new(run, figure_point(x_of(course, point), point->loss));
    }
    json_array_append_new(json_object_get(series, "runs"), run);
}

static void add_group(const struct course *course, const struct run_group *group, size_t most,
                      json_t *figure)
{
    struct courses courses = {.count = 0};
    json_t *series = figure_add_series(figure, group->label, group->stroke);
    for (size_t i = 0; i < group->count; i++) {
        if (read_points(course, group->runs[i], most, &courses.points[i], &courses.counts[i]) !=
            STATUS_OK) {
            break;
        }
        courses.count++;
    }
    add_means(course, group, &courses, series);
    for (size_t i = 0; i < courses.count; i++) {
        // Those that ended early would be in no mean.
        bool is_apart = group->completed > 0 && !run_folder_is_completed(group->runs[i]);
        if (group->count > 1 && (group->count <= RUNS_DRAWN_MAX || is_apart)) {
            add_run(course, &courses, i, series);
        }
        add_end(course, group->runs[i], &courses, i, series);
    }
    for (size_t i = 0; i < courses.count; i++) {
        free(courses.points[i]);
    }
}

/* "Test accuracy was measured once in each run, so there is no curve: ring 98.14 %; ..." where each
 * series has one point. */
static void describe(const struct course *course, const json_t *figure,
                     char ret_sentence[FIGURE_TEXT_BYTES])
{
    const json_t *series;
    size_t i, used = 0;
    json_array_foreach(json_object_get(figure, "series"), i, series)
    {
        const json_t *point = json_array_get(json_object_get(series, "points"), 0);
        char item[RUN_WORDS_BYTES + 64];
        snprintf(item, sizeof(item), course->is_loss ? "%s%s %.4f" : "%s%s %.2f %%",
                 used > 0 ? "; " : "", json_string_value(json_object_get(series, "name")),
                 json_number_value(json_array_get(point, 1)));
        if (json_is_array(point) && used + strlen(item) + 200 < FIGURE_TEXT_BYTES) {
            if (used == 0) {
                used = (size_t)snprintf(
                    ret_sentence, FIGURE_TEXT_BYTES,
                    "%s was measured once in each run, so there is no curve: ", course->what);
            }
            used += (size_t)snprintf(ret_sentence + used, FIGURE_TEXT_BYTES - used, "%s", item);
        }
    }
    if (used > 0) {
        snprintf(ret_sentence + used, FIGURE_TEXT_BYTES - used, ".");
    }
}

/* What is to be seen in the curves of these runs. */
static void write_note(const struct course *course, const struct run_groups *groups,
                       char ret_note[NOTE_BYTES])
{
    size_t synchronous = 0;
    bool has_seeds = false, has_ends = false;
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        synchronous += group->mode_rank <= MODE_PS_SYNC;
        has_seeds = has_seeds || group->completed > 1;
        has_ends = has_ends || group->completed < group->count;
    }
    const char *first = course->is_seconds ? groups->count > 1 ? " The faster design is ahead." : ""
                        : synchronous > 1  ? " Synchronous designs on the same seed lie on each "
                                             "other: they compute the same numbers."
                                           : "";
    snprintf(ret_note, NOTE_BYTES, "%s%s%s%s",
             course->is_loss      ? ""
             : course->is_seconds ? " Seconds of training: evaluations are not counted."
                                  : " On the whole test set.",
             course->is_loss ? first : "",
             course->is_loss && has_seeds
                 ? " Of several seeds: the mean, with its 95 % interval as a band; two or three "
                   "are drawn as well."
                 : "",
             course->is_loss && has_ends ? " A cross: there a run diverged or failed." : "");
    memmove(ret_note, ret_note + (ret_note[0] == ' '), strlen(ret_note) + (ret_note[0] != ' '));
}

static void make(const struct course *course, const struct run_groups *groups, json_t **ret_figure,
                 char ret_sentence[FIGURE_TEXT_BYTES])
{
    size_t most = groups->run_count > 0 ? POINTS_MAX / groups->run_count : 1;
    most = most > RUN_POINTS_MAX ? RUN_POINTS_MAX : most < RUN_POINTS_MIN ? RUN_POINTS_MIN : most;
    char note[NOTE_BYTES];
    write_note(course, groups, note);
    json_t *figure = figure_lines(course->id, course->title, course->x, course->y, note);
    for (size_t i = 0; i < groups->count; i++) {
        add_group(course, &groups->list[i], most, figure);
    }
    ret_sentence[0] = '\0';
    *ret_figure = NULL;
    if (figure_longest(figure) > 1) {
        figure_set_limits(figure, course->is_loss ? LOSS_SHOWN_MAX : 100);
        *ret_figure = figure;
        return;
    }
    if (!course->is_seconds) {
        describe(course, figure, ret_sentence);
    }
    json_decref(figure);
}

void figure_loss_steps(const struct run_groups *groups, json_t **ret_figure,
                       char ret_sentence[FIGURE_TEXT_BYTES])
{
    static const struct course course = {.id = "loss-steps",
                                         .what = "Training loss",
                                         .title = "Training loss over steps",
                                         .x = "step",
                                         .y = "training loss (nats)",
                                         .is_loss = true};
    make(&course, groups, ret_figure, ret_sentence);
}

void figure_loss_seconds(const struct run_groups *groups, json_t **ret_figure,
                         char ret_sentence[FIGURE_TEXT_BYTES])
{
    static const struct course course = {.id = "loss-seconds",
                                         .what = "Training loss",
                                         .title = "Training loss over seconds",
                                         .x = "seconds since training began",
                                         .y = "training loss (nats)",
                                         .is_loss = true,
                                         .is_seconds = true};
    make(&course, groups, ret_figure, ret_sentence);
}

void figure_accuracy_steps(const struct run_groups *groups, json_t **ret_figure,
                           char ret_sentence[FIGURE_TEXT_BYTES])
{
    static const struct course course = {.id = "accuracy-steps",
                                         .what = "Test accuracy",
                                         .title = "Test accuracy over steps",
                                         .x = "step",
                                         .y = "test accuracy (%)"};
    make(&course, groups, ret_figure, ret_sentence);
}

void figure_accuracy_seconds(const struct run_groups *groups, json_t **ret_figure,
                             char ret_sentence[FIGURE_TEXT_BYTES])
{
    static const struct course course = {.id = "accuracy-seconds",
                                         .what = "Test accuracy",
                                         .title = "Test accuracy over seconds",
                                         .x = "seconds of training",
                                         .y = "test accuracy (%)",
                                         .is_seconds = true};
    make(&course, groups, ret_figure, ret_sentence);
}
