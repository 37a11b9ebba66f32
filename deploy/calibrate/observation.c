/* Sorts what a timeline shows into costs. */
#include "deploy/calibrate/observation.h"

#include "deploy/trace/segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A bucket that a worker has begun to send. */
struct post {
    uint64_t step, begin_ns;
    uint32_t process, bucket;
    size_t event;
    bool adds; // what had come before
};

struct watcher {
    const struct timeline *timeline;
    const struct observation_options *options;
    struct observation *seen;
    uint64_t *own_ns;   // (event_count), owned: of each slice, without those within it
    uint64_t *core_ns;  // likewise: how long a core worked, where that is known
    struct post *posts; // (post_count), owned; by process, step and bucket
    size_t post_count;
    struct observed_pieces pieces; // of the steps that have been taken
    uint64_t first, end;           // steps that count
};

static double seconds(uint64_t ns)
{
    return 1e-9 * (double)ns;
}

static const struct timeline_process *process_of(const struct watcher *watcher,
                                                 const struct timeline_event *event)
{
    const struct timeline *timeline = watcher->timeline;
    return &timeline->processes[timeline->threads[event->thread].process];
}

static bool counts(const struct watcher *watcher, const struct timeline_event *event)
{
    return event->step >= watcher->first && event->step < watcher->end;
}

/* Finds the steps that count: not the first ones, nor the last, whose end is not seen. Whether any
 * worker computes. */
static bool find_steps(struct watcher *watcher)
{
    uint64_t first = UINT64_MAX, last = 0;
    bool computes = false;
    for (size_t i = 0; i < watcher->timeline->event_count; i++) {
        const struct timeline_event *event = &watcher->timeline->events[i];
        if (event->kind == TRACE_STEP) {
            first = event->step < first ? event->step : first;
            last = event->step > last ? event->step : last;
        }
        computes = computes || event->kind == TRACE_BACKWARD;
    }
    watcher->first = first == UINT64_MAX ? 0 : first + OBSERVATION_WARM_STEPS;
    watcher->end = last;
    return computes;
}

static struct observed_layer *find_layer(struct observation *seen, const char *name)
{
    for (uint32_t i = 0; i < seen->layer_count; i++) {
        if (strcmp(seen->layers[i].name, name) == 0) {
            return &seen->layers[i];
        }
    }
    if (seen->layer_count == COSTS_LAYERS_MAX) {
        return NULL;
    }
    struct observed_layer *layer = &seen->layers[seen->layer_count++];
    snprintf(layer->name, sizeof(layer->name), "%s", name);
    return layer;
}

/* Whether a slice of the exchange hands over a bucket, which is work of the step's, and no wait.
 * Where no bucket is posted to another thread, sums are made there. */
static bool hands_over(const struct watcher *watcher, size_t index, size_t end)
{
    const struct timeline_event *event = &watcher->timeline->events[index];
    return watcher->post_count > 0 && index + 1 < end && event[1].kind == TRACE_READY &&
           event[1].begin_ns <= event->end_ns;
}

static void add_piece(struct watcher *watcher, uint32_t piece, double seconds)
{
    observed_pieces_add(&watcher->pieces, watcher->seen->step_count, piece, seconds);
}

/* Takes a slice of a thread that computes. How much of its step's time is of no layer and not the
 * rest either. */
