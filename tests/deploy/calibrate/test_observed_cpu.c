/* Timelines whose counters and slices say how long cores worked. */
#include "deploy/calibrate/observed_cpu.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <math.h>

#define EVENTS_MAX 256
#define STEPS      8
#define MS         UINT64_C(1000000)

static struct timeline_event events[EVENTS_MAX];
static struct timeline_thread threads[4];
static struct timeline_process processes[2];
static struct timeline timeline;

static void begin_thread(uint32_t process, enum trace_thread kind)
{
    threads[timeline.thread_count++] =
        (struct timeline_thread){.process = process, .thread = kind, .first = timeline.event_count};
}

static struct timeline_event *put(enum trace_kind kind, uint64_t step, uint64_t begin_ns,
                                  uint64_t end_ns)
{
    struct timeline_event *event = &events[timeline.event_count++];
    *event = (struct timeline_event){.kind = kind,
                                     .step = step,
                                     .begin_ns = begin_ns,
                                     .end_ns = end_ns,
                                     .thread = (uint32_t)timeline.thread_count - 1,
                                     .cpu_ns = TIMELINE_CPU_UNKNOWN};
    threads[timeline.thread_count - 1].count++;
    return event;
}

static void count(enum trace_kind kind, uint64_t step, double seconds)
{
    put(kind, step, step * 10 * MS, step * 10 * MS)->value = seconds;
}

static int reset(void **state)
{
    (void)state;
    timeline = (struct timeline){
        .processes = processes, .process_count = 2, .threads = threads, .events = events};
    return 0;
}

static void check_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) {
        fail_msg("%.12g instead of %.12g", value, expected);
    }
}

/* A worker whose step is 4 ms of computing, 1 ms of messages and 0.5 ms of others, and a server. */
static void counters_say_what_each_kind_of_threads_took(void **state)
{
    (void)state;
    struct observed_cores seen;
    begin_thread(0, TRACE_COMPUTE);
    for (uint64_t step = 0; step < STEPS; step++) {
        count(TRACE_THREAD_CPU, step, 1 + 4e-3 * (double)step);
        count(TRACE_PROCESS_CPU, step, 3 + 5.5e-3 * (double)step);
    }
    begin_thread(0, TRACE_COMMUNICATION);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (uint32_t bucket = 0; bucket < 2; bucket++) {
            struct timeline_event *send =
                put(TRACE_SEND, step, step * 10 * MS + bucket, step * 10 * MS + bucket + 1);
            send->message = "PUSH";
            send->bytes = 1000;
            count(TRACE_THREAD_CPU, step, 2 + 1e-3 * (double)step + 1e-4 * bucket);
            count(TRACE_PROCESS_CPU, step, 0); // of other moments than those of the steps
        }
    }
    begin_thread(1, TRACE_SHARD);
    for (uint64_t step = 0; step < STEPS; step++) {
        put(TRACE_SHARD_RECEIVE, step, step * 10 * MS, step * 10 * MS + 1)->message = "TAKEN";
        count(TRACE_THREAD_CPU, step, 2e-3 * (double)step);
        count(TRACE_PROCESS_CPU, step, 3e-3 * (double)step);
    }
    observed_cores_make(&timeline, 2, STEPS, false, &seen);
    assert_int_equal(seen.workers.processes, 1);
    check_near(seen.workers.compute_s, 4e-3);
    check_near(seen.workers.messages_s, 1e-3);
    check_near(seen.workers.others_s, 0.5e-3);
    check_near(seen.workers.ends, 2);
    check_near(seen.workers.bytes, 2000);
    assert_int_equal(seen.servers.processes, 1);
    check_near(seen.servers.messages_s, 2e-3);
    check_near(seen.servers.others_s, 1e-3);
    check_near(seen.servers.ends, 1);
    assert_true(seen.servers.bytes == 0);
    check_near(seen.step_s, 10e-3);
    check_near(seen.busy, 0.85); // of 10 ms: 5.5 and 3
}

