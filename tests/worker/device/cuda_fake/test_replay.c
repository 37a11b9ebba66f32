/* Units of launches on the fake runtime: what is launched as it comes, what is captured and
 * replayed, what ends that, and that nothing is ever run twice, or stale. */
#include "tests/worker/device/cuda_fake/capture.h"
#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/replay.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODE  "FAKE_CUDA"
#define UNITS 3

static const struct cuda_pass training = {
    .count = 8, .gradient_scale = 0.125f, .is_training = true};

/* What a unit is to do. */
struct unit {
    cudaStream_t stream;
    struct replay *replay;
    uint32_t launches;
    enum status (*also)(struct unit *unit); // between its launches; or NULL
    uint32_t asked;                         // how often it was asked for its launches
    int done;                               // how many of them have run
    cudaEvent_t event;
    cudaStream_t other;
};

static char said[512];
static uint32_t said_count;

static void write_sentence(enum log_level level, const char *sentence)
{
    assert_int_equal(level, LOG_INFO);
    snprintf(said, sizeof(said), "%s", sentence);
    said_count++;
}

static void count_one(void *argument)
{
    ++**(int **)argument;
}

static enum status launch(void *context)
{
    struct unit *unit = context;
    int *done = &unit->done;
    enum status status = STATUS_OK;
    unit->asked++;
    for (uint32_t i = 0; i < unit->launches && status == STATUS_OK; i++) {
        status = i == 1 && unit->also != NULL ? unit->also(unit) : STATUS_OK;
        if (status == STATUS_OK) {
            status = cuda_check(
                (int)fake_stream_launch(unit->stream, count_one, &done, sizeof(done)), "count");
        }
    }
    return status;
}

/* Runs a unit, and waits: how many launches have run. */
static int run(struct unit *unit, uint32_t index, uint32_t extent)
{
    int before = unit->done;
    const struct replay_unit at = {.index = index, .extent = extent};
    assert_int_equal(replay_run(unit->replay, at, launch, unit), STATUS_OK);
    assert_int_equal(cudaStreamSynchronize(unit->stream), cudaSuccess);
    assert_int_equal(cudaGetLastError(), cudaSuccess); // nothing is left behind
    return unit->done - before;
}

