/* Reads metrics.jsonl. */
#include "deploy/page/run_curve.h"

#include "deploy/report/metrics_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lines {
    struct curve_point *list; // owned
    size_t count, room;
};

static enum status add(struct lines *lines, const json_t *line)
{
    const json_t *loss = json_object_get(line, "loss"), *step = json_object_get(line, "step");
    if (!json_is_number(loss) || !json_is_number(step) || !isfinite(json_number_value(loss))) {
        return STATUS_OK;
    }
    if (lines->count == lines->room) {
        size_t room = 2 * lines->room + 64;
        struct curve_point *list = realloc(lines->list, room * sizeof(*list));
        if (list == NULL) {
            return STATUS_NO_MEMORY;
        }
        lines->list = list;
        lines->room = room;
    }
    lines->list[lines->count++] = (struct curve_point){
        json_number_value(step), json_number_value(json_object_get(line, "seconds")),
        json_number_value(loss)};
    return STATUS_OK;
}

static int compare(const void *a, const void *b)
{
    const struct curve_point *left = a, *right = b;
    return (left->step > right->step) - (left->step < right->step);
}

static struct curve_point mean_of(const struct curve_point *points, size_t count)
{
    struct curve_point mean = {0, 0, 0};
    for (size_t i = 0; i < count; i++) {
        mean.step += points[i].step / (double)count;
        mean.seconds += points[i].seconds / (double)count;
        mean.loss += points[i].loss / (double)count;
    }
    return mean;
}

/* Joins the ranks of each step, then as many neighbours as it takes. */
static void condense(struct lines *lines, size_t most)
{
    size_t steps = 0;
    for (size_t begin = 0, end; begin < lines->count; begin = end) {
        end = begin + 1;
        while (end < lines->count && compare(&lines->list[begin], &lines->list[end]) == 0) {
            end++;
        }
        lines->list[steps++] = mean_of(lines->list + begin, end - begin);
    }
    size_t each = most > 0 ? (steps + most - 1) / most : 1, kept = 0;
    for (size_t begin = 0; begin < steps; begin += each) {
        size_t count = steps - begin < each ? steps - begin : each;
        lines->list[kept++] = mean_of(lines->list + begin, count);
    }
    lines->count = kept;
}

enum status run_curve_read(const struct run_folder *run, size_t most, bool says_damage,
                           struct curve_point **ret_points, size_t *ret_count)
{
    struct metrics_file metrics;
    struct lines lines = {NULL, 0, 0};
    enum status status = STATUS_OK;
    metrics_file_open(run, &metrics);
    for (json_t *line; status == STATUS_OK && (line = metrics_file_next(&metrics)) != NULL;) {
        status = add(&lines, line);
        json_decref(line);
    }
    if (says_damage) {
        damaged_lines_warn(&metrics.damaged, metrics.path);
    }
    metrics_file_close(&metrics);
    if (status != STATUS_OK) {
        free(lines.list);
        return status;
    }
    if (lines.count > 0) {
        qsort(lines.list, lines.count, sizeof(*lines.list), compare);
        condense(&lines, most);
    }
    *ret_points = lines.list;
    *ret_count = lines.count;
    return STATUS_OK;
}
