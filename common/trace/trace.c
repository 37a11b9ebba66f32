/* Keeps the tapes of a process, and records in them. */
#include "common/trace/trace.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/trace/trace_file.h"
#include "common/trace/trace_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of a message's number: the sender's part is above these bits.
#define FLOW_COUNTER_BITS 24

enum status trace_create(const char *folder, struct trace **ret_trace)
{
    struct trace *trace = calloc(1, sizeof(*trace));
    if (trace == NULL) {
        return STATUS_NO_MEMORY;
    }
    snprintf(trace->folder, sizeof(trace->folder), "%s", folder);
    trace->has_ranges = trace_ranges_are_wanted();
    pthread_mutex_init(&trace->mutex, NULL);
    *ret_trace = trace;
    return STATUS_OK;
}

static void destroy_tape(struct trace_tape *tape)
{
    memory_destroy_large(tape->events, TRACE_EVENTS_MAX * sizeof(*tape->events));
    free(tape->pings);
    free(tape);
}

void trace_destroy(struct trace *trace)
{
    if (trace == NULL) {
        return;
    }
    for (uint32_t i = 0; i < trace->tape_count; i++) {
        destroy_tape(trace->tapes[i]);
    }
    for (struct trace_text *text = trace->texts; text != NULL;) {
        struct trace_text *next = text->next;
        free(text);
        text = next;
    }
    pthread_mutex_destroy(&trace->mutex);
    free(trace);
}

bool trace_has_folder(const struct trace *trace)
{
    return trace != NULL && trace->folder[0] != '\0';
}

void trace_describe(struct trace *trace, const struct trace_process *process)
{
    if (trace == NULL) {
        return;
    }
    pthread_mutex_lock(&trace->mutex);
    // A coordinator's process stays one when its shard describes itself.
    bool is_coordinator = trace->process.is_coordinator || process->is_coordinator;
    trace->process = *process;
    trace->process.is_coordinator = is_coordinator;
    snprintf(trace->role, sizeof(trace->role), "%s", process->role);
    snprintf(trace->host, sizeof(trace->host), "%s", process->host);
    trace->process.role = trace->role;
    trace->process.host = trace->host;
    pthread_mutex_unlock(&trace->mutex);
}

/* Gives a tape room for what it records. */
static bool make_room(struct trace_tape *tape)
{
    tape->events = memory_create_large(TRACE_EVENTS_MAX * sizeof(*tape->events));
    tape->pings = calloc(TRACE_PINGS_MAX, sizeof(*tape->pings));
    return tape->events != NULL && tape->pings != NULL;
}

/* Whether threads have something to record. */
static bool records(const struct trace *trace, const struct trace_window *window)
{
    return trace_has_folder(trace) && window->end > window->first;
}

/* A tape that records nothing is there for a profiler alone. */
static struct trace_tape *create_tape(const struct trace *trace, enum trace_thread thread,
                                      uint32_t number, const struct trace_window *window)
{
    struct trace_tape *tape = calloc(1, sizeof(*tape));
    if (tape == NULL) {
        return NULL;
    }
    tape->window = records(trace, window) ? *window : (struct trace_window){0, 0};
    tape->has_ranges = trace->has_ranges;
    tape->thread = thread;
    tape->number = number;
    tape->round_steps = 1;
    tape->flow_seed =
        random_mix(random_mix((uint64_t)getpid() << 32 | number) + thread + clock_now_ns())
        << FLOW_COUNTER_BITS;
    if (records(trace, window) && !make_room(tape)) {
        destroy_tape(tape);
        return NULL;
    }
    return tape;
}

static struct trace_tape *find_tape(const struct trace *trace, enum trace_thread thread,
                                    uint32_t number)
{
    for (uint32_t i = 0; i < trace->tape_count; i++) {
        if (trace->tapes[i]->thread == thread && trace->tapes[i]->number == number) {
            return trace->tapes[i];
        }
    }
    return NULL;
}

enum status trace_open_tape(struct trace *trace, enum trace_thread thread, uint32_t number,
                            const struct trace_window *window, struct trace_tape **ret_tape)
{
    struct trace_tape *tape = NULL;
    if (trace == NULL || (!records(trace, window) && !trace->has_ranges)) {
        *ret_tape = NULL;
        return STATUS_OK;
    }
    pthread_mutex_lock(&trace->mutex);
    tape = find_tape(trace, thread, number);
    if (tape == NULL && trace->tape_count < TRACE_TAPES_MAX) {
        tape = create_tape(trace, thread, number, window);
        if (tape != NULL) {
            trace->tapes[trace->tape_count++] = tape;
        }
    }
    pthread_mutex_unlock(&trace->mutex);
    if (tape == NULL) {
        log_error(
            "no memory for the timeline of a thread: %zu MiB are needed; leave --timeline out",
            TRACE_EVENTS_MAX * sizeof(struct trace_event) >> 20);
        return STATUS_NO_MEMORY;
    }
    *ret_tape = tape;
    return STATUS_OK;
}

