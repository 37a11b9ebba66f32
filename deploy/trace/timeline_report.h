/* Prints what a timeline holds. */
#ifndef DEPLOY_TRACE_TIMELINE_REPORT_H
#define DEPLOY_TRACE_TIMELINE_REPORT_H

#include "deploy/trace/timeline.h"

#include <stdio.h>

/* Steps, processes, how sure their clocks are, messages; and what limits the steps, from the
 * run's critical_path.json. */
void timeline_report_print(FILE *stream, const char *run, const struct timeline *timeline,
                           const struct timeline_flow *flows, size_t flow_count);

#endif
