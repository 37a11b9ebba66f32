/* Writes on a tape what a program does between its calls. */
#include "worker/library/timeline.h"

#include "worker/link/process_trace.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES 64 // as a timeline's texts have

enum status timeline_open(struct timeline *timeline, const struct job *job, uint32_t rank,
                          uint32_t number)
{
    const struct trace_window window = job_timeline(job);
    process_trace_describe(timeline->trace, job, number,
                           "RINGSIDE_TIMELINE_DIR, or options.timeline_dir,");
    return trace_open_tape(timeline->trace, TRACE_COMPUTE, rank, &window, &timeline->tape);
}

void timeline_name(struct timeline *timeline, uint32_t bucket, const char *first, const char *last)
{
    char text[NAME_BYTES];
    if (strcmp(first, last) == 0) {
        snprintf(text, sizeof(text), "%s", first);
    } else {
        snprintf(text, sizeof(text), "%.29s to %.29s", first, last);
    }
    timeline->buckets[bucket] = trace_keep(timeline->trace, text);
}

/* An event without a length would be an instant. */
static void record(struct timeline *timeline, uint64_t began_ns, uint64_t now_ns,
                   const struct trace_tag *tag)
{
    if (began_ns > 0 && now_ns > began_ns) {
        trace_record(timeline->tape, began_ns, now_ns, tag);
    }
}

void timeline_part(struct timeline *timeline, enum trace_kind kind, uint32_t bucket, uint64_t step)
{
    if (timeline->tape == NULL) {
        return;
    }
    uint64_t now_ns = clock_now_ns();
    struct trace_tag tag = {.kind = kind, .bucket = bucket, .step = step};
    if (kind == TRACE_BACKWARD && bucket != TRACE_NO_BUCKET) {
        tag.layers = timeline->buckets[bucket];
    }
    record(timeline, timeline->part_began_ns, now_ns, &tag);
    timeline->part_began_ns = now_ns;
}

void timeline_ready(struct timeline *timeline, uint32_t bucket, uint64_t step)
{
    trace_note(timeline->tape,
               &(struct trace_tag){.kind = TRACE_READY, .bucket = bucket, .step = step});
}

void timeline_begin_step(struct timeline *timeline, uint64_t step)
{
    uint64_t before = step > 0 ? step - 1 : 0;
    timeline_part(timeline, TRACE_AFTER_STEP, TRACE_NO_BUCKET, before);
    timeline->step_began_ns = timeline->part_began_ns;
}

void timeline_end_step(struct timeline *timeline, uint64_t step)
{
    const struct trace_tag tag = {.kind = TRACE_STEP, .bucket = TRACE_NO_BUCKET, .step = step};
    if (timeline->tape != NULL) {
        record(timeline, timeline->step_began_ns, timeline->part_began_ns, &tag);
    }
}

void timeline_count(struct timeline *timeline, enum trace_kind kind, uint64_t step, double value)
{
    trace_note(
        timeline->tape,
        &(struct trace_tag){.kind = kind, .bucket = TRACE_NO_BUCKET, .step = step, .value = value});
}

void timeline_close(struct timeline *timeline)
{
    (void)trace_write(timeline->trace); // which has said so; the job is what it is
    trace_destroy(timeline->trace);
    *timeline = (struct timeline){.trace = NULL};
}
