/* A timeline in memory: processes, their threads, and what these did. */
#ifndef DEPLOY_TRACE_TIMELINE_H
#define DEPLOY_TRACE_TIMELINE_H

#include "common/base/status.h"
#include "common/trace/trace_kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_TEXT_BYTES    64
#define TIMELINE_PROCESSES_MAX 8192
#define TIMELINE_CPU_UNKNOWN   UINT64_MAX

struct timeline_process {
    uint64_t track;
    char role[16], host[TIMELINE_TEXT_BYTES], clock[16]; // clock: "common" or "measured"
    uint32_t number, cores;                              // cores that it may use; 0: not said
    uint64_t machine;                                    // whose cores they are; 0: not said
    bool is_coordinator, is_unsynchronised;
    int64_t offset_ns;       // of its clock, as measured first
    uint64_t uncertainty_ns; // of its times, beside the coordinator's
};

struct timeline_event {
    uint64_t begin_ns, end_ns; // equal: an instant, or a counter
    enum trace_kind kind;
    uint32_t thread, bucket; // bucket UINT32_MAX: none
    uint64_t step, flow;     // flow 0: none, or its other end is not there
    char name[TIMELINE_TEXT_BYTES];
    const char *layers;  // of a bucket; one of the timeline's texts; NULL: not said
    const char *message; // its kind, "PUSH"; likewise; NULL: it is no message
    uint32_t hop;        // of an all-reduce
    uint64_t bytes;
    uint64_t cpu_ns; // that a core worked for its thread; TIMELINE_CPU_UNKNOWN
    double value;    // of a counter
};

struct timeline_thread {
    uint64_t track;
    uint32_t process; // of the timeline's
    enum trace_thread thread;
    uint32_t number;
    uint64_t dropped;    // events for which there was no room
    size_t first, count; // of the timeline's events
};

struct timeline {
    struct timeline_process *processes; // (process_count), owned
    size_t process_count;
    struct timeline_thread *threads; // (thread_count), owned
    size_t thread_count;
    struct timeline_event *events; // (event_count), owned; by thread, then by beginning, what
                                   // contains others before them
    size_t event_count;
    uint64_t begin_ns, end_ns;
    char **texts; // (text_count), owned; each once
    size_t text_count;
};

/* Reads RUN/timeline.pftrace, or any other file of that kind. Logs what is wrong. */
enum status timeline_read(const char *path, struct timeline *ret_timeline);
void timeline_finish(struct timeline *timeline); // zeroed is fine

/* The end of a message's way that begins it (a send), by its flow; NULL: there is none. */
struct timeline_flow {
    uint64_t flow;
    size_t send, receive; // events
};

/* All messages with both ends, by flow. The caller frees them. */
enum status timeline_list_flows(const struct timeline *timeline, struct timeline_flow **ret_flows,
                                size_t *ret_count);

/* Messages that were received before they were sent, by more than the clocks may be off. */
size_t timeline_count_impossible(const struct timeline *timeline, const struct timeline_flow *flows,
                                 size_t count);

#endif
