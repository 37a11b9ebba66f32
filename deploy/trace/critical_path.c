/* Walks back from the ends of steps. */
#include "deploy/trace/critical_path.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[CRITICAL_WHAT_COUNT] = {
    [CRITICAL_FORWARD] = "forward",
    [CRITICAL_BACKWARD] = "backward",
    [CRITICAL_OPTIMIZER] = "optimizer",
    [CRITICAL_DELAY] = "planned delay",
    [CRITICAL_EXCHANGE] = "exchange",
    [CRITICAL_INPUT] = "input",
    [CRITICAL_MESSAGES] = "handling of messages",
    [CRITICAL_UPDATE] = "sum and update",
    [CRITICAL_COPY] = "copying",
    [CRITICAL_OTHER] = "other work",
    [CRITICAL_LINK] = "link",
};

const char *critical_what_name(enum critical_what what)
{
    return names[what];
}

static enum critical_what what_of(enum trace_kind kind)
{
    switch (kind) {
    case TRACE_FORWARD:
    case TRACE_LAYER_FORWARD:
    case TRACE_GPU_FORWARD:
        return CRITICAL_FORWARD;
    case TRACE_BACKWARD:
    case TRACE_LAYER_BACKWARD:
    case TRACE_GPU_BACKWARD:
        return CRITICAL_BACKWARD;
    case TRACE_OPTIMIZER:
    case TRACE_GPU_UPDATE:
        return CRITICAL_OPTIMIZER;
    case TRACE_DELAY:
        return CRITICAL_DELAY;
    case TRACE_EXCHANGE:
    case TRACE_GPU_SUM:
        return CRITICAL_EXCHANGE;
    case TRACE_GPU_COPY:
        return CRITICAL_COPY;
    case TRACE_READ:
    case TRACE_INPUT_WAIT:
        return CRITICAL_INPUT;
    case TRACE_POSTED:
    case TRACE_SEND:
    case TRACE_RECEIVE:
    case TRACE_SHARD_RECEIVE:
    case TRACE_CONTROL:
        return CRITICAL_MESSAGES;
    case TRACE_SUM:
    case TRACE_UPDATE:
    case TRACE_SUM_AND_UPDATE:
        return CRITICAL_UPDATE;
    case TRACE_STEP:
    case TRACE_READY:
    case TRACE_AFTER_STEP:
    case TRACE_EVALUATION: // comes between two steps
    case TRACE_IMAGES_PER_SECOND:
    case TRACE_STALENESS:
    case TRACE_QUEUED:
    case TRACE_THREAD_CPU:
    case TRACE_PROCESS_CPU:
    case TRACE_KIND_COUNT:
        break;
    }
    return CRITICAL_OTHER;
}

/* A walk: where it is, and how far back it goes. */
struct walk {
    const struct segments *segments;
    struct critical_path *path;
    uint64_t step; // number of the walk, from 1
    uint32_t thread;
    uint64_t at_ns, until_ns;
};

/* Time up to where the walk is counts as something's. */
static void count(struct walk *walk, const struct critical_share *key, uint64_t from_ns)
{
    struct critical_path *path = walk->path;
    from_ns = from_ns > walk->until_ns ? from_ns : walk->until_ns;
    if (from_ns >= walk->at_ns) {
        return;
    }
    size_t i = 0;
    while (i < path->share_count &&
           (path->shares[i].what != key->what || path->shares[i].who != key->who ||
            path->shares[i].to != key->to)) {
        i++;
    }
    if (i == CRITICAL_SHARES_MAX) {
        i--; // the rest, together
    } else if (i == path->share_count) {
        path->shares[path->share_count++] = *key;
    }
    struct critical_share *share = &path->shares[i];
    if (share->step != walk->step) {
        share->step = walk->step;
        share->step_ns = 0;
    }
    uint64_t ns = walk->at_ns - from_ns;
    share->step_ns += ns;
    share->ns += ns;
    path->total_ns += ns;
}

static bool is_of_worker(const struct timeline_thread *thread)
{
    return thread->thread != TRACE_SHARD && thread->thread != TRACE_COORDINATOR;
}

/* The first thread that has the same name: all threads of a rank are its worker. */
static uint32_t namesake(const struct timeline *timeline, uint32_t thread)
{
    const struct timeline_thread *own = &timeline->threads[thread];
    for (uint32_t i = 0; i < thread && is_of_worker(own); i++) {
        const struct timeline_thread *other = &timeline->threads[i];
        if (other->process == own->process && other->number == own->number && is_of_worker(other)) {
            return i;
        }
    }
    return thread;
}

static void count_work(struct walk *walk, enum critical_what what, uint64_t from_ns)
{
    const struct critical_share key = {.what = what,
                                       .who = namesake(walk->segments->timeline, walk->thread)};
    count(walk, &key, from_ns);
}

/* Goes to the cause of a piece; the time in between is the link's, or the thread's that was to be
 * woken. */