static void put_message(enum trace_kind kind, uint64_t step, const char *name, uint32_t bytes)
{
    struct timeline_event *event = put(kind, step, step * 10 * MS, step * 10 * MS + 1);
    event->message = name;
    event->bytes = bytes;
}

/* A worker pushes 1000 bytes, and copies 400 and a chunk's 50 of what it is lent; chunks of the
 * first hop are added up, as pushes are. */
static void of_what_is_lent_its_reader_moves_what_it_copies(void **state)
{
    (void)state;
    struct observed_cores seen;
    begin_thread(0, TRACE_COMPUTE);
    for (uint64_t step = 0; step < STEPS; step++) {
        count(TRACE_THREAD_CPU, step, 4e-3 * (double)step);
        count(TRACE_PROCESS_CPU, step, 5e-3 * (double)step);
    }
    begin_thread(0, TRACE_COMMUNICATION);
    for (uint64_t step = 0; step < STEPS; step++) {
        put_message(TRACE_SEND, step, "PUSH", 1000);
        put_message(TRACE_RECEIVE, step, "PARAMS", 400);
        put_message(TRACE_RECEIVE, step, "CHUNK", 70);
        events[timeline.event_count - 1].hop = 1;
        put_message(TRACE_RECEIVE, step, "CHUNK", 50);
        events[timeline.event_count - 1].hop = 2;
    }
    begin_thread(1, TRACE_SHARD);
    for (uint64_t step = 0; step < STEPS; step++) {
        count(TRACE_PROCESS_CPU, step, 1e-3 * (double)step);
        put_message(TRACE_SHARD_RECEIVE, step, "PUSH", 1000);
        put_message(TRACE_SEND, step, "PARAMS", 400);
    }
    observed_cores_make(&timeline, 2, STEPS, true, &seen);
    check_near(seen.workers.ends, 4);
    check_near(seen.workers.bytes, 450);
    check_near(seen.servers.ends, 2);
    assert_true(seen.servers.bytes == 0);
    observed_cores_make(&timeline, 2, STEPS, false, &seen);
    check_near(seen.workers.bytes, 1520);
    check_near(seen.servers.bytes, 1400);
}

static void a_timeline_of_before_says_nothing(void **state)
{
    (void)state;
    struct observed_cores seen;
    begin_thread(0, TRACE_COMPUTE);
    for (uint64_t step = 0; step < STEPS; step++) {
        put(TRACE_STEP, step, step * 10 * MS, step * 10 * MS + MS);
    }
    observed_cores_make(&timeline, 2, STEPS, false, &seen);
    assert_int_equal(seen.workers.processes, 0);
    assert_true(seen.busy == 0);
}

/* A receive of 100 ns of a core, within it a send of 30, within that 10; and one that passed. */
static void what_lies_within_is_taken_off(void **state)
{
    (void)state;
    const uint64_t passed_ns[] = {900, 50, 20, 70};
    uint64_t own_ns[4];
    begin_thread(0, TRACE_COMMUNICATION);
    put(TRACE_RECEIVE, 0, 0, 1000)->cpu_ns = 100;
    put(TRACE_SEND, 0, 100, 200)->cpu_ns = 30;
    put(TRACE_SUM, 0, 110, 130)->cpu_ns = 10;
    put(TRACE_SEND, 0, 2000, 2070);
    observed_own_ns(&timeline, passed_ns, own_ns);
    assert_int_equal(own_ns[0], 70);
    assert_int_equal(own_ns[1], 20);
    assert_int_equal(own_ns[2], 10);
    assert_int_equal(own_ns[3], 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counters_say_what_each_kind_of_threads_took, reset),
        cmocka_unit_test_setup(of_what_is_lent_its_reader_moves_what_it_copies, reset),
        cmocka_unit_test_setup(a_timeline_of_before_says_nothing, reset),
        cmocka_unit_test_setup(what_lies_within_is_taken_off, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
