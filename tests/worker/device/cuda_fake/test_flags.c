/* Barriers on the fake runtime: streams of several processes, which are played by one that has
 * mapped the flags once for each of them. */
#include "tests/worker/device/cuda_fake/stream.h"
#include "worker/device/cuda/memory/flags.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MODE       "FAKE_CUDA"
#define WORLD      3
#define BARRIERS   2
#define ROUNDS     50
#define PAGE_BYTES ((size_t)4096)

struct process {
    uint32_t rank;
    struct flags flags;
    cudaStream_t stream;
    struct fixture *fixture;
};

struct fixture {
    int descriptor;
    struct process processes[WORLD];
    _Atomic uint32_t steps[WORLD]; // that each has made
    _Atomic uint32_t wrong;        // looks at another's steps that were too early, or too late
};

static enum status open_flags(struct process *process)
{
    void *memory =
        mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, process->fixture->descriptor, 0);
    const struct flags_options options = {
        .rank = process->rank,
        .world = WORLD,
        .barrier_count = BARRIERS,
        .memory = memory,
        .bytes = PAGE_BYTES,
    };
    assert_true(memory != MAP_FAILED);
    return flags_open(&process->flags, &options, process->stream);
}

static void set_up(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->descriptor = memfd_create("flags", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fixture->descriptor, PAGE_BYTES), 0);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct process *process = &fixture->processes[rank];
        *process = (struct process){.rank = rank, .fixture = fixture};
        assert_int_equal(cudaStreamCreateWithFlags(&process->stream, cudaStreamNonBlocking),
                         cudaSuccess);
        assert_int_equal(open_flags(process), STATUS_OK);
    }
}

static void tear_down(struct fixture *fixture)
{
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct process *process = &fixture->processes[rank];
        void *memory = process->flags.options.memory;
        cudaStreamDestroy(process->stream);
        flags_close(&process->flags);
        munmap(memory, PAGE_BYTES);
    }
    close(fixture->descriptor);
}

static const uint32_t *words_of(const struct fixture *fixture)
{
    return fixture->processes[0].flags.options.memory;
}

/* What a launch is given. */
struct argument {
    struct process *process;
};

static void make_step(void *context)
{
    struct process *process = ((struct argument *)context)->process;
    process->fixture->steps[process->rank]++;
}

/* All have made as many. */
static void look_at_steps(void *context)
{
    const struct process *process = ((struct argument *)context)->process;
    struct fixture *fixture = process->fixture;
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        fixture->wrong += fixture->steps[rank] != fixture->steps[process->rank];
    }
}

static void launch(struct process *process, void (*run)(void *context))
{
    const struct argument argument = {process};
    assert_int_equal(fake_stream_launch(process->stream, run, &argument, sizeof(argument)),
                     cudaSuccess);
}

static void queue_round(struct process *process)
{
    launch(process, make_step);
    assert_int_equal(flags_cross(&process->flags, process->stream, 0), 0);
    launch(process, look_at_steps);
    assert_int_equal(flags_cross(&process->flags, process->stream, 1), 0);
}

static cudaGraphExec_t capture_round(struct process *process)
{
    cudaGraph_t graph;
    cudaGraphExec_t replayed;
    assert_int_equal(cudaStreamBeginCapture(process->stream, cudaStreamCaptureModeThreadLocal),
                     cudaSuccess);
    queue_round(process);
    assert_int_equal(cudaStreamEndCapture(process->stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&replayed, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    return replayed;
}

/* They wait for each other, so none of them may be waited for alone. */
static void await_all(const struct fixture *fixture)
{
    uint32_t idle = 0;
    while (idle < WORLD) {
        idle = 0;
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            idle += cudaStreamQuery(fixture->processes[rank].stream) == cudaSuccess;
        }
        (void)cudaGetLastError();
        sched_yield();
    }
}

/* Some replay what they have captured, and the others launch it: nobody sees which. */
static void streams_that_cross_two_barriers_in_turn_stay_in_step(void **state)
{
    (void)state;
    static struct fixture fixture;
    for (uint32_t replaying = 0; replaying <= WORLD; replaying++) {
        cudaGraphExec_t graphs[WORLD] = {NULL};
        set_up(&fixture);
        for (uint32_t rank = 0; rank < replaying; rank++) {
            graphs[rank] = capture_round(&fixture.processes[rank]);
        }
        for (uint32_t round = 0; round < ROUNDS; round++) {
            for (uint32_t rank = 0; rank < WORLD; rank++) {
                struct process *process = &fixture.processes[rank];
                if (graphs[rank] != NULL) {
                    assert_int_equal(cudaGraphLaunch(graphs[rank], process->stream), cudaSuccess);
                } else {
                    queue_round(process);
                }
            }
        }
        await_all(&fixture);
        assert_int_equal(fixture.wrong, 0);
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            assert_int_equal(fixture.steps[rank], ROUNDS);
            if (graphs[rank] != NULL) {
                cudaGraphExecDestroy(graphs[rank]);
            }
        }
        for (uint32_t i = 0; i < WORLD * BARRIERS * WORLD; i++) {
            assert_int_equal(words_of(&fixture)[i], 0); // ready for the next round
        }
        tear_down(&fixture);
    }
}

