/* Goes through the pieces in the order of time. */
#include "deploy/trace/replay.h"

#include <stdlib.h>

static const char *const names[REPLAY_CHANGE_COUNT] = {
    [REPLAY_AS_IT_WAS] = "as it was",           [REPLAY_LINKS] = "links twice as fast",
    [REPLAY_STRAGGLER] = "no straggler",        [REPLAY_INPUT] = "batches read in no time",
    [REPLAY_SERVERS] = "servers twice as fast",
};

const char *replay_change_name(enum replay_change change)
{
    return names[change];
}

/* When a piece begins and ends now, in ns from the beginning of the timeline. */
struct moment {
    double begin_ns, end_ns;
};

struct order {
    uint64_t key_ns;
    size_t index;
};

struct replay {
    const struct segments *segments;
    enum replay_change change;
    struct moment *moments; // (count), owned
    struct order *order;    // (count), owned
    double *computed_ns;    // (thread_count), owned
    uint32_t straggler;     // thread; UINT32_MAX: there is none
    double straggler_factor;
};

static bool is_computing(enum trace_kind kind)
{
    return kind == TRACE_FORWARD || kind == TRACE_BACKWARD || kind == TRACE_LAYER_FORWARD ||
           kind == TRACE_LAYER_BACKWARD || kind == TRACE_DELAY || kind == TRACE_OPTIMIZER ||
           kind == TRACE_GPU_FORWARD || kind == TRACE_GPU_BACKWARD || kind == TRACE_GPU_UPDATE;
}

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Who computes longest, and what it would take if it were like the others. */
static void find_straggler(struct replay *replay)
{
    const struct segments *segments = replay->segments;
    size_t thread_count = segments->timeline->thread_count, others = 0;
    uint32_t slowest = 0;
    replay->straggler = UINT32_MAX;
    for (size_t i = 0; i < segments->count; i++) {
        const struct segment *segment = &segments->list[i];
        if (is_computing(segment->kind) && !segment->is_wait) {
            replay->computed_ns[segment->thread] += (double)(segment->end_ns - segment->begin_ns);
        }
    }
    for (uint32_t i = 1; i < thread_count; i++) {
        slowest = replay->computed_ns[i] > replay->computed_ns[slowest] ? i : slowest;
    }
    double longest_ns = thread_count > 0 ? replay->computed_ns[slowest] : 0;
    for (size_t i = 0; i < thread_count; i++) {
        if (i != slowest && replay->computed_ns[i] > 0) {
            replay->computed_ns[others++] = replay->computed_ns[i]; // which are read no more
        }
    }
    if (others == 0 || longest_ns <= 0) {
        return;
    }
    qsort(replay->computed_ns, others, sizeof(*replay->computed_ns), compare_numbers);
    double median_ns =
        (replay->computed_ns[others / 2] + replay->computed_ns[(others - 1) / 2]) / 2;
    if (median_ns < longest_ns) {
        replay->straggler = slowest;
        replay->straggler_factor = median_ns / longest_ns;
    }
}

/* How long a piece of work takes now. */
static double work_ns(const struct replay *replay, const struct segment *segment)
{
    double ns = (double)(segment->end_ns - segment->begin_ns);
    enum trace_thread thread = replay->segments->timeline->threads[segment->thread].thread;
    switch (replay->change) {
    case REPLAY_STRAGGLER:
        return segment->thread == replay->straggler && is_computing(segment->kind)
                   ? ns * replay->straggler_factor
                   : ns;
    case REPLAY_INPUT:
        return segment->kind == TRACE_READ ? 0 : ns;
    case REPLAY_SERVERS:
        return thread == TRACE_SHARD ? ns / 2 : ns;
    case REPLAY_AS_IT_WAS:
    case REPLAY_LINKS:
    case REPLAY_CHANGE_COUNT:
        break;
    }
    return ns;
}

