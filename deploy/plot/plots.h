/* Plots of runs, by gnuplot. */
#ifndef DEPLOY_PLOT_PLOTS_H
#define DEPLOY_PLOT_PLOTS_H

#include "common/base/status.h"
#include "deploy/plot/gnuplot.h"
#include "deploy/report/run_groups.h"

extern const struct plot plots[]; // ends with a row whose name is NULL

/* Of each run of the groups. See gnuplot_write. */
enum status plots_write(const char *folder, const struct run_groups *groups);

#endif
