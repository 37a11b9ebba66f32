/* Critical paths, and replays, of timelines whose answer is known. */
#include "deploy/trace/critical_path.h"
#include "deploy/trace/replay.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 256
#define US         UINT64_C(1000)

/* A timeline by hand: two workers and a server, as a job in ps-sync has them. Times are in
 * microseconds. */
enum { COMPUTE_0, TALK_0, INPUT_0, COMPUTE_1, TALK_1, INPUT_1, SHARD, THREADS };

static struct timeline_process processes[] = {
    {.role = "worker", .number = 0}, {.role = "worker", .number = 1}, {.role = "ps"}};
/* Two workers with a GPU each, as a job without a server has them. */
enum { STREAMS = 5 }; // a worker's thread that computes, and the streams of its GPU
enum { HOST, GPU, UP, DOWN, BATCHES };

static struct timeline_thread threads[2 * STREAMS];
static struct timeline_event events[EVENTS_MAX];
static struct timeline timeline;
static struct critical_path path;

static void begin(void)
{
    static const enum trace_thread kinds[] = {TRACE_COMPUTE, TRACE_COMMUNICATION, TRACE_INPUT};
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i] = (struct timeline_thread){.process = i / 3,
                                              .thread = i == SHARD ? TRACE_SHARD : kinds[i % 3],
                                              .number = i == SHARD ? 0 : i / 3};
    }
    timeline = (struct timeline){.processes = processes,
                                 .process_count = 3,
                                 .threads = threads,
                                 .thread_count = THREADS,
                                 .events = events};
}

static void add(uint32_t thread, enum trace_kind kind, uint64_t from_us, uint64_t to_us,
                uint64_t flow)
{
    assert_true(timeline.event_count < EVENTS_MAX);
    events[timeline.event_count++] = (struct timeline_event){.begin_ns = US * from_us,
                                                             .end_ns = US * to_us,
                                                             .kind = kind,
                                                             .thread = thread,
                                                             .flow = flow};
}

static int compare(const void *a, const void *b)
{
    const struct timeline_event *left = a, *right = b;
    if (left->thread != right->thread) {
        return left->thread < right->thread ? -1 : 1;
    }
    if (left->begin_ns != right->begin_ns) {
        return left->begin_ns < right->begin_ns ? -1 : 1;
    }
    return (left->end_ns < right->end_ns) - (left->end_ns > right->end_ns);
}

static void find(struct segments *ret_segments)
{
    struct timeline_flow *flows;
    size_t flow_count;
    qsort(events, timeline.event_count, sizeof(events[0]), compare);
    for (size_t i = 0; i < timeline.event_count; i++) {
        struct timeline_thread *thread = &threads[events[i].thread];
        thread->first = thread->count++ == 0 ? i : thread->first;
    }
    assert_int_equal(timeline_list_flows(&timeline, &flows, &flow_count), STATUS_OK);
    assert_int_equal(timeline_count_impossible(&timeline, flows, flow_count), 0);
    assert_int_equal(segments_make(&timeline, flows, flow_count, ret_segments), STATUS_OK);
    assert_int_equal(critical_path_find(ret_segments, &path), STATUS_OK);
    free(flows);
}

/* How long each part of a step takes, in microseconds. */
struct story {
    uint64_t input[2], backward[2], up[2], update, down[2];
};

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* One step of ps-sync, without a gap: each worker reads, computes and pushes; the shard updates
 * behind the later push and answers both; the step ends when parameters are there. */
