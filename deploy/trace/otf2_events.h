/* Writes what one thread of a timeline did as OTF2 events. Only files of OTF2 include this. */
#ifndef DEPLOY_TRACE_OTF2_EVENTS_H
#define DEPLOY_TRACE_OTF2_EVENTS_H

#include "deploy/trace/timeline.h"

#include <otf2/otf2.h>

// What definitions and events call by the same numbers.
enum { OTF2_ATTRIBUTE_STEP, OTF2_ATTRIBUTE_BUCKET, OTF2_ATTRIBUTE_BYTES };
#define OTF2_JOB_COMM 0

/* Slices with one name and one kind. */
struct otf2_region {
    const char *name; // borrowed from the timeline
    enum trace_kind kind;
};

struct otf2_events {
    const struct timeline *timeline; // borrowed
    const struct timeline_flow *flows;
    struct otf2_region *regions; // (region_count), sorted, owned
    size_t region_count;
    size_t *messages; // (events of the timeline): 1 + the flow that an event is an end of, owned
    struct otf2_open *open; // (events of the longest thread), owned; for writing
};

/* A region that was entered. */
struct otf2_open {
    uint64_t end_ns;
    OTF2_RegionRef region;
};

enum status otf2_events_prepare(const struct timeline *timeline, const struct timeline_flow *flows,
                                size_t flow_count, struct otf2_events *ret_events);
void otf2_events_finish(struct otf2_events *events); // zeroed is fine

/* The metric of a kind that is a counter. */
OTF2_MetricRef otf2_metric_of(enum trace_kind kind);

/* Writes the events of a thread; ret_count: how many records. */
OTF2_ErrorCode otf2_events_write(const struct otf2_events *events, size_t thread,
                                 OTF2_EvtWriter *writer, uint64_t *ret_count);

#endif
