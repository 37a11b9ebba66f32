/* A timeline as JSON of Chrome's trace format, for viewers that do not read Perfetto's. */
#ifndef DEPLOY_TRACE_CHROME_JSON_H
#define DEPLOY_TRACE_CHROME_JSON_H

#include "deploy/trace/timeline.h"

#include <stdio.h>

/* Slices, instants, counters, and an arrow for each message. Times begin at 0. Check ferror. */
void chrome_json_write(FILE *file, const struct timeline *timeline,
                       const struct timeline_flow *flows, size_t flow_count);

#endif
