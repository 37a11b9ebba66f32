/* Threads that share cores, against closed forms of processor sharing. */
#include "deploy/predict/engine/cores.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <float.h>
#include <math.h>
#include <stdio.h>

#define PROCESSES 16

static struct network network;

static int tear_down(void **state)
{
    (void)state;
    network_finish(&network);
    network = (struct network){0};
    return 0;
}

/* A host for all processes, with so many cores. */
static void read_host(uint32_t cores)
{
    char text[256];
    snprintf(text, sizeof(text),
             "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"workers\": %d,"
             " \"cores\": %u, \"nic\": \"10 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"}]}",
             PROCESSES, cores);
    network_finish(&network); // of a host that was read before
    predictions_read_network(text, &network);
}

static struct cores *make_by(uint32_t cores, const struct cores_share *share)
{
    static const uint32_t hosts[PROCESSES];
    struct cores *made = NULL;
    read_host(cores);
    assert_int_equal(cores_create(&network, hosts, PROCESSES, share, &made), STATUS_OK);
    return made;
}

static struct cores *make(uint32_t cores, uint32_t threads, double crowding, double turns)
{
    const struct cores_share share = {
        .compute_threads = threads, .crowding = crowding, .turns = turns};
    return make_by(cores, &share);
}

static void give(struct cores *cores, double now, uint32_t process, enum cores_thread thread,
                 double seconds)
{
    const struct cores_work work = {process, thread, 0, (uint32_t)lrint(1000 * seconds)};
    assert_true(cores_add(cores, now, &work, seconds));
}

/* The next work is that of the process, and ends at that time. */
static void expect_end(struct cores *cores, uint32_t process, double at)
{
    double end = cores_next_end(cores);
    predictions_check("end", process, end, at, 1e-9);
    assert_int_equal(cores_end_next(cores, end).process, process);
}

/* n threads on c cores take n / c as long; and no less than alone. */
static void threads_share_cores_evenly(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 4; count++) {
        for (uint32_t all = 1; all <= 4; all++) {
            struct cores *cores = make(all, 1, 1, 1);
            for (uint32_t i = 0; i < count; i++) {
                give(cores, 0, i, CORES_COMPUTE, 1);
            }
            for (uint32_t i = 0; i < count; i++) {
                expect_end(cores, i, count > all ? (double)count / all : 1);
            }
            assert_true(cores_next_end(cores) >= DBL_MAX);
            cores_destroy(cores);
            tear_down(NULL);
        }
    }
}

/* One core: 1 s alone, then two at half the speed until the shorter one is done. */
static void who_is_done_leaves_its_share_to_the_others(void **state)
{
    (void)state;
    struct cores *cores = make(1, 1, 1, 1);
    give(cores, 0, 0, CORES_COMPUTE, 3);
    give(cores, 1, 1, CORES_COMPUTE, 1);
    expect_end(cores, 1, 3);
    expect_end(cores, 0, 4);
    cores_destroy(cores);
}

/* A message's work of 0.1 s takes twice as long beside one that computes. */
static void a_thread_does_one_work_after_the_other(void **state)
{
    (void)state;
    struct cores *cores = make(1, 1, 1, 1);
    give(cores, 0, 0, CORES_COMPUTE, 1);
    give(cores, 0, 0, CORES_MESSAGES, 0.1);
    give(cores, 0, 0, CORES_MESSAGES, 0.1);
    assert_false(cores_is_idle(cores, 0, CORES_MESSAGES));
    predictions_check("first", 0, cores_next_end(cores), 0.2, 1e-9);
    assert_int_equal(cores_end_next(cores, 0.2).thread, CORES_MESSAGES);
    predictions_check("second", 0, cores_next_end(cores), 0.4, 1e-9);
    assert_int_equal(cores_end_next(cores, 0.4).thread, CORES_MESSAGES);
    assert_true(cores_is_idle(cores, 0, CORES_MESSAGES));
    expect_end(cores, 0, 1.2);
    cores_destroy(cores);
}

/* Of 4 cores, a worker with 2 threads is alone as measured; two of them are crowded by half. */
static void crowded_cores_are_slower(void **state)
{
    (void)state;
    struct cores *cores = make(4, 2, 1.5, 1);
    give(cores, 0, 0, CORES_COMPUTE, 1);
    expect_end(cores, 0, 1);
    give(cores, 1, 0, CORES_COMPUTE, 1);
    give(cores, 1, 1, CORES_COMPUTE, 1);
    expect_end(cores, 0, 2.5);
    expect_end(cores, 1, 2.5);
    give(cores, 3, 0, CORES_COMPUTE, 1);
    give(cores, 3, 1, CORES_MESSAGES, 1); // one of the two others
    expect_end(cores, 1, 4);
    expect_end(cores, 0, 4.2);
    cores_destroy(cores);
}

