/* How far the axes of a sweep's plots go, and where their tics are. */
#ifndef DEPLOY_PLOT_SWEEP_AXES_H
#define DEPLOY_PLOT_SWEEP_AXES_H

#include "deploy/report/sweep_settings.h"

/* A distance between tics of which about four fit: 1, 2 or 5 times a power of ten. x is 1 for
 * steps, otherwise of seconds. */
double sweep_axes_tics(const struct sweep_settings *settings, int x);

/* How far an axis of images per second goes at most: intervals of two runs may be much wider than
 * all runs. */
double sweep_axes_highest_rate(const struct sweep_settings *settings);

#endif