/* The others are gone. What one release lets pass is waited for again in the next round. */
static void who_is_left_releases_itself_until_it_is_idle(void **state)
{
    (void)state;
    static struct fixture fixture;
    set_up(&fixture);
    struct process *process = &fixture.processes[1];
    for (uint32_t round = 0; round < 3; round++) {
        queue_round(process);
    }
    assert_int_equal(cudaStreamQuery(process->stream), cudaErrorNotReady);
    while (cudaStreamQuery(process->stream) == cudaErrorNotReady) {
        flags_release(&process->flags);
        sched_yield();
    }
    (void)cudaGetLastError();
    assert_int_equal(fixture.steps[1], 3);
    const uint32_t *words = words_of(&fixture);
    for (uint32_t i = 0; i < WORLD * BARRIERS * WORLD; i++) {
        uint32_t to = i / (BARRIERS * WORLD), from = i % WORLD;
        if (to != process->rank) {
            assert_int_equal(words[i], from == process->rank); // what it has said itself
        }
    }
    tear_down(&fixture);
}

/* The environment with one more mode. */
static void set_mode(const char *mode, char ret_before[64])
{
    char with[128];
    const char *old = getenv(MODE);
    snprintf(ret_before, 64, "%s", old != NULL ? old : "");
    snprintf(with, sizeof(with), "%s,%s", ret_before, mode);
    assert_int_equal(setenv(MODE, with, 1), 0);
}

static void a_driver_that_captures_no_words_is_found_out(void **state)
{
    (void)state;
    static struct fixture fixture;
    char why[128] = "", before[64];
    set_up(&fixture);
    const struct process *process = &fixture.processes[2];
    assert_true(flags_try_capture(&process->flags, process->stream, why, sizeof(why)));
    assert_string_equal(why, "");
    set_mode("uncaptured", before);
    assert_false(flags_try_capture(&process->flags, process->stream, why, sizeof(why)));
    assert_string_equal(why, "an error of the fake runtime");
    assert_int_equal(setenv(MODE, before, 1), 0);
    set_mode("uninstantiable", before);
    assert_false(flags_try_capture(&process->flags, process->stream, why, sizeof(why)));
    assert_string_equal(why, "out of memory");
    assert_int_equal(setenv(MODE, before, 1), 0);
    assert_int_equal(cudaGetLastError(), cudaSuccess); // nothing is left behind
    for (uint32_t i = 0; i < WORLD * BARRIERS * WORLD; i++) {
        assert_int_equal(words_of(&fixture)[i], 0);
    }
    tear_down(&fixture);
}

static void a_driver_without_words_opens_no_flags(void **state)
{
    (void)state;
    static struct fixture fixture;
    char before[64];
    set_up(&fixture);
    struct process again = {.rank = 0, .fixture = &fixture, .stream = fixture.processes[0].stream};
    set_mode("wordless", before);
    assert_int_equal(open_flags(&again), STATUS_UNSUPPORTED);
    assert_int_equal(setenv(MODE, before, 1), 0);
    void *memory = again.flags.options.memory;
    flags_close(&again.flags);
    munmap(memory, PAGE_BYTES);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_cross_two_barriers_in_turn_stay_in_step),
        cmocka_unit_test(who_is_left_releases_itself_until_it_is_idle),
        cmocka_unit_test(a_driver_that_captures_no_words_is_found_out),
        cmocka_unit_test(a_driver_without_words_opens_no_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
