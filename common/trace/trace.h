/* Records what the threads of a process do, for a timeline (--timeline).
 *
 * A process that may take part in a job has one `struct trace`, which knows where its file goes.
 * Each thread that records opens a tape, which has room for its events from the beginning: within a
 * step nothing is allocated, locked or written. What does not fit is counted. A tape belongs to its
 * thread; the file is written when all of them have ended.
 *
 * Without a timeline there are no tapes. Recording on NULL is one branch:
 *
 *     uint64_t begin_ns = trace_begin(tape);
 *     ...
 *     trace_end(tape, begin_ns, &(struct trace_tag){TRACE_BACKWARD, .step = step, ...});
 *
 * What trace_enter begins is a range of NVTX as well, where a profiler has asked for such
 * (trace_ranges.h). Then threads have tapes without a timeline, too, which record nothing. */
#ifndef COMMON_TRACE_TRACE_H
#define COMMON_TRACE_TRACE_H

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/trace/trace_kinds.h"
#include "common/trace/trace_ranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_EVENTS_MAX (1u << 18) // of a tape
#define TRACE_PINGS_MAX  (1u << 12) // of a tape
#define TRACE_TAPES_MAX  1024u      // of a process

#define TRACE_NO_BUCKET UINT32_MAX

/* Steps of the job, from 0, that are recorded: [first, end). */
struct trace_window {
    uint64_t first, end;
};

/* What an event is about. What it does not say is zero. */
struct trace_tag {
    enum trace_kind kind;
    uint32_t bucket;     // TRACE_NO_BUCKET: it is of none
    uint64_t step;       // of the job, from 0
    uint64_t flow;       // of a message: its number among all of the job; 0: none
    const char *message; // its kind, static; NULL: it is no message
    uint32_t rank;       // that a message is from or for
    uint32_t hop;        // of an all-reduce
    uint64_t bytes;      // of a message's values
    double value;        // of a counter
    const char *layers;  // of a bucket, or a layer's name: of trace_keep; NULL: not said
};

#define TRACE_CPU_UNKNOWN UINT64_MAX

struct trace_event {
    uint64_t begin_ns, end_ns; // equal: an instant, or a counter
    uint64_t cpu_ns;           // that a core worked for its thread; TRACE_CPU_UNKNOWN
    struct trace_tag tag;
};

/* A message to the coordinator and back, by the clocks of both. */
struct trace_ping {
    uint64_t sent_ns, received_ns; // here
    uint64_t there_ns;             // of the coordinator, when it answered at once
};

/* What trace_begin has begun, and its thread's time on cores by then. */
struct trace_begun {
    uint64_t begin_ns, cpu_ns;
};

#define TRACE_BEGUN_MAX 16

struct trace;

struct trace_tape {
    struct trace_window window; // empty: nothing is recorded
    bool has_ranges;            // a profiler is told what begins and ends
    enum trace_thread thread;
    uint32_t number;            // of the rank, worker or shard
    uint64_t flow_seed;         // of the messages that it sends
    struct trace_event *events; // (TRACE_EVENTS_MAX), owned; NULL: nothing is recorded
    uint32_t count;
    uint64_t dropped;         // events for which there was no room
    uint64_t flows;           // that were given out
    struct trace_ping *pings; // (TRACE_PINGS_MAX), owned; NULL with events
    uint32_t ping_count;
    struct trace_begun begun[TRACE_BEGUN_MAX]; // (begun_count), what lies within another behind it
    uint32_t begun_count;

    // A message counts the rounds of a phase: which step of the job a round is.
    uint64_t phase_step;
    uint32_t round_steps;
};

/* What the file says of its process. Texts are copied. */
struct trace_process {
    const char *role; // "worker", "ps"
    uint32_t number;  // of the worker, or of the server's first shard
    const char *host;
    uint64_t host_id;
    bool is_coordinator;
    bool is_unsynchronised; // its workers make steps independently
};

/* `folder` is where the file goes; "": nowhere, and tapes are opened for a profiler alone.
 * Copied. */