static double take_slice(struct watcher *watcher, size_t index, size_t end, double *layers_s)
{
    const struct timeline_event *event = &watcher->timeline->events[index];
    struct observation *seen = watcher->seen;
    double own_s = seconds(watcher->own_ns[index]);
    struct observed_layer *layer = NULL;
    if (event->kind == TRACE_LAYER_FORWARD || event->kind == TRACE_LAYER_BACKWARD) {
        layer = find_layer(seen, event->name);
    }
    if (layer != NULL) {
        uint32_t forward = OBSERVED_LAYERS + 2 * (uint32_t)(layer - seen->layers);
        add_piece(watcher, forward + (event->kind == TRACE_LAYER_BACKWARD), own_s);
        *layers_s += own_s;
    } else if (event->kind == TRACE_FORWARD) {
        add_piece(watcher, OBSERVED_FORWARD, own_s);
        *layers_s += own_s;
    } else if (event->kind == TRACE_BACKWARD && event->bucket < LAYOUT_BUCKETS_MAX) {
        add_piece(watcher, OBSERVED_BUCKETS + event->bucket, own_s);
        *layers_s += own_s;
    } else if (event->kind == TRACE_OPTIMIZER) {
        seen->optimizer_s += seconds(watcher->core_ns[index]);
        return own_s;
    }
    bool is_wait = event->kind == TRACE_EXCHANGE && !hands_over(watcher, index, end);
    return is_wait || event->kind == TRACE_DELAY ? own_s : 0;
}

/* The next value of the counter of how long cores worked for the thread; false: there is none
 * within a step. */
static bool find_core_s(const struct watcher *watcher, size_t from, double *ret_seconds)
{
    const struct timeline_event *events = watcher->timeline->events;
    for (size_t i = from; i < watcher->timeline->event_count; i++) {
        bool is_over =
            events[i].thread != events[from].thread || (i > from && events[i].kind == TRACE_STEP);
        if (is_over || events[i].kind == TRACE_THREAD_CPU) {
            *ret_seconds = events[i].value;
            return !is_over;
        }
    }
    return false;
}

/* How long a core worked for a step, updates excepted; the time that passed if that is not known.
 */
static double core_step_s(const struct watcher *watcher, size_t begin, size_t end, double passed_s)
{
    const struct timeline_event *events = watcher->timeline->events;
    double before_s = 0, after_s = 0, updates_s = 0;
    if (!watcher->options->has_one_thread || watcher->seen->has_gpu ||
        !find_core_s(watcher, begin, &before_s) || !find_core_s(watcher, end, &after_s)) {
        return passed_s;
    }
    for (size_t i = begin; i < end; i++) {
        updates_s += events[i].kind == TRACE_OPTIMIZER ? seconds(watcher->core_ns[i]) : 0;
    }
    return after_s - before_s - updates_s;
}

/* The events from the beginning of a step to that of the next one. */
static void take_step(struct watcher *watcher, size_t begin, size_t end)
{
    const struct timeline_event *events = watcher->timeline->events;
    double layers_s = 0, others_s = 0,
           all_s = seconds(events[end].begin_ns - events[begin].begin_ns);
    for (size_t i = begin; i < end; i++) {
        others_s += take_slice(watcher, i, end, &layers_s);
    }
    double rest_s = all_s - layers_s - others_s;
    rest_s = rest_s > 0 ? rest_s : 0;
    add_piece(watcher, OBSERVED_REST, rest_s);
    watcher->seen->passed_s += all_s;
    watcher->seen->step_s[watcher->seen->step_count++] =
        core_step_s(watcher, begin, end, layers_s + rest_s);
}

/* The steps of a thread; those with an evaluation behind them do not count. */
static void take_steps(struct watcher *watcher, const struct timeline_thread *thread)
{
    const struct timeline_event *events = watcher->timeline->events;
    size_t begin = SIZE_MAX;
    for (size_t i = thread->first; i < thread->first + thread->count; i++) {
        if (events[i].kind == TRACE_EVALUATION) {
            begin = SIZE_MAX;
        }
        if (events[i].kind != TRACE_STEP) {
            continue;
        }
        if (begin != SIZE_MAX && events[i].step == events[begin].step + 1) {
            take_step(watcher, begin, i);
        }
        begin = counts(watcher, &events[i]) ? i : SIZE_MAX;
    }
}

static int compare_posts(const void *a, const void *b)
{
    const struct post *left = a, *right = b;
    if (left->process != right->process) {
        return left->process < right->process ? -1 : 1;
    }
    if (left->step != right->step) {
        return left->step < right->step ? -1 : 1;
    }
    return (left->bucket > right->bucket) - (left->bucket < right->bucket);
}

