/* Figures of results: rates, times, staleness, scaling. */
#include "deploy/page/figure_parts.h"
#include "deploy/page/figures.h"
#include "deploy/report/group_scaling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of gradients: the few that are most stale would leave no room for the others.
#define SHARES_SHOWN 0.995

static json_t *add_bars(json_t *figure, const char *name)
{
    json_t *series = json_pack("{s:s, s:[], s:[]}", "name", name, "values", "halves");
    json_array_append_new(json_object_get(figure, "series"), series);
    return series;
}

static void add_bar(json_t *series, const struct statistics *value)
{
    json_array_append_new(json_object_get(series, "values"), json_real(value->mean));
    json_array_append_new(json_object_get(series, "halves"), json_real(value->half_width));
}

/* What the runs of a bar have: two or three are drawn beside their mean. */
static void add_bar_runs(json_t *series, const struct run_group *group, const char *key)
{
    json_t *values = json_array();
    bool is_drawn = group->completed > 1 && group->completed <= RUNS_DRAWN_MAX;
    for (size_t i = 0; i < group->count && is_drawn; i++) {
        if (run_folder_is_completed(group->runs[i])) {
            json_array_append_new(values, json_real(run_folder_number(group->runs[i], key)));
        }
    }
    json_array_append_new(json_object_get(series, "runs"), values);
}

static void add_name(json_t *figure, const struct run_group *group)
{
    json_array_append_new(json_object_get(figure, "names"), json_string(group->label));
    json_array_append_new(json_object_get(figure, "colours"),
                          json_integer((json_int_t)group->stroke.colour));
}

/* The figure, unless it has fewer bars than `least`. */
static void finish_bars(json_t *figure, size_t least, json_t **ret_figure,
                        char ret_sentence[FIGURE_TEXT_BYTES])
{
    ret_sentence[0] = '\0';
    *ret_figure = NULL;
    if (json_array_size(json_object_get(figure, "names")) >= least) {
        *ret_figure = figure;
    } else {
        json_decref(figure);
    }
}

void figure_rates(const struct run_groups *groups, json_t **ret_figure,
                  char ret_sentence[FIGURE_TEXT_BYTES])
{
    bool has_seeds = false;
    for (size_t i = 0; i < groups->count; i++) {
        has_seeds = has_seeds || groups->list[i].completed > 1;
    }
    json_t *figure = figure_bars(
        "images", "Throughput", "images per second",
        has_seeds ? "Of the whole job, warm-up excluded. Whiskers: 95 % intervals of the mean, "
                    "where there are several seeds; two or three runs are drawn as points."
                  : "Of the whole job, warm-up excluded.");
    json_t *series = add_bars(figure, "images per second");
    json_object_set_new(series, "runs", json_array());
    for (size_t i = 0; i < groups->count; i++) {
        if (groups->list[i].rate.count > 0) {
            add_name(figure, &groups->list[i]);
            add_bar(series, &groups->list[i].rate);
            add_bar_runs(series, &groups->list[i], "images_per_second");
        }
    }
    finish_bars(figure, 2, ret_figure, ret_sentence);
    if (*ret_figure == NULL && groups->count == 1 && groups->list[0].rate.count > 0) {
        snprintf(ret_sentence, FIGURE_TEXT_BYTES, "%s: %.0f images per second, warm-up excluded.",
                 groups->list[0].label, groups->list[0].rate.mean);
    }
}

void figure_times(const struct run_groups *groups, json_t **ret_figure,
                  char ret_sentence[FIGURE_TEXT_BYTES])
{
    json_t *figure =
        figure_bars("time", "Where the time of a step went", "milliseconds per step",
                    "Of a worker process, in the mean. What was exchanged while it computed is not "
                    "waited for, and does not count.");
    json_t *compute = add_bars(figure, "computing");
    json_t *exchange = add_bars(figure, "exchange wait");
    json_t *input = add_bars(figure, "input wait");
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        if (group->compute_ms.count > 0) {
            add_name(figure, group);
            add_bar(compute, &group->compute_ms);
            add_bar(exchange, &group->exchange_ms);
            add_bar(input, &group->input_ms);
        }
    }
    finish_bars(figure, 1, ret_figure, ret_sentence);
}

/* ==========================================================================================
 * Staleness
 * ========================================================================================== */