enum status trace_create(const char *folder, struct trace **ret_trace);
void trace_destroy(struct trace *trace); // NULL is fine; tapes end with it

/* Whether it has a folder. NULL: no. */
bool trace_has_folder(const struct trace *trace);

/* The same words again are fine. Any thread. */
void trace_describe(struct trace *trace, const struct trace_process *process);

/* The tape of a thread, with room for its events; the same one for the same thread and number, in
 * all generations of a job. NULL in *ret_tape: nothing is to be recorded, or the
 * trace is NULL. Any thread. */
enum status trace_open_tape(struct trace *trace, enum trace_thread thread, uint32_t number,
                            const struct trace_window *window, struct trace_tape **ret_tape);

/* A copy of a text that lives as long as the trace; the same one for the same text. NULL: nothing
 * is recorded, or there is no memory. Any thread. */
const char *trace_keep(struct trace *trace, const char *text);

/* Writes FOLDER/ROLE-NUMBER.PID.pftrace, if anything was recorded; makes the folder. After the
 * threads of all tapes. Logs. */
enum status trace_write(const struct trace *trace);

/* From here on messages count the rounds of a phase that begins behind `step` steps. */
void trace_begin_phase(struct trace_tape *tape, uint64_t step, uint32_t round_steps);

/* The step of the job in which the phase's `round` begins. */
static inline uint64_t trace_step_of(const struct trace_tape *tape, uint64_t round)
{
    return tape->phase_step + round * tape->round_steps;
}

/* For recording, below. */
void trace_record(struct trace_tape *tape, uint64_t begin_ns, uint64_t end_ns,
                  const struct trace_tag *tag);

/* Keeps the beginning of what its thread records. Returns its time. */
uint64_t trace_note_begin(struct trace_tape *tape);

static inline uint64_t trace_begin(struct trace_tape *tape)
{
    return tape != NULL ? trace_note_begin(tape) : 0;
}

static inline void trace_end(struct trace_tape *tape, uint64_t begin_ns,
                             const struct trace_tag *tag)
{
    if (tape != NULL) {
        trace_record(tape, begin_ns, clock_now_ns(), tag);
    }
}

/* Whether a thread records for a timeline. NULL: no. */
static inline bool trace_is_recording(const struct trace_tape *tape)
{
    return tape != NULL && tape->events != NULL;
}

/* Whether events of a step are recorded. NULL: no. */
static inline bool trace_records_step(const struct trace_tape *tape, uint64_t step)
{
    return tape != NULL && step >= tape->window.first && step < tape->window.end;
}

/* As trace_begin, of something that trace_leave ends, on the same thread and in the order of a
 * stack. */
static inline uint64_t trace_enter(struct trace_tape *tape, enum trace_kind kind, uint32_t bucket)
{
    if (tape == NULL) {
        return 0;
    }
    if (tape->has_ranges) {
        trace_ranges_push(kind, bucket);
    }
    return trace_note_begin(tape);
}

/* As trace_end. NULL: it is not recorded. */
static inline void trace_leave(struct trace_tape *tape, uint64_t begin_ns,
                               const struct trace_tag *tag)
{
    if (tape == NULL) {
        return;
    }
    if (tag != NULL) {
        trace_record(tape, begin_ns, clock_now_ns(), tag);
    }
    if (tape->has_ranges) {
        trace_ranges_pop();
    }
}

/* An instant, or the value of a counter. */
static inline void trace_note(struct trace_tape *tape, const struct trace_tag *tag)
{
    if (tape != NULL) {
        uint64_t now_ns = clock_now_ns();
        trace_record(tape, now_ns, now_ns, tag);
    }
}

/* Counters of how long cores have worked for the calling thread and for its process. */
void trace_note_cpu(struct trace_tape *tape, uint64_t step);

/* A number for a message of this step that nobody else gives; 0: the step is not recorded. */
uint64_t trace_next_flow(struct trace_tape *tape, uint64_t step);

/* NULL is fine. */
void trace_add_ping(struct trace_tape *tape, const struct trace_ping *ping);

#endif