static struct unit open_unit(struct replay *replay, uint32_t launches)
{
    struct unit unit = {.replay = replay, .launches = launches};
    *replay = (struct replay){0};
    said[0] = '\0';
    said_count = 0;
    report_set(write_sentence);
    assert_int_equal(cudaStreamCreateWithFlags(&unit.stream, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&unit.other, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaEventCreateWithFlags(&unit.event, cudaEventDisableTiming), cudaSuccess);
    assert_int_equal(replay_init(replay, unit.stream, UNITS), STATUS_OK);
    replay_begin_pass(replay, &training);
    return unit;
}

static void close_unit(struct unit *unit)
{
    cudaStreamSynchronize(unit->stream);
    replay_finish(unit->replay);
    cudaStreamDestroy(unit->stream);
    cudaStreamDestroy(unit->other);
    cudaEventDestroy(unit->event);
}

static void a_unit_is_asked_twice_and_then_replayed(void **state)
{
    (void)state;
    struct replay replay;
    struct unit unit = open_unit(&replay, 5);
    char text[64];
    for (uint32_t step = 0; step < 5; step++) {
        assert_int_equal(replay_describe(&replay, text, sizeof(text)), step > 1);
        assert_int_equal(run(&unit, 0, 9), 5);
        assert_int_equal(unit.asked, step < 2 ? step + 1 : 2);
    }
    assert_int_equal(run(&unit, 1, 9), 5); // each unit by itself
    assert_int_equal(unit.asked, 3);
    assert_int_equal(run(&unit, 1, 9), 5);
    assert_int_equal(run(&unit, 1, 9), 5);
    assert_int_equal(unit.asked, 4);
    assert_true(replay_describe(&replay, text, sizeof(text)));
    assert_string_equal(text, "10 launches in 2 CUDA graphs");
    assert_int_equal(said_count, 0);
    close_unit(&unit);
}

/* What differs in one field is another pass: it is asked for its own launches. */
static void another_pass_has_graphs_of_its_own(void **state)
{
    (void)state;
    struct cuda_pass passes[4] = {training, training, training, training};
    passes[1].count = 7;
    passes[2].gradient_scale = 0.25f;
    passes[3].is_training = false;
    struct replay replay;
    struct unit unit = open_unit(&replay, 3);
    for (uint32_t step = 0; step < 4; step++) {
        for (uint32_t i = 0; i < 4; i++) {
            replay_begin_pass(&replay, &passes[i]);
            assert_int_equal(run(&unit, 0, 9), 3);
            assert_int_equal(unit.asked, step < 2 ? 4 * step + i + 1 : 8);
        }
    }
    struct cuda_pass fifth = training;
    fifth.count = 1;
    for (uint32_t step = 0; step < 4; step++) { // one more than there is room for
        replay_begin_pass(&replay, &fifth);
        assert_int_equal(run(&unit, 0, 9), 3);
        assert_int_equal(unit.asked, 8 + step + 1);
    }
    replay_begin_pass(&replay, &passes[3]);
    assert_int_equal(run(&unit, 0, 9), 3);
    assert_int_equal(unit.asked, 12);
    close_unit(&unit);
}

static void what_cannot_be_the_same_is_launched_as_it_comes(void **state)
{
    (void)state;
    struct cuda_pass waiting = training;
    waiting.sums_over_workers = true;
    struct replay replay;
    struct unit unit = open_unit(&replay, 3);
    replay_begin_pass(&replay, &waiting);
    for (uint32_t step = 0; step < 4; step++) {
        assert_int_equal(run(&unit, 0, 9), 3);
        assert_int_equal(unit.asked, step + 1);
    }
    replay_begin_pass(&replay, &training);
    unit.asked = 0;
    for (uint32_t step = 0; step < 6; step++) { // every second time as far as before
        assert_int_equal(run(&unit, 0, step % 2), 3);
        assert_int_equal(unit.asked, step < 4 ? step + 1 : 4 + (step == 5));
    }
    unit.launches = 2; // too few
    unit.asked = 0;
    for (uint32_t step = 0; step < 4; step++) {
        assert_int_equal(run(&unit, 1, 9), 2);
        assert_int_equal(unit.asked, step == 0 ? 1 : step + 2); // once to find that out
    }
    assert_int_equal(said_count, 0);
    close_unit(&unit);
}

static void a_unit_that_has_moved_is_captured_anew(void **state)
{
    (void)state;
    struct replay replay;
    struct unit unit = open_unit(&replay, 3);
    char text[64];
    for (uint32_t extent = 9; extent > 6; extent--) {
        unit.asked = 0;
        unit.launches++;
        for (uint32_t step = 0; step < 5; step++) {
            assert_int_equal(run(&unit, 0, extent), unit.launches);
            assert_int_equal(unit.asked, step < 2 ? step + 1 : 2);
        }
    }
    assert_true(replay_describe(&replay, text, sizeof(text)));
    assert_string_equal(text, "6 launches in 1 CUDA graphs");
    unit.launches = 2; // too few there, enough where it goes next
    for (uint32_t step = 0; step < 3; step++) {
        assert_int_equal(run(&unit, 0, 5), 2);
    }
    assert_false(replay_describe(&replay, text, sizeof(text)));
    unit.launches = 4;
    for (uint32_t step = 0; step < 3; step++) {
        assert_int_equal(run(&unit, 0, 4), 4);
    }
    assert_true(replay_describe(&replay, text, sizeof(text)));
    assert_int_equal(said_count, 0);
    close_unit(&unit);
}

static enum status allocate(struct unit *unit)
{
    void *memory = NULL;
    (void)unit;
    enum status status = cuda_check((int)cudaMalloc(&memory, 1), "get memory");
    return status == STATUS_OK ? cuda_check((int)cudaFree(memory), "free memory") : status;
}

static enum status synchronize(struct unit *unit)
{
    return cuda_check((int)cudaStreamSynchronize(unit->stream), "wait");
}

/* Which not even looks at the answer. */
static enum status query(struct unit *unit)
{
    (void)cudaEventQuery(unit->event);
    return STATUS_OK;
}

/* For what was recorded outside. */
static enum status wait_for_event(struct unit *unit)
{
    return cuda_check((int)cudaStreamWaitEvent(unit->stream, unit->event, 0), "wait for an event");
}

/* Another stream follows, and nobody waits for that. */
static enum status fork(struct unit *unit)
{
    cudaStream_t other;
    cudaEvent_t event;
    assert_int_equal(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    assert_int_equal(cudaEventRecord(event, unit->stream), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    cudaStreamDestroy(other);
    cudaEventDestroy(event);
    return STATUS_OK;
}

/* Another stream goes on beside the unit, and the unit behind it. */
static enum status branch_off(struct unit *unit)
{
    int *done = &unit->done;
    int result = (int)cudaEventRecord(unit->event, unit->stream);
    if (result == 0) {
        result = (int)cudaStreamWaitEvent(unit->other, unit->event, 0);
    }
    if (result == 0) {
        result = (int)fake_stream_launch(unit->other, count_one, &done, sizeof(done));
    }
    if (result == 0) {
        result = (int)cudaEventRecord(unit->event, unit->other);
    }
    if (result == 0) {
        result = (int)cudaStreamWaitEvent(unit->stream, unit->event, 0);
    }
    return cuda_check(result, "branch off");
}

/* The branch is launched with the unit, in the order that was captured: a counter that both of them
 * count up would otherwise lose counts, or be a race. */
static void a_branch_that_is_joined_is_a_part_of_the_graph(void **state)
{
    (void)state;
    struct replay replay;
    struct unit unit = open_unit(&replay, 3);
    char text[64];
    unit.also = branch_off;
    for (uint32_t step = 0; step < 20; step++) {
        assert_int_equal(run(&unit, 0, 9), 4);
        assert_int_equal(unit.asked, step < 2 ? step + 1 : 2);
    }
    assert_true(replay_describe(&replay, text, sizeof(text)));
    assert_string_equal(text, "4 launches in 1 CUDA graphs");
    assert_int_equal(said_count, 0);
    close_unit(&unit);
}

/* Captured only if it is asked for the second time. */
static enum status fail_when_captured(struct unit *unit)
{
    return unit->asked == 2 ? STATUS_DEVICE : STATUS_OK;
}

static void what_may_not_be_captured_ends_it_for_good(void **state)
{
    (void)state;
    static enum status (*const bad[])(struct unit * unit) = {
        allocate, synchronize, query, wait_for_event, fork, fail_when_captured};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct replay replay;
        struct unit unit = open_unit(&replay, 3);
        assert_int_equal(cudaEventRecord(unit.event, unit.stream), cudaSuccess);
        assert_int_equal(run(&unit, 0, 9), 3);
        assert_int_equal(run(&unit, 0, 9), 3);
        assert_int_equal(run(&unit, 0, 9), 3); // the good one has a graph by now
        unit.also = bad[i];
        unit.asked = 0;
        assert_int_equal(run(&unit, 1, 9), 3);
        assert_int_equal(said_count, 0);
        assert_int_equal(run(&unit, 1, 9), 3);
        assert_int_equal(unit.asked, 3); // first, captured, and again because of that
        assert_int_equal(said_count, 1);
        assert_non_null(strstr(said, "launched one by one: cannot capture: "));
        unit.also = NULL;
        for (uint32_t step = 0; step < 3; step++) {
            replay_begin_pass(&replay, &training);
            assert_int_equal(run(&unit, step % 2, 9), 3);
            assert_int_equal(unit.asked, 3 + step + 1);
        }
        assert_int_equal(said_count, 1);
        close_unit(&unit);
    }
}

static void the_log_says_what_was_in_the_way(void **state)
{
    (void)state;
    struct replay replay;
    struct unit unit = open_unit(&replay, 3);
    unit.also = allocate;
    run(&unit, 0, 9);
    run(&unit, 0, 9);
    assert_string_equal(said, "CUDA graphs are off, and kernels are launched one by one: cannot "
                              "capture: CUDA cannot get memory: an error of the fake runtime");
    close_unit(&unit);
}

/* In a mode of the fake, from the second run on. */
static void check_mode(const char *mode, const char *expected)
{
    struct replay replay;
    struct unit unit = open_unit(&replay, 3);
    const char *old = getenv(MODE);
    char before[64], with[128];
    snprintf(before, sizeof(before), "%s", old != NULL ? old : "");
    snprintf(with, sizeof(with), "%s,%s", before, mode);
    assert_int_equal(run(&unit, 0, 9), 3);
    assert_int_equal(setenv(MODE, with, 1), 0);
    for (uint32_t step = 0; step < 3; step++) {
        assert_int_equal(run(&unit, 0, 9), 3);
        assert_int_equal(unit.asked, step + 3);
    }
    assert_int_equal(setenv(MODE, before, 1), 0);
    assert_int_equal(said_count, 1);
    assert_non_null(strstr(said, expected));
    close_unit(&unit);
}

static void graphs_that_the_device_does_not_take_end_it_as_well(void **state)
{
    (void)state;
    check_mode("uninstantiable", "cannot instantiate a graph: out of memory");
    check_mode("unlaunchable", "cannot launch a graph: out of memory");
}

static enum status always_fail(struct unit *unit)
{
    (void)unit;
    return STATUS_DEVICE;
}

static void what_fails_by_itself_fails(void **state)
{
    (void)state;
    struct replay replay;
    struct unit unit = open_unit(&replay, 3);
    const struct replay_unit at = {.index = 0, .extent = 9};
    assert_int_equal(run(&unit, 0, 9), 3);
    unit.also = always_fail;
    assert_int_equal(replay_run(&replay, at, launch, &unit), STATUS_DEVICE);
    assert_int_equal(replay_run(&replay, at, launch, &unit), STATUS_DEVICE);
    close_unit(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_is_asked_twice_and_then_replayed),
        cmocka_unit_test(another_pass_has_graphs_of_its_own),
        cmocka_unit_test(what_cannot_be_the_same_is_launched_as_it_comes),
        cmocka_unit_test(a_unit_that_has_moved_is_captured_anew),
        cmocka_unit_test(a_branch_that_is_joined_is_a_part_of_the_graph),
        cmocka_unit_test(what_may_not_be_captured_ends_it_for_good),
        cmocka_unit_test(the_log_says_what_was_in_the_way),
        cmocka_unit_test(graphs_that_the_device_does_not_take_end_it_as_well),
        cmocka_unit_test(what_fails_by_itself_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
