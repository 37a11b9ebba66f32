/* Thousands of jobs with faults at random moments, in virtual time.
 *
 * SIM_SCENARIOS is how many (10,000 without it), SIM_SEED the first one's seed. A scenario that
 * breaks a promise is made smaller, and its transcript printed. Processes that are killed leave
 * their memory behind, so scenarios run in child processes, some hundred in each. */
#include "common/base/cores.h"
#include "tests/sim/scenario.h"
#include "tests/sim/story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// What all children have made, in memory that they share.
static struct {
    atomic_uint_fast64_t scenarios, events;
} * totals;

#define SCENARIOS  10000
#define PER_CHILD  250
#define FAILED_MAX 3 // then it is enough

// Blocks so large come from the system, and more of the heap in such steps.
#define MMAPPED_BYTES    (16 << 20)
#define HEAP_GROWS_BYTES (1 << 20)

// Moments at the end of a short job.
#define MS_NS          UINT64_C(1000000)
#define KILLS_BEGIN_NS (35 * MS_NS)
#define KILL_APART_NS  (MS_NS / 20)
#define KILLS          500

// Moments of a job whose workers wait for the pushes of others.
#define CUTS_BEGIN_NS (105 * MS_NS)
#define CUT_APART_NS  (MS_NS / 2)
#define CUTS          1500

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void report(const struct scenario *scenario, const char *broken)
{
    char text[SCENARIO_TEXT_BYTES];
    scenario_describe(scenario, text);
    printf("# %s: %s\n", broken, text);
    const struct scenario smallest = scenario_shrink(scenario);
    scenario_describe(&smallest, text);
    printf("# the smallest: %s\n%s\n", text, story_text());
    fflush(stdout);
}

/* What one world gives back, the next one takes: the system would clear it first. */
static void keep_memory(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, MMAPPED_BYTES);
    (void)mallopt(M_TOP_PAD, HEAP_GROWS_BYTES);
}

/* The exit status of a child: 0 if all promises were kept. */
static int run_some(struct scenario (*make)(uint64_t number), uint64_t first, uint64_t end)
{
    keep_memory();
    for (uint64_t number = first; number < end; number++) {
        char broken[SCENARIO_TEXT_BYTES];
        const struct scenario scenario = make(number);
        bool is_kept = scenario_run(&scenario, broken);
        totals->scenarios++;
        totals->events += scenario_events();
        if (!is_kept) {
            report(&scenario, broken);
            return 1;
        }
    }
    return 0;
}

static void start_child(struct scenario (*make)(uint64_t number), uint64_t first, uint64_t end)
{
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(run_some(make, first, end));
    }
}

