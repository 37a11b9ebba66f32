/* The figures of a report as data that page.js draws.
 *
 * Lines: {id, kind: "lines", title, note, x, y (labels of the axes), x_min, x_max, perhaps y_min,
 * y_max (of what is drawn) or y_low, y_high (of bands), perhaps x_is_log (an axis by factors),
 * series: [{name, colour, dash, points: [[x, y] or [x, mean, low, high]], runs: [[[x, y]]], ends:
 * [[x, y, why]]}]}. Bars: {id, kind: "bars", title, note, y, names, colours, series: [{name,
 * values, halves, perhaps runs (for each bar, the values of its runs)}]}: several series are
 * stacked. */
#ifndef DEPLOY_PAGE_FIGURES_H
#define DEPLOY_PAGE_FIGURES_H

#include "deploy/report/run_groups.h"

#include <jansson.h>

#include <stddef.h>

#define FIGURE_TEXT_BYTES 2048

/* Writes a figure, or a sentence in its place where there would be one point: then *ret_figure is
 * NULL and the sentence is not empty. Both empty: there is nothing to say. The caller has the
 * reference. */
typedef void figure_maker(const struct run_groups *groups, json_t **ret_figure,
                          char ret_sentence[FIGURE_TEXT_BYTES]);

figure_maker figure_loss_steps, figure_loss_seconds, figure_accuracy_steps,
    figure_accuracy_seconds; // convergence
figure_maker figure_rates, figure_times, figure_staleness;
figure_maker figure_speed_up, figure_efficiency;
figure_maker figure_faults; // where a run has any

#endif