static void tell(const struct story *story)
{
    uint64_t arrived[2], updated;
    begin();
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t first = 3 * i; // of a worker: computing, communicating, reading
        uint64_t pixels = story->input[i], computed = pixels + story->backward[i];
        add(first + 2, TRACE_READ, 0, pixels, 0);
        add(first, TRACE_INPUT_WAIT, 0, pixels, 0);
        add(first, TRACE_BACKWARD, pixels, computed, 0);
        add(first, TRACE_READY, computed, computed, 0);
        add(first + 1, TRACE_POSTED, computed, computed + 10, 0);
        add(first + 1, TRACE_SEND, computed + 2, computed + 9, 1 + i);
        arrived[i] = computed + 9 + story->up[i];
    }
    uint32_t late = arrived[1] > arrived[0];
    updated = arrived[late] + story->update;
    add(SHARD, TRACE_SHARD_RECEIVE, arrived[1 - late], arrived[1 - late] + 5, 2 - late);
    add(SHARD, TRACE_SHARD_RECEIVE, arrived[late], updated + 20, 1 + late);
    add(SHARD, TRACE_UPDATE, arrived[late], updated, 0);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t first = 3 * i; // of a worker: computing, communicating, reading
        uint64_t computed = story->input[i] + story->backward[i];
        uint64_t sent = updated + (uint64_t)10 * i, came = sent + 9 + story->down[i];
        add(SHARD, TRACE_SEND, sent, sent + 9, 11 + i);
        add(first + 1, TRACE_RECEIVE, came, came + 5, 11 + i);
        add(first, TRACE_EXCHANGE, computed, came + 5, 0);
        add(first, TRACE_STEP, 0, came + 5, 0);
        timeline.end_ns = max(timeline.end_ns, US * (came + 5));
    }
}

static const struct story even = {{10, 10}, {1000, 1000}, {100, 100}, 200, {100, 100}};

static void expect_limiter(const struct story *story, const char *name)
{
    char found[128];
    struct segments segments;
    tell(story);
    find(&segments);
    critical_name(&timeline, &path.shares[0], found, sizeof(found));
    assert_string_equal(found, name);
    assert_int_equal(path.shares[0].led, 1);
    // What was walked is the whole step, once.
    assert_int_equal(path.step_count, 1);
    assert_true(path.total_ns == timeline.end_ns);
    segments_finish(&segments);
}

static void whoever_is_slow_is_named(void **state)
{
    (void)state;
    struct story story = even;
    story.backward[1] = 5000;
    expect_limiter(&story, "worker 1's backward");
    story = even;
    story.up[0] = 5000;
    expect_limiter(&story, "the link worker 0 -> server 0");
    story = even;
    story.down[1] = 5000;
    expect_limiter(&story, "the link server 0 -> worker 1");
    story = even;
    story.update = 5000;
    expect_limiter(&story, "shard 0's sum and update");
    story = even;
    story.input[1] = 5000;
    expect_limiter(&story, "worker 1's input");
}

static void begin_on_gpus(void)
{
    static const enum trace_thread kinds[STREAMS] = {TRACE_COMPUTE, TRACE_GPU_COMPUTE, TRACE_GPU_UP,
                                                     TRACE_GPU_DOWN, TRACE_GPU_BATCHES};
    for (uint32_t i = 0; i < 2 * STREAMS; i++) {
        threads[i] = (struct timeline_thread){
            .process = i / STREAMS, .thread = kinds[i % STREAMS], .number = i / STREAMS};
    }
    timeline = (struct timeline){.processes = processes,
                                 .process_count = 2,
                                 .threads = threads,
                                 .thread_count = sizeof(threads) / sizeof(threads[0]),
                                 .events = events};
}

/* How long each part of a step takes on a worker's GPU, in microseconds. */
struct gpu_story {
    uint64_t batch, forward, backward, down, up, update;
    bool sums; // in the place of copies and of what the host does with them
};

/* One step of a worker whose host queues everything at 10, waits for its gradients, and, at
 * `summed`, has the means. Where GPUs sum, it waits for nothing but the end. */
