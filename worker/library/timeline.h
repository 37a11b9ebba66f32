/* A program's part of a timeline. The library sees a step from outside: it is cut wherever the
 * program calls, and each part is what the program or the exchange did until then. */
#ifndef WORKER_LIBRARY_TIMELINE_H
#define WORKER_LIBRARY_TIMELINE_H

#include "common/job/job.h"
#include "common/trace/trace.h"
#include "common/vector/layout.h"

#include <stdint.h>

struct timeline {
    struct trace *trace;                     // owned
    struct trace_tape *tape;                 // of the trace; NULL: nothing is recorded
    const char *buckets[LAYOUT_BUCKETS_MAX]; // names of their tensors, of the trace; or NULL
    uint64_t step_began_ns, part_began_ns;   // 0: not yet
};

/* `rank` of the process, which has joined as `number` (link_number). Logs. */
enum status timeline_open(struct timeline *timeline, const struct job *job, uint32_t rank,
                          uint32_t number);

/* Of a bucket whose tensors are called that, from the first to the last needed. */
void timeline_name(struct timeline *timeline, uint32_t bucket, const char *first, const char *last);

/* A part ends, and the next one begins. `bucket` may be TRACE_NO_BUCKET. */
void timeline_part(struct timeline *timeline, enum trace_kind kind, uint32_t bucket, uint64_t step);

/* The gradients of a bucket are handed over. */
void timeline_ready(struct timeline *timeline, uint32_t bucket, uint64_t step);

/* Around a step. What lies between two is `after the step`. */
void timeline_begin_step(struct timeline *timeline, uint64_t step);
void timeline_end_step(struct timeline *timeline, uint64_t step);

/* The value of a counter. */
void timeline_count(struct timeline *timeline, enum trace_kind kind, uint64_t step, double value);

/* Writes the part, behind the end of the link's thread. Zeroed is fine. */
void timeline_close(struct timeline *timeline);

#endif
