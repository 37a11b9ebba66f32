/* Pieces that figures are made of. */
#ifndef DEPLOY_PAGE_FIGURE_PARTS_H
#define DEPLOY_PAGE_FIGURE_PARTS_H

#include "deploy/report/run_groups.h"
#include "deploy/report/statistics.h"

#include <jansson.h>

#include <stddef.h>

/* Lines; the axes' limits are set by figure_set_limits. */
json_t *figure_lines(const char *id, const char *title, const char *x, const char *y,
                     const char *note);

/* Bars without series. */
json_t *figure_bars(const char *id, const char *title, const char *y, const char *note);

/* Adds a series to lines. Borrowed from the figure. */
json_t *figure_add_series(json_t *figure, const char *name, struct run_stroke stroke);

/* [x, y] */
json_t *figure_point(double x, double y);

/* [x, mean, low, high], or [x, mean] where there is no interval. Nothing that is drawn is below 0.
 */
json_t *figure_mean(double x, const struct statistics *value);

/* Sets x_min and x_max by the points, and y_min and y_max where a point is above `most`: what has
 * grown beyond it is cut off. Otherwise sets y_low and y_high, beyond which bands are cut off. */
void figure_set_limits(json_t *figure, double most);

/* The number of points of the longest series. */
size_t figure_longest(const json_t *figure);

#endif