static void tell_gpu(uint32_t worker, const struct gpu_story *story, uint64_t summed, uint64_t end)
{
    uint32_t first = worker * STREAMS;
    uint64_t fed = 10 + story->batch, passed = fed + story->forward;
    uint64_t computed = passed + story->backward;
    add(first + BATCHES, TRACE_GPU_COPY, 10, fed, 0);
    add(first + GPU, TRACE_GPU_FORWARD, fed, passed, 0);
    add(first + GPU, TRACE_GPU_BACKWARD, passed, computed, 0);
    add(first + HOST, TRACE_STEP, 0, end, 0);
    if (story->sums) {
        add(first + DOWN, TRACE_GPU_SUM, computed, summed, 0);
        add(first + GPU, TRACE_GPU_UPDATE, summed, summed + story->update, 0);
        add(first + HOST, TRACE_FORWARD, 0, end, 0);
    } else {
        uint64_t there = computed + story->down;
        add(first + HOST, TRACE_FORWARD, 0, passed + 5, 0);
        add(first + HOST, TRACE_BACKWARD, passed + 5, there, 0);
        add(first + DOWN, TRACE_GPU_COPY, computed, there, 0);
        add(first + UP, TRACE_GPU_COPY, there, there + story->up, 0);
        add(first + GPU, TRACE_GPU_UPDATE, there + story->up, there + story->up + story->update, 0);
        add(first + HOST, TRACE_BACKWARD, there, end, 0); // of the next one, at once
    }
    timeline.end_ns = max(timeline.end_ns, US * end);
}

static uint64_t share_of(const char *name);

/* Threads that queue and wait are no limit: what GPUs do is. */
static void what_a_gpu_does_is_named_not_who_waits_for_it(void **state)
{
    (void)state;
    static const struct gpu_story story = {100, 400, 900, 200, 300, 50, false};
    struct segments segments;
    begin_on_gpus();
    tell_gpu(0, &story, 0, 10 + 100 + 400 + 900 + 200 + 300 + 50);
    find(&segments);
    assert_int_equal(share_of("worker 0's backward"), 900);
    assert_int_equal(share_of("worker 0's forward"), 400 + 10); // with what was before the batch
    assert_int_equal(share_of("worker 0's copying"), 100 + 200 + 300);
    assert_int_equal(share_of("worker 0's optimizer"), 50);
    assert_true(path.total_ns == timeline.end_ns);
    segments_finish(&segments);
}

static void a_sum_of_gpus_waits_for_the_last_of_them(void **state)
{
    (void)state;
    struct gpu_story fast = {.batch = 10, .forward = 100, .backward = 200, .sums = true}, slow;
    struct segments segments;
    fast.update = 20;
    slow = fast;
    slow.backward = 2000;
    uint64_t summed = 10 + 10 + 100 + 2000 + 30;
    begin_on_gpus();
    tell_gpu(0, &fast, summed, summed + 25);
    tell_gpu(1, &slow, summed, summed + 20);
    find(&segments);
    assert_int_equal(share_of("worker 1's backward"), 2000);
    assert_int_equal(share_of("worker 0's backward"), 0);
    assert_int_equal(share_of("worker 0's exchange"), 30); // the sum itself
    assert_true(path.total_ns == timeline.end_ns);
    segments_finish(&segments);
}

static uint64_t share_of(const char *name)
{
    char found[128];
    for (size_t i = 0; i < path.share_count; i++) {
        critical_name(&timeline, &path.shares[i], found, sizeof(found));
        if (strcmp(found, name) == 0) {
            return path.shares[i].ns / US;
        }
    }
    return 0;
}

static void every_part_has_the_time_that_it_took(void **state)
{
    (void)state;
    struct segments segments;
    struct story story = even;
    story.backward[0] = 3000;
    story.down[1] = 400;
    tell(&story);
    find(&segments);
    assert_int_equal(share_of("worker 0's input"), 10);
    assert_int_equal(share_of("worker 0's backward"), 3000);
    assert_int_equal(share_of("the link worker 0 -> server 0"), 100);
    assert_int_equal(share_of("shard 0's sum and update"), 200);
    assert_int_equal(share_of("the link server 0 -> worker 1"), 400);
    assert_int_equal(share_of("worker 1's backward"), 0);
    segments_finish(&segments);
}

