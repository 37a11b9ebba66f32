/* Counts, and says what was not recorded. */
#include "deploy/trace/timeline_report.h"

#include "deploy/trace/critical_file.h"

#include <inttypes.h>

static void print_steps(FILE *stream, const struct timeline *timeline)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < timeline->event_count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        if (event->kind == TRACE_STEP) {
            first = event->step < first ? event->step : first;
            last = event->step > last ? event->step : last;
        }
    }
    if (first == UINT64_MAX) {
        fprintf(stream, "no step was recorded\n");
        return;
    }
    fprintf(stream,
            "steps %" PRIu64 " to %" PRIu64 ", %.3f s, %zu processes, %zu threads, %zu events\n",
            first + 1, last + 1, (double)(timeline->end_ns - timeline->begin_ns) / 1e9,
            timeline->process_count, timeline->thread_count, timeline->event_count);
}

static void print_clock(FILE *stream, const struct timeline_process *process)
{
    if (process->is_coordinator) {
        fprintf(stream, "the coordinator's clock");
        return;
    }
    double offset_us = (double)process->offset_ns / 1000;
    if (process->uncertainty_ns == 0) {
        fprintf(stream, "the same clock (measured: %+.1f us)", offset_us);
    } else {
        fprintf(stream, "clock %+.1f us, give or take %.1f us", offset_us,
                (double)process->uncertainty_ns / 1000);
    }
}

static void print_processes(FILE *stream, const struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->process_count; i++) {
        const struct timeline_process *process = &timeline->processes[i];
        uint64_t dropped = 0;
        for (size_t k = 0; k < timeline->thread_count; k++) {
            dropped += timeline->threads[k].process == i ? timeline->threads[k].dropped : 0;
        }
        fprintf(stream, "  %s %u on %s: ", process->role, process->number, process->host);
        print_clock(stream, process);
        if (dropped > 0) {
            fprintf(stream,
                    "; there was no room for %" PRIu64
                    " events: --timeline-steps records fewer steps",
                    dropped);
        }
        fprintf(stream, "\n");
    }
}

void timeline_report_print(FILE *stream, const char *run, const struct timeline *timeline,
                           const struct timeline_flow *flows, size_t flow_count)
{
    size_t impossible = timeline_count_impossible(timeline, flows, flow_count);
    print_steps(stream, timeline);
    print_processes(stream, timeline);
    fprintf(stream, "%zu messages; %zu received before they were sent\n", flow_count, impossible);
    critical_file_print(stream, run);
}
