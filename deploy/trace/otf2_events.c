/* Turns slices into enter and leave, flows into sends and receives, and counters into metrics. */
#include "deploy/trace/otf2_events.h"

#include <stdlib.h>
#include <string.h>

/* One thread's records. The first error ends the writing. */
struct sink {
    const struct otf2_events *of;
    OTF2_EvtWriter *writer;
    OTF2_AttributeList *attributes; // emptied by every event
    OTF2_ErrorCode error;
    uint64_t count;
    size_t depth;
};

static bool is_counter(const struct timeline_event *event)
{
    return trace_kinds[event->kind].unit != NULL;
}

static int compare_regions(const void *a, const void *b)
{
    const struct otf2_region *left = a, *right = b;
    int names = strcmp(left->name, right->name);
    return names != 0 ? names : (left->kind > right->kind) - (left->kind < right->kind);
}

static enum status list_regions(struct otf2_events *events)
{
    const struct timeline *timeline = events->timeline;
    events->regions = calloc(timeline->event_count + 1, sizeof(*events->regions));
    if (events->regions == NULL) {
        return STATUS_NO_MEMORY;
    }
    size_t count = 0;
    for (size_t i = 0; i < timeline->event_count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        if (!is_counter(event)) {
            events->regions[count++] = (struct otf2_region){event->name, event->kind};
        }
    }
    qsort(events->regions, count, sizeof(*events->regions), compare_regions);
    for (size_t i = 0; i < count; i++) {
        size_t last = events->region_count;
        if (last == 0 || compare_regions(&events->regions[last - 1], &events->regions[i]) != 0) {
            events->regions[events->region_count++] = events->regions[i];
        }
    }
    return STATUS_OK;
}

static size_t longest_thread(const struct timeline *timeline)
{
    size_t most = 0;
    for (size_t i = 0; i < timeline->thread_count; i++) {
        most = timeline->threads[i].count > most ? timeline->threads[i].count : most;
    }
    return most;
}

enum status otf2_events_prepare(const struct timeline *timeline, const struct timeline_flow *flows,
                                size_t flow_count, struct otf2_events *ret_events)
{
    struct otf2_events events = {.timeline = timeline, .flows = flows};
    enum status status = list_regions(&events);
    events.messages = calloc(timeline->event_count + 1, sizeof(*events.messages));
    events.open = calloc(longest_thread(timeline) + 1, sizeof(*events.open));
    if (status != STATUS_OK || events.messages == NULL || events.open == NULL) {
        otf2_events_finish(&events);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < flow_count; i++) {
        events.messages[flows[i].send] = i + 1;
        events.messages[flows[i].receive] = i + 1;
    }
    *ret_events = events;
    return STATUS_OK;
}

void otf2_events_finish(struct otf2_events *events)
{
    free(events->regions);
    free(events->messages);
    free(events->open);
    *events = (struct otf2_events){0};
}

OTF2_MetricRef otf2_metric_of(enum trace_kind kind)
{
    OTF2_MetricRef metric = 0;
    for (unsigned i = 0; i < (unsigned)kind; i++) {
        metric += trace_kinds[i].unit != NULL;
    }
    return metric;
}

static OTF2_RegionRef region_of(const struct otf2_events *events,
                                const struct timeline_event *event)
{
    const struct otf2_region key = {event->name, event->kind};
    const struct otf2_region *region =
        bsearch(&key, events->regions, events->region_count, sizeof(key), compare_regions);
    return region != NULL ? (OTF2_RegionRef)(region - events->regions) : OTF2_UNDEFINED_REGION;
}

static void note(struct sink *sink, OTF2_ErrorCode error)
{
    sink->error = sink->error == OTF2_SUCCESS ? error : sink->error;
    sink->count++;
}