static void follow(struct walk *walk, const struct segment *segment)
{
    const struct timeline *timeline = walk->segments->timeline;
    uint32_t thread = walk->segments->list[segment->cause].thread;
    if (segment->has_link) {
        const struct critical_share link = {.what = CRITICAL_LINK,
                                            .who = timeline->threads[thread].process,
                                            .to = timeline->threads[segment->thread].process};
        count(walk, &link, segment->cause_ns);
    } else {
        count_work(walk,
                   what_of(segment->kind) == CRITICAL_EXCHANGE ? CRITICAL_EXCHANGE : CRITICAL_OTHER,
                   segment->cause_ns);
    }
    walk->thread = thread;
    walk->at_ns = segment->cause_ns;
}

/* One piece back. False: the thread has done nothing before. */
static bool go_back(struct walk *walk)
{
    size_t index = segments_before(walk->segments, walk->thread, walk->at_ns);
    if (index == SEGMENT_NONE) {
        return false;
    }
    const struct segment *segment = &walk->segments->list[index];
    if (segment->end_ns < walk->at_ns) {
        // A thread that reads, and is waited for, was not given the processor.
        bool is_input = walk->segments->timeline->threads[walk->thread].thread == TRACE_INPUT;
        count_work(walk, is_input ? CRITICAL_INPUT : CRITICAL_OTHER, segment->end_ns);
        walk->at_ns = segment->end_ns;
        return true;
    }
    bool has_cause = segment->cause != SEGMENT_NONE;
    if (segment->is_wait && has_cause && segment->cause_ns <= walk->at_ns) {
        follow(walk, segment);
        return true;
    }
    count_work(walk, what_of(segment->kind), segment->begin_ns);
    walk->at_ns = segment->begin_ns;
    if (!segment->is_wait && has_cause && segment->was_idle && segment->cause_ns <= walk->at_ns &&
        walk->at_ns > walk->until_ns) {
        follow(walk, segment);
    }
    return true;
}

static void note_leader(struct critical_path *path, uint64_t step)
{
    struct critical_share *leader = NULL;
    for (size_t i = 0; i < path->share_count; i++) {
        struct critical_share *share = &path->shares[i];
        if (share->step == step && (leader == NULL || share->step_ns > leader->step_ns)) {
            leader = share;
        }
    }
    if (leader != NULL) {
        leader->led++;
    }
}

static void walk_step(const struct segments *segments, struct critical_path *path, uint32_t thread,
                      uint64_t from_ns, uint64_t end_ns)
{
    struct walk walk = {.segments = segments,
                        .path = path,
                        .step = ++path->step_count,
                        .thread = thread,
                        .at_ns = end_ns,
                        .until_ns = from_ns};
    // Each turn goes back in time, or to a cause; none of the graph's is passed twice.
    for (size_t i = 0; walk.at_ns > walk.until_ns && i < 2 * segments->count; i++) {
        if (!go_back(&walk)) {
            count_work(&walk, CRITICAL_OTHER, walk.until_ns);
            break;
        }
    }
    note_leader(path, walk.step);
}

/* A step of all workers that have recorded it. */
struct step_end {
    uint64_t step, begin_ns, end_ns;
    uint32_t thread; // that ended last
};

static int compare_steps(const void *a, const void *b)
{
    const struct step_end *left = a, *right = b;
    if (left->step != right->step) {
        return left->step < right->step ? -1 : 1;
    }
    return (left->end_ns > right->end_ns) - (left->end_ns < right->end_ns);
}

static size_t list_steps(const struct timeline *timeline, struct step_end *steps)
{
    size_t count_of = 0;
    for (size_t i = 0; i < timeline->event_count; i++) {
        const struct timeline_event *event = &timeline->events[i];
        if (event->kind == TRACE_STEP) {
            steps[count_of++] =
                (struct step_end){event->step, event->begin_ns, event->end_ns, event->thread};
        }
    }
    return count_of;
}

/* One entry for each step, of the worker that ended it last. */
static size_t join_steps(struct step_end *steps, size_t step_count)
{
    size_t joined = 0;
    qsort(steps, step_count, sizeof(*steps), compare_steps);
    for (size_t i = 0; i < step_count; i++) {
        if (joined > 0 && steps[joined - 1].step == steps[i].step) {
            uint64_t begin_ns = steps[joined - 1].begin_ns;
            steps[joined - 1] = steps[i];
            steps[joined - 1].begin_ns =
                begin_ns < steps[i].begin_ns ? begin_ns : steps[i].begin_ns;
        } else {
            steps[joined++] = steps[i];
        }
    }
    return joined;
}

static bool is_unsynchronised(const struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->process_count; i++) {
        if (timeline->processes[i].is_unsynchronised) {
            return true;
        }
    }
    return false;
}

static int compare_shares(const void *a, const void *b)
{
    const struct critical_share *left = a, *right = b;
    return (left->ns < right->ns) - (left->ns > right->ns);
}

