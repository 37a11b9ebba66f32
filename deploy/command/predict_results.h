/* What `ringside predict` makes of a study: predictions or advice, printed and written. */
#ifndef DEPLOY_COMMAND_PREDICT_RESULTS_H
#define DEPLOY_COMMAND_PREDICT_RESULTS_H

#include "common/base/status.h"
#include "deploy/predict/advise/advice_axes.h"
#include "deploy/predict/faults/fault_study.h"
#include "deploy/predict/study/study.h"

#include <stdbool.h>

/* Makes the points of a study and prints them, as JSON if that is asked for. faults: of the job;
 * its study is NULL if there are none. folder: where a report is written, too; "": nowhere.
 * command: that repeats it. Logs. */
enum status predict_results_make(struct study *study, struct fault_study *faults, bool is_json,
                                 const char *folder, const char *command);

/* Searches for the best designs and prints them. is_kept: see advice_list_make. Logs. */
enum status predict_results_advise(struct study *study, const bool is_kept[ADVICE_AXES],
                                   bool is_json);

#endif
