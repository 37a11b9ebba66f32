/* What a trace holds. Of trace.c and trace_file.c alone. */
#ifndef COMMON_TRACE_TRACE_STATE_H
#define COMMON_TRACE_TRACE_STATE_H

#include "common/trace/trace.h"

#include <pthread.h>

#define TRACE_FOLDER_BYTES 1100

/* A text of trace_keep, in a list. */
struct trace_text {
    struct trace_text *next;
    char text[];
};

struct trace {
    char folder[TRACE_FOLDER_BYTES];
    bool has_ranges;
    pthread_mutex_t mutex;        // of all that follows, until the threads have ended
    struct trace_process process; // with the texts below
    char role[16], host[256];
    struct trace_tape *tapes[TRACE_TAPES_MAX]; // (tape_count), owned
    uint32_t tape_count;
    struct trace_text *texts; // owned
};

#endif