/* Two threads on a core are slower by a tenth, four by 1.5 tenths; messages are not. */
static void turns_make_computing_slower(void **state)
{
    (void)state;
    struct cores *cores = make(1, 1, 1, 1.1);
    give(cores, 0, 0, CORES_COMPUTE, 1);
    expect_end(cores, 0, 1);
    give(cores, 1, 0, CORES_COMPUTE, 1);
    give(cores, 1, 1, CORES_COMPUTE, 1);
    expect_end(cores, 0, 1 + 2.2);
    expect_end(cores, 1, 1 + 2.2);
    for (uint32_t i = 0; i < 4; i++) {
        give(cores, 4, i, CORES_COMPUTE, 1);
    }
    give(cores, 4, 4, CORES_MESSAGES, 0.1);
    expect_end(cores, 4, 4.5);
    expect_end(cores, 0, 4.5 + 4 * (1.15 - 0.1));
    cores_destroy(cores);
}

/* Of two cores, two messages have one each, and computing what is left: nothing, then all of one.
 */
static void messages_go_first_where_costs_say_so(void **state)
{
    (void)state;
    const struct cores_share share = {.compute_threads = 1, .messages_first = true};
    struct cores *cores = make_by(2, &share);
    give(cores, 0, 0, CORES_COMPUTE, 1);
    give(cores, 0, 1, CORES_COMPUTE, 1);
    give(cores, 0, 0, CORES_MESSAGES, 0.5);
    give(cores, 0, 1, CORES_IN, 0.25);
    expect_end(cores, 1, 0.25);
    // Until 0.5 both have half of a core, then one each.
    expect_end(cores, 0, 0.5);
    expect_end(cores, 0, 0.5 + (1 - 0.125));
    expect_end(cores, 1, 0.5 + (1 - 0.125));
    for (uint32_t i = 0; i < 3; i++) { // more than cores: they share these
        give(cores, 2, i, CORES_OUT, 1);
    }
    give(cores, 2, 3, CORES_COMPUTE, 1);
    for (uint32_t i = 0; i < 3; i++) {
        expect_end(cores, i, 3.5);
    }
    expect_end(cores, 3, 4.5);
    cores_destroy(cores);
}

/* The next thing is that somebody loses a core to who waits for it. */
static void expect_slice(struct cores *cores, double at)
{
    double end = cores_next_end(cores);
    predictions_check("slice", 0, end, at, 1e-9);
    assert_int_equal(cores_end_next(cores, end).process, CORES_NOBODY);
}

static void threads_with_slices_end_one_after_the_other(void **state)
{
    (void)state;
    const struct cores_share share = {.compute_threads = 1, .slice_s = 1};
    struct cores *cores = make_by(2, &share);
    for (uint32_t i = 0; i < 3; i++) {
        give(cores, 0, i, CORES_COMPUTE, 1.5);
    }
    expect_slice(cores, 1); // of the first two the one goes on after the third has begun
    expect_slice(cores, 1);
    expect_end(cores, 0, 1.5);
    expect_end(cores, 1, 2);
    expect_end(cores, 2, 2.5);
    give(cores, 3, 4, CORES_COMPUTE, 5); // nobody waits for its core
    expect_end(cores, 4, 8);
    assert_true(cores_next_end(cores) >= DBL_MAX);
    cores_destroy(cores);
}

static void messages_wait_for_the_end_of_a_slice(void **state)
{
    (void)state;
    const struct cores_share share = {.compute_threads = 1, .slice_s = 1};
    struct cores *cores = make_by(1, &share);
    give(cores, 0, 0, CORES_COMPUTE, 2);
    give(cores, 0, 1, CORES_COMPUTE, 2);
    give(cores, 0.5, 2, CORES_MESSAGES, 0.1);
    expect_slice(cores, 1);
    expect_end(cores, 2, 1.1); // before the other that computes
    expect_slice(cores, 2.1);
    expect_end(cores, 0, 3.1);
    expect_end(cores, 1, 4.1);
    cores_destroy(cores);
}

static void messages_first_interrupt_a_slice(void **state)
{
    (void)state;
    const struct cores_share share = {.compute_threads = 1, .messages_first = true, .slice_s = 1};
    struct cores *cores = make_by(1, &share);
    give(cores, 0, 0, CORES_COMPUTE, 1);
    give(cores, 0, 1, CORES_COMPUTE, 1);
    give(cores, 0.5, 2, CORES_MESSAGES, 0.1);
    give(cores, 0.5, 3, CORES_OUT, 0.1);
    expect_end(cores, 2, 0.6);
    expect_end(cores, 3, 0.7);
    expect_end(cores, 0, 1.2); // its slice went on
    expect_end(cores, 1, 2.2);
    cores_destroy(cores);
}

/* One core, and two that compute. What follows at once and takes no time is not behind the other,
 * but messages interrupt it. */