static void list_posts(struct watcher *watcher)
{
    for (size_t i = 0; i < watcher->timeline->event_count; i++) {
        const struct timeline_event *event = &watcher->timeline->events[i];
        if (event->kind == TRACE_POSTED && counts(watcher, event)) {
            watcher->posts[watcher->post_count++] =
                (struct post){.step = event->step,
                              .begin_ns = event->begin_ns,
                              .process = watcher->timeline->threads[event->thread].process,
                              .bucket = event->bucket,
                              .event = i};
        }
    }
    qsort(watcher->posts, watcher->post_count, sizeof(*watcher->posts), compare_posts);
}

/* The post of the bucket that a message is of, by the process that has received it; NULL: none. */
static struct post *find_post(const struct watcher *watcher, const struct timeline_event *event)
{
    const struct post key = {.step = event->step,
                             .process = watcher->timeline->threads[event->thread].process,
                             .bucket = event->bucket};
    return watcher->post_count > 0
               ? bsearch(&key, watcher->posts, watcher->post_count, sizeof(key), compare_posts)
               : NULL;
}

static void add_time(struct observed_time *time, double seconds)
{
    time->seconds += seconds;
    time->count++;
}

static void add_sum(struct observed_sums *sums, double bytes, double seconds)
{
    sums->bytes += bytes;
    sums->seconds += seconds;
    sums->count++;
}

/* Of a message with values. A chunk of the first hop is added up as it comes, or, where its bucket
 * has not been posted yet, by the post. */
static void take_receive(struct watcher *watcher, size_t index)
{
    const struct timeline_event *event = &watcher->timeline->events[index];
    struct observation *seen = watcher->seen;
    double own_s = seconds(watcher->core_ns[index]);
    bool is_first = strcmp(event->message, "CHUNK") == 0 && event->hop == 1;
    struct post *post = is_first ? find_post(watcher, event) : NULL;
    if (strcmp(event->message, "PUSH") == 0) {
        seen->served.bytes += (double)event->bytes;
    }
    if (post == NULL) {
        add_time(&seen->receives, own_s);
    } else if (event->begin_ns < post->begin_ns) {
        post->adds = true;
        add_time(&seen->receives, own_s);
    } else if (watcher->options->adds_in_first_hop) {
        add_sum(&seen->sums, (double)event->bytes, own_s);
    }
}

static void take_message(struct watcher *watcher, size_t index)
{
    const struct timeline_event *event = &watcher->timeline->events[index];
    struct observation *seen = watcher->seen;
    double own_s = seconds(watcher->core_ns[index]);
    bool is_receive = event->kind == TRACE_RECEIVE || event->kind == TRACE_SHARD_RECEIVE;
    if (event->kind == TRACE_SEND && observed_has_values(event)) {
        add_time(&seen->sends, own_s);
    } else if (is_receive && observed_has_values(event)) {
        take_receive(watcher, index);
    } else if (event->kind == TRACE_SUM || event->kind == TRACE_UPDATE ||
               event->kind == TRACE_SUM_AND_UPDATE) {
        add_sum(&seen->served, 0, own_s);
    }
}

/* Messages and sums; of sums in the first hop the receive itself is taken off. */
static void take_messages(struct watcher *watcher)
{
    struct observation *seen = watcher->seen;
    for (size_t i = 0; i < watcher->timeline->event_count; i++) {
        if (counts(watcher, &watcher->timeline->events[i])) {
            take_message(watcher, i);
        }
    }
    seen->post_count = watcher->post_count;
    for (size_t i = 0; i < watcher->post_count; i++) {
        if (!watcher->posts[i].adds) {
            add_time(&seen->posts, seconds(watcher->core_ns[watcher->posts[i].event]));
        }
    }
    double receive_s =
        seen->receives.count > 0 ? seen->receives.seconds / (double)seen->receives.count : 0;
    seen->sums.seconds -= receive_s * (double)seen->sums.count;
}

