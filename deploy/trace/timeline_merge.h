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

#define TIMELINE_PATH_BYTES 4200

/* The timeline of a run folder, or the file itself if that is what is named. Of a job that was
 * started by hand, or whose launcher was killed: what its processes have left is merged. Logs. */
enum status timeline_find(const char *run, char ret_path[TIMELINE_PATH_BYTES]);

#endif
