/* Makes one timeline of the files that the processes of a job have written. */
#ifndef DEPLOY_TRACE_TIMELINE_MERGE_H
#define DEPLOY_TRACE_TIMELINE_MERGE_H

#include "common/base/status.h"

#define TIMELINE_PARTS_NAME "timeline"         // folder of the processes' files, in a run folder
#define TIMELINE_NAME       "timeline.pftrace" // the timeline, in a run folder

/* RUN/timeline/ *.pftrace -> RUN/timeline.pftrace, whose packets are in the order of time, by the
 * coordinator's clock. Arrows of messages whose other end was not recorded are left out. Removes
 * the parts once the timeline is there. Logs. STATUS_END_OF_DATA: there is no part. */
enum status timeline_merge(const char *run);

#endif