void observed_ways_add(struct observed_ways *ways, const struct fit_point *way, double send_s)
{
    size_t i = 0;
    while (i < ways->size_count && ways->least[i].bytes != way->bytes) {
        i++;
    }
    if (i == OBSERVATION_SIZES_MAX) {
        return;
    }
    if (i == ways->size_count) {
        ways->least[ways->size_count++] = *way;
    }
    bool is_shortest = ways->count == 0 || send_s < ways->least_send_s;
    ways->least_send_s = is_shortest ? send_s : ways->least_send_s;
    ways->least[i].seconds =
        way->seconds < ways->least[i].seconds ? way->seconds : ways->least[i].seconds;
    ways->count++;
}

/* The first process of its host. */
static uint32_t host_of(const struct watcher *watcher, const struct timeline_process *process)
{
    const struct timeline_process *all = watcher->timeline->processes;
    uint32_t i = 0;
    while (strcmp(all[i].host, process->host) != 0) {
        i++;
    }
    return i;
}

/* One more between hosts. */
static void keep_message(struct watcher *watcher, const struct timeline_event *send,
                         const struct timeline_event *receive)
{
    const struct timeline *timeline = watcher->timeline;
    struct observation *seen = watcher->seen;
    bool is_answer = strcmp(send->message, "PARAMS") == 0;
    uint64_t end_ns = receive->begin_ns > send->begin_ns ? receive->begin_ns : send->begin_ns;
    seen->messages[seen->message_count++] =
        (struct observed_message){seconds(send->begin_ns - timeline->begin_ns),
                                  seconds(end_ns - timeline->begin_ns),
                                  (double)send->bytes,
                                  host_of(watcher, process_of(watcher, send)),
                                  host_of(watcher, process_of(watcher, receive)),
                                  is_answer                            ? NETWORK_WAY_ANSWERS
                                  : strcmp(send->message, "PUSH") == 0 ? NETWORK_WAY_PUSHES
                                                                       : NETWORK_WAY_RING};
}

static void take_ways(struct watcher *watcher, const struct timeline_flow *flows, size_t count)
{
    struct observation *seen = watcher->seen;
    uint64_t unsure_ns = 0, quickest_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct timeline_event *send = &watcher->timeline->events[flows[i].send];
        const struct timeline_event *receive = &watcher->timeline->events[flows[i].receive];
        const struct timeline_process *from = process_of(watcher, send);
        const struct timeline_process *to = process_of(watcher, receive);
        if (!observed_is_of_exchange(send) || !counts(watcher, send)) {
            continue;
        }
        uint64_t way_ns =
            receive->begin_ns > send->begin_ns ? receive->begin_ns - send->begin_ns : 0;
        const struct fit_point way = {(double)send->bytes, seconds(way_ns)};
        bool is_within = strcmp(from->host, to->host) == 0;
        observed_ways_add(is_within ? &seen->within : &seen->between, &way,
                          seconds(send->end_ns - send->begin_ns));
        if (!is_within && observed_has_values(send)) {
            keep_message(watcher, send, receive);
        }
        if (!is_within) {
            uint64_t both_ns = from->uncertainty_ns + to->uncertainty_ns;
            unsure_ns = both_ns > unsure_ns ? both_ns : unsure_ns;
            quickest_ns = way_ns < quickest_ns ? way_ns : quickest_ns;
        }
    }
    seen->is_unsure_of_clocks = seen->between.count > 0 && unsure_ns > quickest_ns;
}

