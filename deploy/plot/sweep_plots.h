/* Plots of a sweep: curves with their intervals, what staleness costs, how stale gradients were. */
#ifndef DEPLOY_PLOT_SWEEP_PLOTS_H
#define DEPLOY_PLOT_SWEEP_PLOTS_H

#include "common/base/status.h"
#include "deploy/plot/gnuplot.h"
#include "deploy/report/run_groups.h"
#include "deploy/report/sweep_settings.h"

extern const struct plot sweep_plots[]; // ends with a row whose name is NULL

/* Those that the sweep has something for; the groups are those of the same runs. See
 * gnuplot_write. */
enum status sweep_plots_write(const char *folder, const struct sweep_settings *settings,
                              const struct run_groups *groups);

#endif
