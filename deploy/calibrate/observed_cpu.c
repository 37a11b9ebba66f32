/* Takes the differences of counters between two steps. */
#include "deploy/calibrate/observed_cpu.h"

#include <string.h>

#define NESTING_MAX 32

bool observed_has_values(const struct timeline_event *event)
{
    return event->bytes > 0 && event->message != NULL &&
           (strcmp(event->message, "CHUNK") == 0 || strcmp(event->message, "PUSH") == 0 ||
            strcmp(event->message, "PARAMS") == 0);
}

bool observed_is_of_exchange(const struct timeline_event *event)
{
    return observed_has_values(event) ||
           (event->message != NULL &&
            (strcmp(event->message, "PULL") == 0 || strcmp(event->message, "TAKEN") == 0));
}

/* What a thread's counter gained from its first value of a step to that of another. */
struct gain {
    double first_s, last_s;
    uint64_t first_ns, last_ns;
    bool has_first, has_last;
};

static void take_counter(const struct timeline_event *event, uint64_t first, uint64_t last,
                         struct gain *gain)
{
    if (event->step == first && !gain->has_first) {
        gain->has_first = true;
        gain->first_s = event->value;
        gain->first_ns = event->begin_ns;
    } else if (event->step == last && !gain->has_last) {
        gain->has_last = true;
        gain->last_s = event->value;
        gain->last_ns = event->begin_ns;
    }
}

/* Of a process: gains of a step, and its messages. */
struct process_gain {
    double compute_s, messages_s, all_s, ends, bytes, passed_s;
    bool is_known;
};

/* Sums count for themselves, so a receiver moves what it copies alone. */
static double moved_bytes(const struct timeline_event *event, bool lends)
{
    bool is_added =
        observed_has_values(event) && (strcmp(event->message, "PUSH") == 0 ||
                                       (strcmp(event->message, "CHUNK") == 0 && event->hop == 1));
    return lends && (event->kind == TRACE_SEND || is_added) ? 0 : (double)event->bytes;
}

static double of_step(const struct gain *gain, uint64_t steps)
{
    return gain->has_first && gain->has_last ? (gain->last_s - gain->first_s) / (double)steps : 0;
}

static void take_thread(const struct timeline *timeline, const struct timeline_thread *thread,
                        uint64_t first, uint64_t last, bool lends, struct process_gain *process)
{
    struct gain own = {0}, all = {0};
    uint64_t steps = last - first;
    bool computes = thread->thread == TRACE_COMPUTE, is_shard = thread->thread == TRACE_SHARD;
    for (size_t i = thread->first; i < thread->first + thread->count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        bool is_end = event->kind == TRACE_SEND || event->kind == TRACE_RECEIVE ||
                      event->kind == TRACE_SHARD_RECEIVE;
        if (event->kind == TRACE_THREAD_CPU) {
            take_counter(event, first, last, &own);
        } else if (event->kind == TRACE_PROCESS_CPU) {
            take_counter(event, first, last, &all);
        } else if (is_end && event->step >= first && event->step < last &&
                   observed_is_of_exchange(event)) {
            process->ends += 1 / (double)steps;
            process->bytes += moved_bytes(event, lends) / (double)steps;
        }
    }
    *(computes ? &process->compute_s : &process->messages_s) += of_step(&own, steps);
    if ((computes || is_shard) && all.has_first && all.has_last) {
        process->is_known = true;
        process->all_s = of_step(&all, steps);
        process->passed_s = 1e-9 * (double)(all.last_ns - all.first_ns) / (double)steps;
    }
}

static void add_process(const struct process_gain *process, struct observed_cpu *cpu)
{
    double others_s = process->all_s - process->compute_s - process->messages_s;
    cpu->processes++;
    cpu->compute_s += process->compute_s;
    cpu->messages_s += process->messages_s;
    cpu->others_s += others_s > 0 ? others_s : 0;
    cpu->ends += process->ends;
    cpu->bytes += process->bytes;
}

static void divide(struct observed_cpu *cpu)
{
    if (cpu->processes > 0) {
        cpu->compute_s /= cpu->processes;
        cpu->messages_s /= cpu->processes;
        cpu->others_s /= cpu->processes;
        cpu->ends /= cpu->processes;
        cpu->bytes /= cpu->processes;
    }
}

void observed_cores_make(const struct timeline *timeline, uint64_t first, uint64_t end, bool lends,
                         struct observed_cores *ret_cores)
{
    struct observed_cores seen = {.busy = 0};
    double passed_s = 0, all_s = 0;
    for (uint32_t p = 0; p < timeline->process_count && end > first + 1; p++) {
        struct process_gain process = {0};
        bool is_worker = false;
        for (size_t i = 0; i < timeline->thread_count; i++) {
            const struct timeline_thread *thread = &timeline->threads[i];
            if (thread->process == p &&
                (thread->thread == TRACE_COMPUTE || thread->thread == TRACE_COMMUNICATION ||
                 thread->thread == TRACE_SHARD)) {
                take_thread(timeline, thread, first, end - 1, lends, &process);
                is_worker = is_worker || thread->thread == TRACE_COMPUTE;
            }
        }
        if (process.is_known) {
            add_process(&process, is_worker ? &seen.workers : &seen.servers);
            all_s += process.all_s;
            passed_s = process.passed_s > passed_s ? process.passed_s : passed_s;
        }
    }
    divide(&seen.workers);
    divide(&seen.servers);
    seen.step_s = passed_s;
    seen.busy = passed_s > 0 ? all_s / passed_s : 0;
    *ret_cores = seen;
}

/* A slice of a thread, and what slices within it had. */
struct open_slice {
    size_t event;
    uint64_t within_ns;
};

static bool is_slice(const struct timeline_event *event)
{
    return event->begin_ns < event->end_ns && trace_kinds[event->kind].unit == NULL;
}

static void close_slice(const struct timeline *timeline, const struct open_slice *slice,
                        uint64_t *ret_ns)
{
    uint64_t cpu_ns = timeline->events[slice->event].cpu_ns;
    if (cpu_ns != TIMELINE_CPU_UNKNOWN) {
        ret_ns[slice->event] = cpu_ns > slice->within_ns ? cpu_ns - slice->within_ns : 0;
    }
}

static void take_slices(const struct timeline *timeline, const struct timeline_thread *thread,
                        uint64_t *ret_ns)
{
    struct open_slice open[NESTING_MAX];
    uint32_t depth = 0;
    for (size_t i = thread->first; i < thread->first + thread->count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        if (!is_slice(event)) {
            continue;
        }
        while (depth > 0 && timeline->events[open[depth - 1].event].end_ns <= event->begin_ns) {
            close_slice(timeline, &open[--depth], ret_ns);
        }
        if (depth > 0 && event->cpu_ns != TIMELINE_CPU_UNKNOWN) {
            open[depth - 1].within_ns += event->cpu_ns;
        }
        if (depth < NESTING_MAX) {
            open[depth++] = (struct open_slice){i, 0};
        }
    }
    while (depth > 0) {
        close_slice(timeline, &open[--depth], ret_ns);
    }
}

void observed_own_ns(const struct timeline *timeline, const uint64_t *passed_ns, uint64_t *ret_ns)
{
    memcpy(ret_ns, passed_ns, timeline->event_count * sizeof(*ret_ns));
    for (size_t i = 0; i < timeline->thread_count; i++) {
        take_slices(timeline, &timeline->threads[i], ret_ns);
    }
}
