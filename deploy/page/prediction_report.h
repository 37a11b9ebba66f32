/* A folder with predictions: report.html, predictions.json, and plots. */
#ifndef DEPLOY_PAGE_PREDICTION_REPORT_H
#define DEPLOY_PAGE_PREDICTION_REPORT_H

#include "common/base/status.h"
#include "deploy/predict/advise/crossover.h"
#include "deploy/predict/study/study.h"

#include <jansson.h>

/* What a page is of. All of it is borrowed. */
struct prediction_report {
    const struct study *study; // that was made
    const struct crossover_list *crossovers;
    const json_t *predictions; // as `predict --json` has them
    const char *command;       // that repeats it
};

/* Predicts the map of the fastest designs as well. Without gnuplot there are no plots, and a line
 * says so. Logs. */
enum status prediction_report_write(const char *folder, const struct prediction_report *report);

#endif