/* The mean share of gradients of each age; returns how many ages are shown. */
static size_t add_shares(const struct run_group *group, double *shares)
{
    size_t bins = 0;
    memset(shares, 0, SWEEP_STALENESS_BINS * sizeof(*shares));
    for (size_t i = 0; i < group->count; i++) {
        const json_t *histogram =
            json_object_get(json_object_get(group->runs[i]->summary, "staleness"), "histogram");
        const json_t *count;
        size_t k;
        double total = 0;
        json_array_foreach(histogram, k, count)
        {
            total += json_number_value(count);
        }
        json_array_foreach(histogram, k, count)
        {
            if (run_folder_is_completed(group->runs[i]) && total > 0 && k < SWEEP_STALENESS_BINS) {
                shares[k] += json_number_value(count) / total / (double)group->completed;
            }
        }
    }
    for (double sum = 0; bins < SWEEP_STALENESS_BINS && sum < SHARES_SHOWN; bins++) {
        sum += shares[bins];
    }
    return bins < SWEEP_STALENESS_BINS ? bins : 0;
}

void figure_staleness(const struct run_groups *groups, json_t **ret_figure,
                      char ret_sentence[FIGURE_TEXT_BYTES])
{
    static const char note[] =
        "The share of gradients that were so many updates old when they were applied. The most "
        "stale half of a percent is left out.";
    double shares[SWEEP_STALENESS_BINS];
    json_t *figure = figure_lines("staleness", "Staleness of gradients", "staleness (updates)",
                                  "share of gradients (%)", note);
    size_t used = 0;
    ret_sentence[0] = '\0';
    *ret_figure = NULL;
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        size_t bins = group->staleness.mean > 0 ? add_shares(group, shares) : 0;
        if (bins > 1 && shares[bins - 1] >= SHARES_SHOWN) {
            int size =
                snprintf(ret_sentence + used, FIGURE_TEXT_BYTES - used,
                         "With %s, gradients were %zu updates old. ", group->label, bins - 1);
            used = used + (size_t)size < FIGURE_TEXT_BYTES ? used + (size_t)size : used;
        } else if (bins > 1) {
            json_t *series = figure_add_series(figure, group->label, group->stroke);
            for (size_t k = 0; k < bins; k++) {
                json_array_append_new(json_object_get(series, "points"),
                                      figure_point((double)k, 100 * shares[k]));
            }
        }
    }
    if (figure_longest(figure) > 1) {
        figure_set_limits(figure, 100);
        *ret_figure = figure;
    } else {
        json_decref(figure);
    }
}

/* ==========================================================================================
 * Scaling
 * ========================================================================================== */

static void add_ideal(json_t *figure, unsigned most, bool is_efficiency)
{
    json_t *series = figure_add_series(figure, "ideal", (struct run_stroke){6, RUN_DASHES}),
           *points = json_object_get(series, "points");
    for (unsigned n = 1; n <= most; n += n < most ? most - 1 : 1) {
        json_array_append_new(points, figure_point(n, is_efficiency ? 100 : n));
    }
}

static void make_scaling(const struct run_groups *groups, bool is_efficiency, json_t **ret_figure)
{
    struct group_scaling scaling;
    *ret_figure = NULL;
    if (group_scaling_of(groups, &scaling) != STATUS_OK) {
        return;
    }
    if (scaling.count == 0) {
        group_scaling_finish(&scaling);
        return;
    }
    json_t *figure = is_efficiency ? figure_lines("efficiency", "Efficiency", "workers",
                                                  "efficiency (%)", GROUP_SCALING_EFFICIENCY)
                                   : figure_lines("speed-up", "Speed-up", "workers", "speed-up",
                                                  GROUP_SCALING_SPEED_UP);
    for (size_t i = 0; i < scaling.count; i++) {
        const struct scaling_design *design = &scaling.designs[i];
        json_t *series = figure_add_series(figure, design->name, scaling.strokes[i]);
        for (size_t k = 0; k < design->count; k++) {
            struct statistics value =
                is_efficiency ? design->points[k].efficiency : design->points[k].speed_up;
            value.mean *= is_efficiency ? 100 : 1;
            value.half_width *= is_efficiency ? 100 : 1;
            json_array_append_new(json_object_get(series, "points"),
                                  figure_mean(design->points[k].workers, &value));
        }
    }
    add_ideal(figure, scaling.workers_max, is_efficiency);
    figure_set_limits(figure, 1e9);
    json_object_set_new(figure, "y_min", json_real(0));
    *ret_figure = figure;
    group_scaling_finish(&scaling);
}

void figure_speed_up(const struct run_groups *groups, json_t **ret_figure,
                     char ret_sentence[FIGURE_TEXT_BYTES])
{
    ret_sentence[0] = '\0';
    make_scaling(groups, false, ret_figure);
}

void figure_efficiency(const struct run_groups *groups, json_t **ret_figure,
                       char ret_sentence[FIGURE_TEXT_BYTES])
{
    ret_sentence[0] = '\0';
    make_scaling(groups, true, ret_figure);
}
