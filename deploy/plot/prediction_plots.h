/* Plots of predictions: how designs scale, which is the fastest, how long training takes. */
#ifndef DEPLOY_PLOT_PREDICTION_PLOTS_H
#define DEPLOY_PLOT_PREDICTION_PLOTS_H

#include "common/base/status.h"
#include "deploy/plot/gnuplot.h"
#include "deploy/predict/advise/winners.h"
#include "deploy/predict/study/study.h"
#include "deploy/report/run_strokes.h"

#include <stdbool.h>

extern const struct plot prediction_plots[]; // ends with a row whose name is NULL

/* Whether a study has something for a plot of lines, which needs two points. */
bool prediction_plots_has(const struct plot *plot, const struct study *study);

/* The strokes of a study's designs. */
void prediction_plots_strokes(const struct study *study,
                              struct run_stroke ret_strokes[STUDY_POINTS_MAX]);

/* The interval of a point's images per second, as shares of them. False: it has none. */
bool prediction_plots_band(const struct study_point *point, double *ret_low, double *ret_high);

/* Whether numbers of workers are so far apart that an axis of them is logarithmic. */
bool prediction_plots_is_wide(const struct study *study);

/* Those that the study has something for. See gnuplot_write. */
enum status prediction_plots_write(const char *folder, const struct study *study,
                                   const struct winners *winners);

#endif