/* Whether the child that ended first has kept all promises. */
static bool await_child(void)
{
    int status;
    assert_true(wait(&status) > 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Nanoseconds that are not those of a world. */
static uint64_t clock_of_host(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Runs so many scenarios, in children. */
static void run_all(struct scenario (*make)(uint64_t number), uint64_t first, uint64_t count)
{
    uint32_t failed = 0, running = 0, cores = cores_available();
    uint64_t began_ns = clock_of_host();
    totals = mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(totals, MAP_FAILED);
    for (uint64_t at = 0; at < count && failed < FAILED_MAX; at += PER_CHILD) {
        start_child(make, first + at, first + (at + PER_CHILD < count ? at + PER_CHILD : count));
        if (++running >= cores) {
            running--;
            failed += !await_child();
        }
    }
    for (; running > 0; running--) {
        failed += !await_child();
    }
    double seconds = (double)(clock_of_host() - began_ns) / 1e9;
    printf("# %llu scenarios, %.3g events, %.3g events a second on %u cores\n",
           (unsigned long long)totals->scenarios, (double)totals->events,
           (double)totals->events / seconds, cores);
    munmap(totals, sizeof(*totals));
    assert_int_equal(failed, 0);
}

static void no_scenario_of_faults_breaks_a_promise(void **state)
{
    (void)state;
    run_all(scenario_draw, number_of("SIM_SEED", 1), number_of("SIM_SCENARIOS", SCENARIOS));
}

/* A job of five steps writes a checkpoint after each of them, and a worker is killed somewhat later
 * than in the scenario before: at some moments the copy of the end is there, and the job is not
 * over. */
static struct scenario lose_one_at_the_end(uint64_t number)
{
    struct scenario scenario = {
        .seed = 1,
        .shape = {.mode = "ps-ssp:1",
                  .workers = 4,
                  .servers = 2,
                  .steps = 5,
                  .value_count = 24,
                  .bucket_count = 2,
                  .compute_ns = 4 * MS_NS,
                  .lost_after = SCENARIO_LOST_AFTER,
                  .redeals = true,
                  .checkpoint_every = 1,
                  .keep = 1},
        .costs = {.latency_ns = MS_NS, .jitter_ns = MS_NS, .near_ns = 1000},
        .fault_count = 1,
    };
    scenario.faults[0] = (struct fault){.kind = FAULT_KILL,
                                        .process = scenario.shape.servers,
                                        .other = 1,
                                        .time_ns = KILLS_BEGIN_NS + number * KILL_APART_NS};
    return scenario;
}

static void a_worker_that_is_lost_at_the_end_does_not_make_the_job_go_on_from_there(void **state)
{
    (void)state;
    run_all(lose_one_at_the_end, 0, KILLS);
}

/* Workers that push in an order, one of which and a server do not reach each other from some moment
 * on, in both directions or in one. Then waits may go round, and a third worker, which waits for
 * messages of the two, is innocent. */
static struct scenario cut_one_from_a_server(uint64_t number)
{
    static const enum fault_kind kinds[] = {FAULT_CUT, FAULT_ONE_WAY, FAULT_ONE_WAY};
    struct scenario scenario = {
        .seed = number,
        .shape = {.mode = "ps-async",
                  .order = "seeded:constant:2",
                  .workers = 4,
                  .servers = 2,
                  .steps = 4,
                  .value_count = 24,
                  .bucket_count = 3,
                  .compute_ns = MS_NS,
                  .lost_after = SCENARIO_LOST_AFTER,
                  .redeals = true,
                  .min_workers = 3},
        .costs = {.latency_ns = MS_NS, .jitter_ns = MS_NS, .near_ns = 1000},
        .fault_count = 1,
    };
    uint32_t worker = scenario.shape.servers + (uint32_t)(number / 3 % scenario.shape.workers);
    scenario.faults[0] = (struct fault){.kind = kinds[number % 3],
                                        .process = number % 3 == 2 ? 1 : worker,
                                        .other = number % 3 == 2 ? worker : 1,
                                        .time_ns = CUTS_BEGIN_NS + number / 12 * CUT_APART_NS,
                                        .duration_ns = SCENARIO_FOR_GOOD_NS};
    return scenario;
}

static void of_a_worker_and_a_server_that_do_not_reach_each_other_no_third_one_is_lost(void **state)
{
    (void)state;
    run_all(cut_one_from_a_server, 0, CUTS);
}

/* A job whose workers take longer for a step than it may last does not end, whatever is left out of
 * it. It keeps as many workers as it needs to begin. */
static void a_scenario_is_made_as_small_as_a_job_can_be(void **state)
{
    (void)state;
    char broken[SCENARIO_TEXT_BYTES];
    struct scenario scenario = lose_one_at_the_end(0);
    scenario.shape.min_workers = 3;
    scenario.shape.checkpoint_every = 0;
    scenario.shape.lost_after = 10000;
    scenario.shape.compute_ns = 100000000 * MS_NS;
    scenario.fault_count = 0;
    assert_false(scenario_run(&scenario, broken));
    const struct scenario smallest = scenario_shrink(&scenario);
    assert_int_equal(smallest.shape.workers, 3);
    assert_int_equal(smallest.shape.steps, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_scenario_of_faults_breaks_a_promise),
        cmocka_unit_test(a_worker_that_is_lost_at_the_end_does_not_make_the_job_go_on_from_there),
        cmocka_unit_test(
            of_a_worker_and_a_server_that_do_not_reach_each_other_no_third_one_is_lost),
        cmocka_unit_test(a_scenario_is_made_as_small_as_a_job_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
