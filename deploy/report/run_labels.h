/* Labels that tell the groups of a report apart: by the options that differ, in words. */
#ifndef DEPLOY_REPORT_RUN_LABELS_H
#define DEPLOY_REPORT_RUN_LABELS_H

#include "common/base/status.h"
#include "deploy/report/run_groups.h"

/* What a run's options are but for the seed, as text: equal for runs of one group. The caller frees
 * it; NULL if there is no memory. */
char *run_labels_key(const struct run_folder *run);

/* Fills label and design of every group, whose first run is there. Groups that nothing else tells
 * apart get the names of their folders. */
enum status run_labels_fill(struct run_group *groups, size_t count);

#endif
