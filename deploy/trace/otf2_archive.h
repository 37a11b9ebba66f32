/* Writes a timeline as an OTF2 archive, for Vampir, Score-P's tools and otf2-print.
 *
 * A host is a node of the system tree, a process a location group, and a thread a location. Slices
 * are regions. A message is a point-to-point event of MPI's kind between two locations, with a tag
 * that no other message has: so readers match ends as the timeline does, in whatever order messages
 * arrive. Counters are metrics. Steps, buckets and bytes are attributes of the events that enter a
 * region. Times are nanoseconds since the timeline's beginning. */
#ifndef DEPLOY_TRACE_OTF2_ARCHIVE_H
#define DEPLOY_TRACE_OTF2_ARCHIVE_H

#include "common/base/status.h"
#include "deploy/trace/timeline.h"

#define OTF2_ARCHIVE_NAME "traces" // FOLDER/traces.otf2

/* Whether this build has OTF2. Otherwise writing logs how to get it, and is STATUS_UNSUPPORTED. */
bool otf2_archive_is_built(void);

/* Writes into a folder that is empty. What is there after a failure is no archive. Logs. */
enum status otf2_archive_write(const char *folder, const struct timeline *timeline,
                               const struct timeline_flow *flows, size_t flow_count);

#endif
