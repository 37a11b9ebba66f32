/* Cuts slices into pieces, and looks for the cause of each. */
#include "deploy/trace/segments.h"

#include <stdlib.h>

#define NESTING_MAX 32
#define IDLE_NS     20000 // a thread without anything for so long had to be woken
#define GPU_IDLE_NS 2000  // likewise of a stream of a GPU, which nobody wakes
#define GPU_SURE_NS 1000  // how well the clocks of its streams agree

/* A bucket's gradients were ready, or the GPU came to their sum. */
struct ready {
    uint64_t step, time_ns;
    uint32_t bucket, thread;
    bool is_sum;
};

struct maker {
    const struct timeline *timeline;
    const struct timeline_flow *flows;
    size_t flow_count;
    struct segments *segments;
    size_t *origins;       // (count), owned: the event whose beginning a segment is; SIZE_MAX: none
    struct ready *readies; // (ready_count), owned; by step, then by time
    size_t ready_count;
    bool sums_in_memory; // no bucket is posted to a thread that communicates
    bool *has_gpu;       // (process_count), owned: streams of a GPU are recorded
};

static bool is_receive(enum trace_kind kind)
{
    return kind == TRACE_RECEIVE || kind == TRACE_SHARD_RECEIVE || kind == TRACE_CONTROL;
}

static bool is_point(const struct timeline_event *event)
{
    return event->begin_ns == event->end_ns || trace_kinds[event->kind].unit != NULL;
}

/* Slices that are open, as indices of events. */
struct stack {
    size_t events[NESTING_MAX];
    uint32_t depth;
};

/* What began at that time: the outermost that has a cause. */
static size_t origin_at(const struct maker *maker, const struct stack *stack, uint64_t time_ns)
{
    const struct timeline_event *events = maker->timeline->events;
    for (uint32_t i = 0; i < stack->depth; i++) {
        if (events[stack->events[i]].begin_ns == time_ns) {
            return stack->events[i];
        }
    }
    return SIZE_MAX;
}

static bool is_stream(enum trace_thread thread)
{
    return thread == TRACE_GPU_COMPUTE || thread == TRACE_GPU_BATCHES || thread == TRACE_GPU_UP ||
           thread == TRACE_GPU_DOWN;
}

/* A thread that computes on a GPU does nothing but wait for it. */
static bool is_wait(const struct maker *maker, const struct timeline_event *event)
{
    enum trace_kind kind = event->kind;
    if (kind == TRACE_FORWARD || kind == TRACE_BACKWARD) {
        return maker->has_gpu[maker->timeline->threads[event->thread].process];
    }
    return kind == TRACE_EXCHANGE || kind == TRACE_INPUT_WAIT || kind == TRACE_GPU_SUM;
}

/* The innermost open slice, from `from` to `to`. */
static void add(struct maker *maker, const struct stack *stack, uint64_t from, uint64_t to)
{
    const struct timeline_event *event = &maker->timeline->events[stack->events[stack->depth - 1]];
    if (from >= to) {
        return;
    }
    struct segments *segments = maker->segments;
    maker->origins[segments->count] = origin_at(maker, stack, from);
    segments->list[segments->count++] = (struct segment){
        .begin_ns = from,
        .end_ns = to,
        .thread = event->thread,
        .event = stack->events[stack->depth - 1],
        .kind = event->kind,
        .is_wait = is_wait(maker, event),
        .cause = SEGMENT_NONE,
    };
}

static void cut_thread(struct maker *maker, const struct timeline_thread *thread)
{
    const struct timeline_event *events = maker->timeline->events;
    struct stack stack = {.depth = 0};
    uint64_t at_ns = 0;
    for (size_t i = thread->first; i < thread->first + thread->count; i++) {
        if (is_point(&events[i])) {
            continue;
        }
        for (uint64_t end_ns;
             stack.depth > 0 &&
             (end_ns = events[stack.events[stack.depth - 1]].end_ns) <= events[i].begin_ns;) {
            add(maker, &stack, at_ns, end_ns);
            at_ns = end_ns;
            stack.depth--;
        }
        if (stack.depth == NESTING_MAX) {
            continue;
        }
        if (stack.depth > 0) {
            add(maker, &stack, at_ns, events[i].begin_ns);
        }
        at_ns = events[i].begin_ns;
        stack.events[stack.depth++] = i;
    }
    while (stack.depth > 0) {
        uint64_t end_ns = events[stack.events[stack.depth - 1]].end_ns;
        add(maker, &stack, at_ns, end_ns);
        at_ns = end_ns > at_ns ? end_ns : at_ns;
        stack.depth--;
    }
}