enum status critical_path_find(const struct segments *segments, struct critical_path *ret_path)
{
    const struct timeline *timeline = segments->timeline;
    struct step_end *steps = calloc(timeline->event_count + 1, sizeof(*steps));
    bool is_joint = !is_unsynchronised(timeline);
    if (steps == NULL) {
        return STATUS_NO_MEMORY;
    }
    ret_path->share_count = 0;
    ret_path->step_count = ret_path->total_ns = 0;
    size_t step_count = list_steps(timeline, steps);
    if (is_joint) {
        step_count = join_steps(steps, step_count);
    }
    for (size_t i = 0; i < step_count; i++) {
        bool follows = is_joint && i > 0 && steps[i - 1].step + 1 == steps[i].step &&
                       steps[i - 1].end_ns < steps[i].end_ns;
        walk_step(segments, ret_path, steps[i].thread,
                  follows ? steps[i - 1].end_ns : steps[i].begin_ns, steps[i].end_ns);
    }
    free(steps);
    qsort(ret_path->shares, ret_path->share_count, sizeof(*ret_path->shares), compare_shares);
    return STATUS_OK;
}

static void name_process(const struct timeline *timeline, uint32_t index, char *ret_text,
                         size_t text_size)
{
    const struct timeline_process *process = &timeline->processes[index];
    bool is_worker = process->role[0] == 'w';
    snprintf(ret_text, text_size, "%s %u", is_worker ? "worker" : "server", process->number);
}

void critical_name_who(const struct timeline *timeline, const struct critical_share *share,
                       char *ret_text, size_t text_size)
{
    char from[32], to[32];
    if (share->what == CRITICAL_LINK) {
        name_process(timeline, share->who, from, sizeof(from));
        name_process(timeline, share->to, to, sizeof(to));
        snprintf(ret_text, text_size, "%s -> %s", from, to);
        return;
    }
    const struct timeline_thread *thread = &timeline->threads[share->who];
    if (thread->thread == TRACE_COORDINATOR) {
        snprintf(ret_text, text_size, "coordinator");
    } else {
        snprintf(ret_text, text_size, "%s %u", thread->thread == TRACE_SHARD ? "shard" : "worker",
                 thread->number);
    }
}

void critical_name(const struct timeline *timeline, const struct critical_share *share,
                   char *ret_text, size_t text_size)
{
    char who[80];
    critical_name_who(timeline, share, who, sizeof(who));
    if (share->what == CRITICAL_LINK) {
        snprintf(ret_text, text_size, "the link %s", who);
    } else {
        snprintf(ret_text, text_size, "%s's %s", who, names[share->what]);
    }
}

/* What a sentence can name: a share, or all messages to a process that several send to. */
struct candidate {
    const struct critical_share *share;
    bool is_group; // all links to share->to
    uint64_t led;
};

/* Where messages of several senders are late, it is not the link between two. */
static struct candidate candidate_of(const struct critical_path *path,
                                     const struct critical_share *share)
{
    struct candidate candidate = {.share = share, .led = share->led};
    for (size_t i = 0; i < path->share_count && share->what == CRITICAL_LINK; i++) {
        const struct critical_share *other = &path->shares[i];
        if (other != share && other->what == CRITICAL_LINK && other->to == share->to &&
            other->ns > share->ns / 4) {
            candidate.is_group = true;
            candidate.led += other->led;
        }
    }
    return candidate;
}

static bool is_same(const struct candidate *a, const struct candidate *b)
{
    return a->is_group && b->is_group && a->share->to == b->share->to;
}

static void name_candidate(const struct timeline *timeline, const struct candidate *candidate,
                           char *ret_text, size_t text_size)
{
    char process[32];
    if (candidate->is_group) {
        name_process(timeline, candidate->share->to, process, sizeof(process));
        snprintf(ret_text, text_size, "the path of all messages to %s", process);
    } else {
        critical_name(timeline, candidate->share, ret_text, text_size);
    }
}

void critical_sentence(const struct timeline *timeline, const struct critical_path *path,
                       char *ret_text, size_t text_size)
{
    struct candidate first = {.share = NULL}, second = {.share = NULL};
    char name[128];
    for (size_t i = 0; i < path->share_count; i++) {
        const struct candidate found = candidate_of(path, &path->shares[i]);
        if (first.share == NULL || (found.led > first.led && !is_same(&found, &first))) {
            second = first;
            first = found;
        } else if ((second.share == NULL || found.led > second.led) && !is_same(&found, &first)) {
            second = found;
        }
    }
    if (first.share == NULL) {
        snprintf(ret_text, text_size, "no step was recorded");
        return;
    }
    name_candidate(timeline, &first, name, sizeof(name));
    int size = snprintf(ret_text, text_size, "%s limits %.0f %% of steps", name,
                        100 * (double)first.led / (double)path->step_count);
    if (second.share != NULL && second.led > 0 && (size_t)size < text_size) {
        name_candidate(timeline, &second, name, sizeof(name));
        snprintf(ret_text + size, text_size - (size_t)size, "; then %s, %.0f %%", name,
                 100 * (double)second.led / (double)path->step_count);
    }
}