static void what_takes_no_time_waits_for_no_slice(void **state)
{
    (void)state;
    const struct cores_share share = {.compute_threads = 1, .messages_first = true, .slice_s = 1};
    struct cores *cores = make_by(1, &share);
    give(cores, 0, 0, CORES_COMPUTE, 0.4);
    give(cores, 0, 1, CORES_COMPUTE, 2);
    expect_end(cores, 0, 0.4);
    give(cores, 0.4, 2, CORES_MESSAGES, 0.1);
    give(cores, 0.4, 0, CORES_COMPUTE, 0);
    expect_end(cores, 2, 0.5);
    expect_end(cores, 0, 0.5);
    give(cores, 0.5, 0, CORES_COMPUTE, 0.4);
    expect_slice(cores, 1.5); // of the other
    expect_end(cores, 0, 1.9);
    expect_end(cores, 1, 2.9);
    cores_destroy(cores);
}

static void slices_leave_crowded_cores_as_slow(void **state)
{
    (void)state;
    const struct cores_share share = {
        .compute_threads = 1, .crowding = 1.2, .turns = 1.1, .slice_s = 1};
    struct cores *cores = make_by(2, &share);
    give(cores, 0, 0, CORES_COMPUTE, 1);
    expect_end(cores, 0, 1);
    give(cores, 1, 0, CORES_COMPUTE, 1);
    give(cores, 1, 1, CORES_COMPUTE, 1);
    expect_end(cores, 0, 2.2);
    expect_end(cores, 1, 2.2);
    cores_destroy(cores);
}

/* Two threads with a core, by slices: each gets it back behind a slice of the other's, for 0.1. The
 * first time nobody was there before. */
static void who_gets_a_core_back_fills_its_caches_again(void **state)
{
    (void)state;
    const struct cores_share share = {
        .compute_threads = 1, .turns = 1.5, .slice_s = 1, .refill_s = 0.1};
    struct cores *cores = make_by(1, &share);
    give(cores, 0, 0, CORES_COMPUTE, 1.5);
    expect_end(cores, 0, 1.5);
    give(cores, 2, 0, CORES_COMPUTE, 1.5); // alone it has all that it had
    expect_end(cores, 0, 3.5);
    give(cores, 4, 0, CORES_COMPUTE, 1.5);
    give(cores, 4, 1, CORES_COMPUTE, 1.5);
    expect_slice(cores, 5);
    expect_slice(cores, 6);     // of which 0.1 was for what the first has put out
    expect_end(cores, 0, 6.6);  // 0.5, and as much for a whole slice
    expect_end(cores, 1, 7.26); // 0.6 that were left, and 0.06
    cores_destroy(cores);
}

/* Who has the core for a fifth of a slice puts out a fifth, also with messages. */
static void short_work_of_others_leaves_most_of_the_caches(void **state)
{
    (void)state;
    const struct cores_share share = {
        .compute_threads = 1, .messages_first = true, .slice_s = 1, .refill_s = 0.1};
    struct cores *cores = make_by(1, &share);
    give(cores, 0, 0, CORES_COMPUTE, 1.5);
    give(cores, 0.5, 0, CORES_MESSAGES, 0.5);
    expect_end(cores, 0, 1);
    expect_end(cores, 0, 2.05);            // messages had half a slice
    give(cores, 3, 1, CORES_COMPUTE, 0.1); // behind two slices of the other: 0.1 more
    expect_end(cores, 1, 3.2);
    give(cores, 4, 0, CORES_COMPUTE, 1);
    expect_end(cores, 0, 5.02);
    cores_destroy(cores);
}

static void threads_that_stand_for_several_know_no_slices(void **state)
{
    (void)state;
    const struct cores_share share = {.compute_threads = 2, .slice_s = 1};
    struct cores *cores = make_by(2, &share);
    give(cores, 0, 0, CORES_COMPUTE, 2);
    give(cores, 0, 1, CORES_COMPUTE, 2);
    expect_end(cores, 0, 4);
    expect_end(cores, 1, 4);
    cores_destroy(cores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(threads_share_cores_evenly, tear_down),
        cmocka_unit_test_teardown(who_is_done_leaves_its_share_to_the_others, tear_down),
        cmocka_unit_test_teardown(a_thread_does_one_work_after_the_other, tear_down),
        cmocka_unit_test_teardown(crowded_cores_are_slower, tear_down),
        cmocka_unit_test_teardown(turns_make_computing_slower, tear_down),
        cmocka_unit_test_teardown(messages_go_first_where_costs_say_so, tear_down),
        cmocka_unit_test_teardown(threads_with_slices_end_one_after_the_other, tear_down),
        cmocka_unit_test_teardown(messages_wait_for_the_end_of_a_slice, tear_down),
        cmocka_unit_test_teardown(messages_first_interrupt_a_slice, tear_down),
        cmocka_unit_test_teardown(what_takes_no_time_waits_for_no_slice, tear_down),
        cmocka_unit_test_teardown(slices_leave_crowded_cores_as_slow, tear_down),
        cmocka_unit_test_teardown(who_gets_a_core_back_fills_its_caches_again, tear_down),
        cmocka_unit_test_teardown(short_work_of_others_leaves_most_of_the_caches, tear_down),
        cmocka_unit_test_teardown(threads_that_stand_for_several_know_no_slices, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
