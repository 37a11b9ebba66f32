/* Plots of speed-up and efficiency over the number of workers, beside the ideal. */
#ifndef DEPLOY_PLOT_SCALING_PLOTS_H
#define DEPLOY_PLOT_SCALING_PLOTS_H

#include "deploy/plot/gnuplot.h"
#include "deploy/report/group_scaling.h"

#include <stdbool.h>
#include <stdio.h>

// Rows for a list of plots.
#define SCALING_PLOTS                          \
    {"speed-up", GROUP_SCALING_SPEED_UP},      \
    {                                          \
        "efficiency", GROUP_SCALING_EFFICIENCY \
    }

bool scaling_plots_has(const struct plot *plot); // whether it is one of the rows

/* The data blocks of a script, and the commands of one plot. Where there is no design, the
 * plots are to be left out. See gnuplot_script. */
void scaling_plots_write_data(FILE *script, const struct group_scaling *scaling);
void scaling_plots_write(FILE *script, const struct plot *plot,
                         const struct group_scaling *scaling);

#endif