/* Cuts what workers compute into layers, three of them with gaps between. */
static void add_layers(void)
{
    size_t count = timeline.event_count;
    for (size_t i = 0; i < count; i++) {
        const struct timeline_event pass = events[i];
        uint64_t third_us = (pass.end_ns - pass.begin_ns) / US / 3;
        for (uint64_t k = 0; k < 3 && pass.kind == TRACE_BACKWARD; k++) {
            uint64_t from_us = pass.begin_ns / US + k * third_us;
            add(pass.thread, TRACE_LAYER_BACKWARD, from_us, from_us + third_us - 2, 0);
        }
    }
}

static double replayed_us(const struct segments *segments, enum replay_change change)
{
    double seconds;
    assert_int_equal(replay_run(segments, change, &seconds), STATUS_OK);
    return round(seconds * 1e6);
}

static void a_replay_gives_what_the_change_would_bring(void **state)
{
    (void)state;
    struct segments segments;
    struct story story = even;
    story.backward[0] = 3000;
    tell(&story);
    find(&segments);
    double was = (double)timeline.end_ns / US;
    assert_true(replayed_us(&segments, REPLAY_AS_IT_WAS) == was);
    // Both pushes come at once then, and the shard takes 5 us for the other one first.
    assert_true(replayed_us(&segments, REPLAY_STRAGGLER) == was - 2000 + 5);
    assert_true(replayed_us(&segments, REPLAY_LINKS) == was - 100); // 50 up, 50 down
    assert_true(replayed_us(&segments, REPLAY_INPUT) == was - 10);
    assert_true(replayed_us(&segments, REPLAY_SERVERS) <= was - 100);
    segments_finish(&segments);
}

/* The same story with and without them has the same shares, and the same replays. */
static void layers_within_backward_count_once(void **state)
{
    (void)state;
    static struct critical_path plain;
    static const struct story slow[] = {
        {{10, 10}, {1000, 5000}, {100, 100}, 200, {100, 100}},
        {{10, 10}, {3000, 1000}, {100, 100}, 200, {100, 400}},
        {{10, 5000}, {1000, 1000}, {100, 100}, 200, {100, 100}},
        {{10, 10}, {1000, 1000}, {100, 100}, 5000, {100, 100}},
        {{10, 10}, {1000, 1000}, {5000, 100}, 200, {100, 100}},
    };
    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
        struct segments segments;
        double before_us[REPLAY_CHANGE_COUNT];
        tell(&slow[i]);
        find(&segments);
        plain = path;
        size_t pieces = segments.count;
        for (int k = 0; k < REPLAY_CHANGE_COUNT; k++) {
            before_us[k] = replayed_us(&segments, (enum replay_change)k);
        }
        segments_finish(&segments);
        tell(&slow[i]);
        add_layers();
        find(&segments);
        assert_true(segments.count >= pieces + 10); // they are there
        assert_true(path.total_ns == plain.total_ns);
        assert_int_equal(path.share_count, plain.share_count);
        for (size_t k = 0; k < path.share_count; k++) {
            assert_int_equal(path.shares[k].what, plain.shares[k].what);
            assert_int_equal(path.shares[k].who, plain.shares[k].who);
            assert_true(path.shares[k].ns == plain.shares[k].ns);
            assert_int_equal(path.shares[k].led, plain.shares[k].led);
        }
        for (int k = 0; k < REPLAY_CHANGE_COUNT; k++) {
            assert_true(replayed_us(&segments, (enum replay_change)k) == before_us[k]);
        }
        segments_finish(&segments);
    }
}

