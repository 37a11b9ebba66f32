/* Speed-up and efficiency of the groups of a report, and how its plots draw them. */
#ifndef DEPLOY_REPORT_GROUP_SCALING_H
#define DEPLOY_REPORT_GROUP_SCALING_H

#include "common/base/status.h"
#include "deploy/report/run_groups.h"
#include "deploy/report/scaling.h"

#include <stddef.h>

// How to read the two plots.
#define GROUP_SCALING_SPEED_UP                                                                  \
    "By images per second without the first epoch (without warm-up where there is one epoch), " \
    "over the smallest number of workers of each design, or over a job without a network."
#define GROUP_SCALING_EFFICIENCY "Speed-up over the number of workers."

struct group_scaling {
    struct scaling_design *designs; // (count), owned; names are borrowed from the groups
    struct run_stroke *strokes;     // (count), owned: of each design
    size_t count;                   // 0: no design has two numbers of workers
    unsigned workers_max;           // 1 without designs
};

/* Rates are those without the first epoch. The groups must outlive the result. STATUS_NO_MEMORY. */
enum status group_scaling_of(const struct run_groups *groups, struct group_scaling *ret_scaling);
void group_scaling_finish(struct group_scaling *scaling);

#endif