size_t segments_before(const struct segments *segments, uint32_t thread, uint64_t time_ns)
{
    size_t low = segments->first[thread], high = segments->first[thread + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (segments->list[middle].begin_ns < time_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > segments->first[thread] ? low - 1 : SEGMENT_NONE;
}

static int compare_readies(const void *a, const void *b)
{
    const struct ready *left = a, *right = b;
    if (left->step != right->step) {
        return left->step < right->step ? -1 : 1;
    }
    return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

static enum status list_readies(struct maker *maker)
{
    const struct timeline *timeline = maker->timeline;
    maker->sums_in_memory = true;
    maker->readies = calloc(timeline->event_count + 1, sizeof(*maker->readies));
    if (maker->readies == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < timeline->event_count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        maker->sums_in_memory = maker->sums_in_memory && event->kind != TRACE_POSTED;
        if (event->kind == TRACE_READY || event->kind == TRACE_GPU_SUM) {
            maker->readies[maker->ready_count++] =
                (struct ready){event->step, event->begin_ns, event->bucket, event->thread,
                               event->kind == TRACE_GPU_SUM};
        }
    }
    qsort(maker->readies, maker->ready_count, sizeof(*maker->readies), compare_readies);
    return STATUS_OK;
}

/* Where the readies of a step begin. */
static size_t readies_of(const struct maker *maker, uint64_t step)
{
    size_t low = 0, high = maker->ready_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (maker->readies[middle].step < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Sets the cause: a moment of a thread, if it has done anything by then. */
static void set_cause(const struct maker *maker, struct segment *segment, uint32_t thread,
                      uint64_t time_ns)
{
    size_t cause = segments_before(maker->segments, thread, time_ns);
    if (cause != SEGMENT_NONE && &maker->segments->list[cause] != segment) {
        segment->cause = cause;
        segment->cause_ns = time_ns;
    }
}

static void find_send(const struct maker *maker, struct segment *segment, uint64_t flow)
{
    size_t low = 0, high = maker->flow_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (maker->flows[middle].flow < flow) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == maker->flow_count || maker->flows[low].flow != flow) {
        return;
    }
    const struct timeline_event *send = &maker->timeline->events[maker->flows[low].send];
    uint64_t sent_ns = send->end_ns < segment->begin_ns ? send->end_ns : send->begin_ns;
    if (sent_ns < segment->begin_ns) { // otherwise clocks are not that sure
        set_cause(maker, segment, send->thread, sent_ns);
        segment->has_link = segment->cause != SEGMENT_NONE;
    }
}

/* The post of a bucket: when the thread that computes had it. */
static void find_ready(const struct maker *maker, struct segment *segment,
                       const struct timeline_event *post)
{
    const struct timeline_thread *threads = maker->timeline->threads;
    uint32_t process = threads[post->thread].process;
    for (size_t i = readies_of(maker, post->step);
         i < maker->ready_count && maker->readies[i].step == post->step; i++) {
        const struct ready *ready = &maker->readies[i];
        if (ready->bucket == post->bucket && threads[ready->thread].process == process &&
            !ready->is_sum && ready->time_ns <= segment->begin_ns) {
            set_cause(maker, segment, ready->thread, ready->time_ns);
        }
    }
}

/* The last worker whose gradients were ready by the end of a wait in shared memory. */
static void find_last_ready(const struct maker *maker, struct segment *segment, uint64_t step)
{
    for (size_t i = readies_of(maker, step);
         i < maker->ready_count && maker->readies[i].step == step; i++) {
        const struct ready *ready = &maker->readies[i];
        if (ready->time_ns > segment->begin_ns && ready->time_ns < segment->end_ns &&
            !ready->is_sum && ready->thread != segment->thread) {
            set_cause(maker, segment, ready->thread, ready->time_ns);
        }
    }
}

/* The stream on which a process's GPU computes; the thread itself if there is none. */
static uint32_t computing_beside(const struct maker *maker, uint32_t thread)
{
    const struct timeline *timeline = maker->timeline;
    for (uint32_t i = 0; i < timeline->thread_count; i++) {
        if (timeline->threads[i].process == timeline->threads[thread].process &&
            timeline->threads[i].thread == TRACE_GPU_COMPUTE) {
            return i;
        }
    }
    return thread;
}

/* A sum with other GPUs: what the last of them computed before it came to the same sum. */
static void find_last_sum(const struct maker *maker, struct segment *segment,
                          const struct timeline_event *sum)
{
    for (size_t i = readies_of(maker, sum->step);
         i < maker->ready_count && maker->readies[i].step == sum->step; i++) {
        const struct ready *ready = &maker->readies[i];
        if (ready->is_sum && ready->bucket == sum->bucket && ready->time_ns < segment->end_ns) {
            set_cause(maker, segment, computing_beside(maker, ready->thread), ready->time_ns);
        }
    }
}

/* What let a stream of a GPU go on: the last of its other streams that came to an end, or, if none
 * did while it was idle, the thread that queued. */
static void find_release(const struct maker *maker, size_t index)
{
    const struct timeline *timeline = maker->timeline;
    struct segment *segment = &maker->segments->list[index];
    uint32_t process = timeline->threads[segment->thread].process;
    bool is_first = index == maker->segments->first[segment->thread];
    uint64_t idle_since_ns = is_first ? 0 : segment[-1].end_ns, latest_ns = 0;
    for (uint32_t i = 0; i < timeline->thread_count; i++) {
        const struct timeline_thread *thread = &timeline->threads[i];
        size_t last = segments_before(maker->segments, i, segment->begin_ns);
        if (thread->process != process || i == segment->thread || last == SEGMENT_NONE) {
            continue;
        }
        uint64_t end_ns = maker->segments->list[last].end_ns;
        if (is_stream(thread->thread) && end_ns <= segment->begin_ns + GPU_SURE_NS &&
            end_ns + GPU_SURE_NS > idle_since_ns && end_ns > latest_ns) {
            latest_ns = end_ns;
            segment->cause = last;
            segment->cause_ns = end_ns < segment->begin_ns ? end_ns : segment->begin_ns;
        } else if (thread->thread == TRACE_COMPUTE && latest_ns == 0) {
            set_cause(maker, segment, i, segment->begin_ns);
        }
    }
}

/* A piece of another thread ended a wait, if it is the latest of those that ended, or were under
 * way, within it. */
static void end_wait(const struct maker *maker, struct segment *wait, size_t piece)
{
    uint64_t end_ns = maker->segments->list[piece].end_ns;
    uint64_t at_ns = end_ns < wait->end_ns ? end_ns : wait->end_ns;
    if (at_ns > wait->begin_ns && (wait->cause == SEGMENT_NONE || at_ns > wait->cause_ns)) {
        wait->cause = piece;
        wait->cause_ns = at_ns;
    }
}

/* What a thread of the same process was at when a wait ended, if it was at it within the wait. */
static void find_within(const struct maker *maker, struct segment *segment, enum trace_thread which)
{
    const struct timeline *timeline = maker->timeline;
    uint32_t process = timeline->threads[segment->thread].process;
    for (uint32_t i = 0; i < timeline->thread_count; i++) {
        if (timeline->threads[i].process != process || timeline->threads[i].thread != which) {
            continue;
        }
        size_t last = segments_before(maker->segments, i, segment->end_ns);
        if (last != SEGMENT_NONE) {
            end_wait(maker, segment, last);
        }
    }
}

/* Whether a wait for a batch and a read are of the same one. */
static bool is_same_batch(const struct maker *maker, const struct segment *wait,
                          const struct segment *read)
{
    const struct timeline_event *events = maker->timeline->events;
    return events[wait->event].step == events[read->event].step;
}

/* What ended a wait for a batch: the read of that batch, or the last of its reads. One that began
 * in the wait may be of a later batch: taking what is there makes room for it. */
static void find_read(const struct maker *maker, struct segment *wait)
{
    const struct segments *segments = maker->segments;
    const struct timeline *timeline = maker->timeline;
    uint32_t process = timeline->threads[wait->thread].process;
    for (uint32_t i = 0; i < timeline->thread_count; i++) {
        if (timeline->threads[i].process != process || timeline->threads[i].thread != TRACE_INPUT) {
            continue;
        }
        size_t last = segments_before(segments, i, wait->end_ns);
        // Reads before one that ended too early have ended earlier.
        while (last != SEGMENT_NONE && segments->list[last].end_ns > wait->begin_ns &&
               !is_same_batch(maker, wait, &segments->list[last])) {
            last = last > segments->first[i] ? last - 1 : SEGMENT_NONE;
        }
        if (last != SEGMENT_NONE) {
            end_wait(maker, wait, last);
        }
    }
}

/* Whether a thread waited for a batch when its read began: then it was not what held that up. */
static bool awaits_batch(const struct maker *maker, uint32_t thread, const struct segment *read)
{
    size_t index = segments_before(maker->segments, thread, read->begin_ns);
    const struct segment *segment = index != SEGMENT_NONE ? &maker->segments->list[index] : NULL;
    return segment != NULL && segment->kind == TRACE_INPUT_WAIT &&
           segment->end_ns > read->begin_ns && is_same_batch(maker, segment, read);
}

/* The thread that computes, when this one began to read. */
static void find_taker(const struct maker *maker, struct segment *segment)
{
    const struct timeline *timeline = maker->timeline;
    uint32_t process = timeline->threads[segment->thread].process;
    for (uint32_t i = 0; i < timeline->thread_count; i++) {
        if (timeline->threads[i].process == process &&
            timeline->threads[i].thread == TRACE_COMPUTE && !awaits_batch(maker, i, segment)) {
            set_cause(maker, segment, i, segment->begin_ns);
        }
    }
}

static void find_cause(const struct maker *maker, size_t index)
{
    const struct timeline *timeline = maker->timeline;
    struct segment *segment = &maker->segments->list[index];
    size_t origin = maker->origins[index];
    bool is_first = index == maker->segments->first[segment->thread];
    bool is_gpu = is_stream(timeline->threads[segment->thread].thread);
    segment->was_idle =
        is_first || segment[-1].end_ns + (is_gpu ? GPU_IDLE_NS : IDLE_NS) < segment->begin_ns;
    if (segment->kind == TRACE_INPUT_WAIT) {
        find_read(maker, segment);
        return;
    }
    if (segment->is_wait && (segment->kind == TRACE_FORWARD || segment->kind == TRACE_BACKWARD)) {
        find_within(maker, segment, TRACE_GPU_COMPUTE);
        find_within(maker, segment, TRACE_GPU_DOWN);
        return;
    }
    if (is_gpu && segment->kind != TRACE_GPU_SUM) {
        find_release(maker, index);
        return;
    }
    if (segment->kind == TRACE_EXCHANGE && !maker->sums_in_memory) {
        find_within(maker, segment, TRACE_COMMUNICATION);
        return;
    }
    if (origin == SIZE_MAX) {
        return;
    }
    const struct timeline_event *event = &timeline->events[origin];
    if (segment->kind == TRACE_GPU_SUM) {
        find_last_sum(maker, segment, event);
    } else if (segment->kind == TRACE_EXCHANGE) {
        find_last_ready(maker, segment, event->step);
    } else if (is_receive(event->kind) && event->flow != 0) {
        find_send(maker, segment, event->flow);
    } else if (event->kind == TRACE_POSTED) {
        find_ready(maker, segment, event);
    } else if (event->kind == TRACE_READ && segment->was_idle) {
        find_taker(maker, segment);
    }
}

static enum status make(struct maker *maker)
{
    const struct timeline *timeline = maker->timeline;
    struct segments *segments = maker->segments;
    // A slice is cut into at most one piece more than it contains slices.
    size_t most = 2 * timeline->event_count + 1;
    segments->list = calloc(most, sizeof(*segments->list));
    segments->first = calloc(timeline->thread_count + 1, sizeof(*segments->first));
    maker->origins = calloc(most, sizeof(*maker->origins));
    maker->has_gpu = calloc(timeline->process_count + 1, sizeof(*maker->has_gpu));
    if (maker->has_gpu == NULL || segments->list == NULL || segments->first == NULL ||
        maker->origins == NULL || list_readies(maker) != STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < timeline->thread_count; i++) {
        const struct timeline_thread *thread = &timeline->threads[i];
        maker->has_gpu[thread->process] =
            maker->has_gpu[thread->process] || is_stream(thread->thread);
    }
    for (size_t i = 0; i < timeline->thread_count; i++) {
        segments->first[i] = segments->count;
        cut_thread(maker, &timeline->threads[i]);
    }
    segments->first[timeline->thread_count] = segments->count;
    for (size_t i = 0; i < segments->count; i++) {
        find_cause(maker, i);
    }
    return STATUS_OK;
}

enum status segments_make(const struct timeline *timeline, const struct timeline_flow *flows,
                          size_t flow_count, struct segments *ret_segments)
{
    struct segments segments = {.timeline = timeline};
    struct maker maker = {
        .timeline = timeline, .flows = flows, .flow_count = flow_count, .segments = &segments};
    enum status status = make(&maker);
    free(maker.origins);
    free(maker.readies);
    free(maker.has_gpu);
    if (status != STATUS_OK) {
        segments_finish(&segments);
        return status;
    }
    *ret_segments = segments;
    return STATUS_OK;
}

void segments_finish(struct segments *segments)
{
    free(segments->list);
    free(segments->first);
    *segments = (struct segments){0};
}