static enum status take_all(struct watcher *watcher, const struct timeline_flow *flows,
                            size_t flow_count)
{
    const struct timeline *timeline = watcher->timeline;
    list_posts(watcher);
    for (size_t i = 0; i < timeline->thread_count; i++) {
        watcher->seen->has_gpu =
            watcher->seen->has_gpu || timeline->threads[i].thread == TRACE_GPU_COMPUTE;
    }
    for (size_t i = 0; i < timeline->thread_count; i++) {
        if (timeline->threads[i].thread == TRACE_COMPUTE) {
            take_steps(watcher, &timeline->threads[i]);
        }
    }
    take_messages(watcher);
    take_ways(watcher, flows, flow_count);
    observed_cores_make(timeline, watcher->first, watcher->end, watcher->options->lends,
                        &watcher->seen->cores);
    watcher->seen->job_steps = watcher->end > watcher->first ? watcher->end - watcher->first : 0;
    size_t step_count = watcher->seen->step_count;
    enum status status =
        observed_pieces_tenths(&watcher->pieces, step_count, watcher->seen->piece_s);
    return status == STATUS_OK && step_count > 0
               ? observed_pieces_spreads(&watcher->pieces, step_count, &watcher->seen->spreads)
               : status;
}

static enum status allocate(struct watcher *watcher, const struct timeline_flow *flows,
                            size_t flow_count)
{
    const struct timeline *timeline = watcher->timeline;
    struct segments segments;
    enum status status = segments_make(timeline, flows, flow_count, &segments);
    if (status != STATUS_OK) {
        return status;
    }
    watcher->own_ns = calloc(timeline->event_count + 1, sizeof(*watcher->own_ns));
    watcher->core_ns = calloc(timeline->event_count + 1, sizeof(*watcher->core_ns));
    watcher->posts = calloc(timeline->event_count + 1, sizeof(*watcher->posts));
    watcher->seen->step_s = calloc(timeline->event_count + 1, sizeof(double));
    watcher->seen->messages = calloc(flow_count + 1, sizeof(*watcher->seen->messages));
    bool is_there = watcher->own_ns != NULL && watcher->core_ns != NULL && watcher->posts != NULL &&
                    watcher->seen->step_s != NULL && watcher->seen->messages != NULL;
    for (size_t i = 0; i < segments.count && is_there; i++) {
        const struct segment *segment = &segments.list[i];
        watcher->own_ns[segment->event] += segment->end_ns - segment->begin_ns;
    }
    segments_finish(&segments);
    if (!is_there) {
        return STATUS_NO_MEMORY;
    }
    observed_own_ns(timeline, watcher->own_ns, watcher->core_ns);
    // Each event is of one step, and each step has an event that is no piece, and a rest.
    return observed_pieces_init(&watcher->pieces, timeline->event_count);
}

enum status observation_make(const struct timeline *timeline,
                             const struct observation_options *options,
                             struct observation *ret_observation)
{
    struct watcher watcher = {.timeline = timeline, .options = options, .seen = ret_observation};
    struct timeline_flow *flows = NULL;
    size_t flow_count = 0;
    *ret_observation = (struct observation){0};
    if (!find_steps(&watcher)) {
        return STATUS_END_OF_DATA;
    }
    enum status status = timeline_list_flows(timeline, &flows, &flow_count);
    if (status == STATUS_OK) {
        status = allocate(&watcher, flows, flow_count);
    }
    if (status == STATUS_OK) {
        status = take_all(&watcher, flows, flow_count);
    }
    if (status == STATUS_OK) {
        status = observed_exchange_make(timeline, watcher.own_ns, watcher.first, watcher.end,
                                        &ret_observation->exchange);
    }
    if (status == STATUS_OK && ret_observation->step_count < 2) {
        status = STATUS_INVALID;
    }
    observed_pieces_finish(&watcher.pieces);
    free(watcher.posts);
    free(watcher.own_ns);
    free(watcher.core_ns);
    free(flows);
    if (status != STATUS_OK) {
        observation_finish(ret_observation);
    }
    return status;
}

void observation_finish(struct observation *observation)
{
    free(observation->step_s);
    free(observation->messages);
    observation->step_s = NULL;
    observation->messages = NULL;
}