static void a_sum_in_memory_waits_for_the_last_worker(void **state)
{
    (void)state;
    char sentence[256];
    struct segments segments;
    begin();
    static const uint64_t ready[] = {300, 2000};
    for (uint32_t i = 0; i < 2; i++) {
        add(3 * i, TRACE_BACKWARD, 0, ready[i], 0);
        add(3 * i, TRACE_READY, ready[i], ready[i], 0);
        add(3 * i, TRACE_EXCHANGE, ready[i], 2100, 0);
        add(3 * i, TRACE_STEP, 0, 2100, 0);
    }
    find(&segments);
    critical_sentence(&timeline, &path, sentence, sizeof(sentence));
    assert_string_equal(sentence, "worker 1's backward limits 100 % of steps");
    assert_int_equal(share_of("worker 0's backward"), 0);
    segments_finish(&segments);
}

/* A thread that reads may be kept from it between two batches, while its worker waits. */
static void an_input_that_gets_no_turn_is_input(void **state)
{
    (void)state;
    struct segments segments;
    begin();
    add(COMPUTE_0, TRACE_INPUT_WAIT, 0, 100, 0);
    add(COMPUTE_0, TRACE_BACKWARD, 100, 200, 0);
    add(COMPUTE_0, TRACE_INPUT_WAIT, 200, 5000, 0);
    add(COMPUTE_0, TRACE_BACKWARD, 5000, 5100, 0);
    add(COMPUTE_0, TRACE_STEP, 0, 5100, 0);
    add(INPUT_0, TRACE_READ, 0, 100, 0);
    add(INPUT_0, TRACE_READ, 4900, 5000, 0);
    find(&segments);
    assert_int_equal(share_of("worker 0's input"), 5000); // the turn was missed from 100 on
    assert_true(replayed_us(&segments, REPLAY_AS_IT_WAS) == 5100);
    assert_true(replayed_us(&segments, REPLAY_INPUT) == 200);
    segments_finish(&segments);
}

/* Who takes a batch makes room for a later one, whose read may begin before the wait is over. */
static void a_read_of_a_later_batch_holds_nobody_up(void **state)
{
    (void)state;
    struct segments segments;
    begin();
    add(COMPUTE_0, TRACE_BACKWARD, 0, 1000, 0);
    add(COMPUTE_0, TRACE_INPUT_WAIT, 1000, 1050, 0);
    events[timeline.event_count - 1].step = 1;
    add(COMPUTE_0, TRACE_BACKWARD, 1050, 2000, 0);
    add(COMPUTE_0, TRACE_STEP, 0, 2000, 0);
    add(INPUT_0, TRACE_READ, 0, 30, 0);
    events[timeline.event_count - 1].step = 1;
    add(INPUT_0, TRACE_READ, 1020, 1060, 0);
    events[timeline.event_count - 1].step = 2;
    find(&segments);
    assert_true(share_of("worker 0's input") <= 50); // the wait itself
    size_t read = segments_before(&segments, INPUT_0, US * 1050);
    size_t wait = segments_before(&segments, COMPUTE_0, US * 1020);
    assert_int_equal(segments.list[wait].cause, SEGMENT_NONE);
    assert_int_equal(segments.list[read].cause, wait);
    segments_finish(&segments);
}

static void a_timeline_without_steps_limits_nothing(void **state)
{
    (void)state;
    char sentence[256];
    struct segments segments;
    begin();
    find(&segments);
    critical_sentence(&timeline, &path, sentence, sizeof(sentence));
    assert_string_equal(sentence, "no step was recorded");
    segments_finish(&segments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_slow_is_named),
        cmocka_unit_test(every_part_has_the_time_that_it_took),
        cmocka_unit_test(what_a_gpu_does_is_named_not_who_waits_for_it),
        cmocka_unit_test(a_sum_of_gpus_waits_for_the_last_of_them),
        cmocka_unit_test(a_replay_gives_what_the_change_would_bring),
        cmocka_unit_test(layers_within_backward_count_once),
        cmocka_unit_test(a_sum_in_memory_waits_for_the_last_worker),
        cmocka_unit_test(an_input_that_gets_no_turn_is_input),
        cmocka_unit_test(a_read_of_a_later_batch_holds_nobody_up),
        cmocka_unit_test(a_timeline_without_steps_limits_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