const char *trace_keep(struct trace *trace, const char *text)
{
    if (!trace_has_folder(trace)) {
        return NULL;
    }
    pthread_mutex_lock(&trace->mutex);
    struct trace_text *kept = trace->texts;
    while (kept != NULL && strcmp(kept->text, text) != 0) {
        kept = kept->next;
    }
    if (kept == NULL) {
        kept = malloc(sizeof(*kept) + strlen(text) + 1);
        if (kept != NULL) {
            memcpy(kept->text, text, strlen(text) + 1);
            kept->next = trace->texts;
            trace->texts = kept;
        }
    }
    pthread_mutex_unlock(&trace->mutex);
    return kept != NULL ? kept->text : NULL;
}

enum status trace_write(const struct trace *trace)
{
    bool has_recorded = false;
    for (uint32_t i = 0; trace_has_folder(trace) && i < trace->tape_count; i++) {
        has_recorded = has_recorded || trace_is_recording(trace->tapes[i]);
    }
    return has_recorded ? trace_file_write(trace) : STATUS_OK;
}

void trace_begin_phase(struct trace_tape *tape, uint64_t step, uint32_t round_steps)
{
    if (tape != NULL) {
        tape->phase_step = step;
        tape->round_steps = round_steps > 0 ? round_steps : 1;
    }
}

uint64_t trace_note_begin(struct trace_tape *tape)
{
    uint64_t now_ns = clock_now_ns();
    if (tape->events == NULL || tape->thread == TRACE_INPUT) {
        return now_ns; // several threads read batches
    }
    if (tape->begun_count == TRACE_BEGUN_MAX) { // of what was not recorded
        tape->begun_count /= 2;
        memmove(tape->begun, tape->begun + TRACE_BEGUN_MAX / 2,
                tape->begun_count * sizeof(*tape->begun));
    }
    tape->begun[tape->begun_count++] = (struct trace_begun){now_ns, clock_thread_ns()};
    return now_ns;
}

/* The thread's time on cores since then; TRACE_CPU_UNKNOWN: it was not begun by trace_begin. */
static uint64_t cpu_since(struct trace_tape *tape, uint64_t begin_ns)
{
    for (uint32_t i = tape->begun_count; i-- > 0 && tape->begun[i].begin_ns >= begin_ns;) {
        if (tape->begun[i].begin_ns == begin_ns) {
            tape->begun_count = i;
            return clock_thread_ns() - tape->begun[i].cpu_ns;
        }
    }
    return TRACE_CPU_UNKNOWN;
}

void trace_note_cpu(struct trace_tape *tape, uint64_t step)
{
    if (trace_records_step(tape, step)) {
        struct trace_tag tag = {TRACE_THREAD_CPU, TRACE_NO_BUCKET, .step = step};
        tag.value = 1e-9 * (double)clock_thread_ns();
        trace_note(tape, &tag);
        tag.kind = TRACE_PROCESS_CPU;
        tag.value = 1e-9 * (double)clock_process_ns();
        trace_note(tape, &tag);
    }
}

void trace_record(struct trace_tape *tape, uint64_t begin_ns, uint64_t end_ns,
                  const struct trace_tag *tag)
{
    if (!trace_records_step(tape, tag->step)) {
        return;
    }
    uint64_t cpu_ns = begin_ns < end_ns ? cpu_since(tape, begin_ns) : TRACE_CPU_UNKNOWN;
    if (tape->count == TRACE_EVENTS_MAX) {
        tape->dropped++;
        return;
    }
    tape->events[tape->count++] = (struct trace_event){begin_ns, end_ns, cpu_ns, *tag};
}

uint64_t trace_next_flow(struct trace_tape *tape, uint64_t step)
{
    if (!trace_records_step(tape, step)) {
        return 0;
    }
    return tape->flow_seed | (++tape->flows & ((UINT64_C(1) << FLOW_COUNTER_BITS) - 1));
}

void trace_add_ping(struct trace_tape *tape, const struct trace_ping *ping)
{
    if (trace_is_recording(tape) && tape->ping_count < TRACE_PINGS_MAX) {
        tape->pings[tape->ping_count++] = *ping;
    }
}