/* Leaves the regions that have ended by then. */
static void leave_until(struct sink *sink, uint64_t time_ns)
{
    const uint64_t zero_ns = sink->of->timeline->begin_ns;
    while (sink->depth > 0 && sink->of->open[sink->depth - 1].end_ns <= time_ns) {
        const struct otf2_open *open = &sink->of->open[--sink->depth];
        note(sink, OTF2_EvtWriter_Leave(sink->writer, NULL, open->end_ns - zero_ns, open->region));
    }
}

static void write_metric(struct sink *sink, const struct timeline_event *event, uint64_t time)
{
    const OTF2_Type type = OTF2_TYPE_DOUBLE;
    const OTF2_MetricValue value = {.floating_point = event->value};
    note(sink, OTF2_EvtWriter_Metric(sink->writer, NULL, time, otf2_metric_of(event->kind), 1,
                                     &type, &value));
}

static void write_enter(struct sink *sink, const struct timeline_event *event, uint64_t time)
{
    OTF2_AttributeList *list = sink->attributes;
    OTF2_AttributeList_AddUint64(list, OTF2_ATTRIBUTE_STEP, event->step + 1);
    if (event->bucket != UINT32_MAX) {
        OTF2_AttributeList_AddUint32(list, OTF2_ATTRIBUTE_BUCKET, event->bucket);
    }
    if (event->bytes > 0) {
        OTF2_AttributeList_AddUint64(list, OTF2_ATTRIBUTE_BYTES, event->bytes);
    }
    OTF2_RegionRef region = region_of(sink->of, event);
    note(sink, OTF2_EvtWriter_Enter(sink->writer, list, time, region));
    // A slice that ends behind the one around it is of a file that somebody has changed.
    uint64_t end_ns = event->end_ns;
    if (sink->depth > 0 && sink->of->open[sink->depth - 1].end_ns < end_ns) {
        end_ns = sink->of->open[sink->depth - 1].end_ns;
    }
    sink->of->open[sink->depth++] = (struct otf2_open){end_ns, region};
}

/* The end of a message's way that an event is. */
static void write_message(struct sink *sink, size_t index, uint64_t time)
{
    const struct timeline_event *events = sink->of->timeline->events;
    uint32_t tag = (uint32_t)(sink->of->messages[index] - 1);
    const struct timeline_flow *flow = &sink->of->flows[tag];
    uint64_t bytes = events[flow->send].bytes;
    if (flow->send == index) {
        note(sink, OTF2_EvtWriter_MpiSend(sink->writer, NULL, time, events[flow->receive].thread,
                                          OTF2_JOB_COMM, tag, bytes));
    } else {
        note(sink, OTF2_EvtWriter_MpiRecv(sink->writer, NULL, time, events[flow->send].thread,
                                          OTF2_JOB_COMM, tag, bytes));
    }
}

static void write_event(struct sink *sink, size_t index)
{
    const struct timeline_event *event = &sink->of->timeline->events[index];
    uint64_t time = event->begin_ns - sink->of->timeline->begin_ns;
    leave_until(sink, event->begin_ns);
    if (is_counter(event)) {
        write_metric(sink, event, time);
        return;
    }
    write_enter(sink, event, time);
    if (sink->of->messages[index] > 0) {
        write_message(sink, index, time);
    }
}

OTF2_ErrorCode otf2_events_write(const struct otf2_events *events, size_t thread,
                                 OTF2_EvtWriter *writer, uint64_t *ret_count)
{
    const struct timeline_thread *of = &events->timeline->threads[thread];
    struct sink sink = {.of = events, .writer = writer, .attributes = OTF2_AttributeList_New()};
    if (sink.attributes == NULL) {
        return OTF2_ERROR_MEM_FAULT;
    }
    for (size_t i = of->first; i < of->first + of->count && sink.error == OTF2_SUCCESS; i++) {
        write_event(&sink, i);
    }
    leave_until(&sink, UINT64_MAX);
    OTF2_AttributeList_Delete(sink.attributes);
    *ret_count = sink.count;
    return sink.error;
}