/* When a piece's cause comes now: its moment in the cause's piece, or behind it. */
static double cause_ns(const struct replay *replay, const struct segment *segment)
{
    const struct segment *cause = &replay->segments->list[segment->cause];
    const struct moment *moment = &replay->moments[segment->cause];
    double behind_ns = (double)segment->cause_ns - (double)cause->end_ns;
    double at_ns = moment->end_ns + behind_ns;
    return at_ns > moment->begin_ns ? at_ns : moment->begin_ns;
}

static void run_segment(struct replay *replay, size_t index)
{
    const struct segments *segments = replay->segments;
    const struct segment *segment = &segments->list[index];
    struct moment *moment = &replay->moments[index];
    bool is_first = index == segments->first[segment->thread];
    bool has_cause = segment->cause != SEGMENT_NONE;
    double begin_ns = (double)(segment->begin_ns - segments->timeline->begin_ns);
    if (!is_first) {
        bool is_read = replay->change == REPLAY_INPUT && segment->kind == TRACE_READ;
        bool keeps_gap = (!has_cause || segment->is_wait) && !is_read;
        begin_ns =
            moment[-1].end_ns + (keeps_gap ? (double)(segment->begin_ns - segment[-1].end_ns) : 0);
    }
    if (segment->is_wait && has_cause) {
        double end_ns = cause_ns(replay, segment) + (double)(segment->end_ns - segment->cause_ns);
        *moment = (struct moment){begin_ns, end_ns > begin_ns ? end_ns : begin_ns};
        return;
    }
    if (has_cause && segment->was_idle) {
        double delay_ns = (double)(segment->begin_ns - segment->cause_ns);
        delay_ns /= replay->change == REPLAY_LINKS && segment->has_link ? 2 : 1;
        double released_ns = cause_ns(replay, segment) + delay_ns;
        begin_ns = released_ns > begin_ns || is_first ? released_ns : begin_ns;
    }
    *moment = (struct moment){begin_ns, begin_ns + work_ns(replay, segment)};
}

static int compare_order(const void *a, const void *b)
{
    const struct order *left = a, *right = b;
    if (left->key_ns != right->key_ns) {
        return left->key_ns < right->key_ns ? -1 : 1;
    }
    return (left->index > right->index) - (left->index < right->index);
}

static double seconds_of(const struct replay *replay)
{
    const struct segments *segments = replay->segments;
    double first_ns = 0, last_ns = 0;
    bool has_any = false;
    for (size_t i = 0; i < segments->count; i++) {
        const struct moment *moment = &replay->moments[i];
        if (segments->timeline->threads[segments->list[i].thread].thread != TRACE_COMPUTE) {
            continue;
        }
        first_ns = !has_any || moment->begin_ns < first_ns ? moment->begin_ns : first_ns;
        last_ns = !has_any || moment->end_ns > last_ns ? moment->end_ns : last_ns;
        has_any = true;
    }
    return (last_ns - first_ns) / 1e9;
}

enum status replay_run(const struct segments *segments, enum replay_change change,
                       double *ret_seconds)
{
    size_t thread_count = segments->timeline->thread_count;
    struct replay replay = {
        .segments = segments,
        .change = change,
        .moments = calloc(segments->count + 1, sizeof(*replay.moments)),
        .order = calloc(segments->count + 1, sizeof(*replay.order)),
        .computed_ns = calloc(thread_count + 1, sizeof(*replay.computed_ns)),
    };
    enum status status = STATUS_NO_MEMORY;
    if (replay.moments == NULL || replay.order == NULL || replay.computed_ns == NULL) {
        goto end;
    }
    find_straggler(&replay);
    for (size_t i = 0; i < segments->count; i++) {
        const struct segment *segment = &segments->list[i];
        // A wait comes behind the cause that ends it.
        replay.order[i] = (struct order){segment->is_wait ? segment->end_ns : segment->begin_ns, i};
    }
    qsort(replay.order, segments->count, sizeof(*replay.order), compare_order);
    for (size_t i = 0; i < segments->count; i++) {
        run_segment(&replay, replay.order[i].index);
    }
    *ret_seconds = seconds_of(&replay);
    status = STATUS_OK;

end:
    free(replay.moments);
    free(replay.order);
    free(replay.computed_ns);
    return status;
}
