/* Plots of runs, by gnuplot. */
#ifndef DEPLOY_PLOTS_H
#define DEPLOY_PLOTS_H

#include "common/status.h"
#include "deploy/gnuplot.h"
#include "deploy/run_folder.h"

#include <stddef.h>

extern const struct plot plots[]; // ends with a row whose name is NULL

/* See gnuplot_write. */
enum status plots_write(const char *folder, const struct run_folder *runs, size_t count);

#endif
