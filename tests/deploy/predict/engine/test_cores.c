/* Threads that share cores, against closed forms of processor sharing: alone, and in jobs. */
#include "deploy/predict/engine/cores.h"
#include "deploy/predict/prediction.h"
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
#include <string.h>

#define PARAMETERS UINT64_C(262144)
#define STEP_S     0.03 // of a worker alone
#define PROCESSES  16
#define COUNTED    4 // steps

static struct network network;
static struct costs costs;

/* So many places on a host with so many cores. Messages within it take no time. */
static void read_host(uint32_t places, uint32_t cores)
{
    char text[512];
    snprintf(text, sizeof(text),
             "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"workers\": %u,"
             " \"cores\": %u, \"nic\": \"10 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"}]}",
             places, cores);
    network_finish(&network); // of a host that was read before
    predictions_read_network(text, &network);
}

static int reset(void **state)
{
    (void)state;
    predictions_reset_costs(PARAMETERS, &costs);
    costs.layers[0].forward_s = STEP_S / 3;
    costs.layers[0].backward_s = STEP_S * 2 / 3;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    network_finish(&network);
    network = (struct network){0};
    return 0;
}

static struct prediction predict(enum mode_kind mode, uint32_t workers, uint32_t servers,
                                 const char *straggler)
{
    struct prediction made;
    struct job job = predictions_job(mode, workers, servers, ALL_REDUCE_CHOICE_RING);
    job.transport = TRANSPORT_TCP;
    const struct prediction_extent extent = {2, COUNTED, PREDICTION_WORK_MAX, 0};
    snprintf(job.straggler, sizeof(job.straggler), "%s", straggler);
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    return made;
}

static struct cores *make_by(uint32_t cores, const struct cores_share *share)
{
    static const uint32_t hosts[PROCESSES];
    struct cores *made = NULL;
    read_host(PROCESSES, cores);
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

/* On one core all work adds up, whoever does it when. What counts begins and ends in the middle of
 * a slice. */
static void slices_make_no_work(void **state)
{
    (void)state;
    costs.slice_s = 0.004;
    costs.optimizer_s = 0.002;
    costs.input_s = 0.004;
    double work_s = STEP_S + costs.optimizer_s + costs.input_s;
    double off_s = costs.slice_s / COUNTED + 1e-9;
    for (uint32_t n = 1; n <= 8; n++) {
        read_host(n, 1);
        assert_true(fabs(predict(MODE_RING, n, 0, "none").step_s - n * work_s) <= off_s);
        tear_down(NULL);
    }
    read_host(3, 2); // the last one has a core for a slice while the other is idle
    double step_s = predict(MODE_RING, 3, 0, "none").step_s;
    assert_true(step_s >= 1.5 * work_s - off_s && step_s <= 1.5 * work_s + costs.slice_s);
}

static void workers_on_one_core_take_turns(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 8; n++) {
        read_host(n, 1);
        predictions_check("ring", n, predict(MODE_RING, n, 0, "none").step_s, n * STEP_S, 1e-6);
        if (n > 1) {
            tear_down(NULL);
        }
    }
    read_host(3, 2);
    predictions_check("3 on 2", 3, predict(MODE_RING, 3, 0, "none").step_s, 1.5 * STEP_S, 1e-6);
    tear_down(NULL);
    read_host(4, 8);
    predictions_check("4 on 8", 4, predict(MODE_RING, 4, 0, "none").step_s, STEP_S, 1e-6);
}

static void a_worker_that_waits_on_purpose_leaves_its_core(void **state)
{
    (void)state;
    read_host(2, 1);
    // Both are as long at work as the one waits beside its own.
    predictions_check("straggler", 2, predict(MODE_RING, 2, 0, "rank=1,factor=2").step_s,
                      2 * STEP_S, 1e-6);
    tear_down(NULL);
    read_host(2, 2);
    predictions_check("straggler", 2, predict(MODE_RING, 2, 0, "rank=1,factor=2").step_s,
                      2 * STEP_S, 1e-6);
}

/* On one core all work adds up: each of a worker's pushes and replies, and of the server's. */
static void messages_and_updates_take_from_computing(void **state)
{
    (void)state;
    uint32_t n = 4;
    costs.message_s = 0.0008;
    costs.message_bandwidth = 4.0 * PARAMETERS / 0.0002;
    costs.optimizer_s = 0.002;
    costs.sum_bandwidth = 4.0 * PARAMETERS / 0.0005;
    costs.carriage_message_s = 0.0003;
    costs.carriage_bandwidth = 4.0 * PARAMETERS / 0.0002;
    costs.input_s = 0.004;
    read_host(n, 1);
    double messages = 2 * n, carriage_s = 0.0005, small_s = 0.0008 + 0.0003;
    // A push and a reply have values; a pull, and that a push was taken, have none.
    double want = n * (STEP_S + costs.input_s) + 2 * messages * (0.001 + carriage_s + small_s) +
                  n * 0.0005 + costs.optimizer_s;
    predictions_check("ps-sync", n, predict(MODE_PS_SYNC, n, 1, "none").step_s, want, 1e-6);
}

/* One core does the sums, the copies and the updates of all in turn. */
static void all_reduces_in_memory_take_from_computing(void **state)
{
    (void)state;
    uint32_t n = 4;
    struct prediction made;
    struct job job = predictions_job(MODE_RING, n, 0, ALL_REDUCE_CHOICE_AUTO);
    const struct prediction_extent extent = {2, 4, PREDICTION_WORK_MAX, 0};
    costs.optimizer_s = 0.002;
    costs.sum_bandwidth = 4.0 * PARAMETERS / 0.0005;
    read_host(n, 1);
    network.links[network.hosts[0].memory].bandwidth = 4.0 * PARAMETERS / 0.0001;
    double want = n * (STEP_S + costs.optimizer_s) + (n - 1) * (0.0005 + 0.0001);
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    predictions_check("ring in memory", n, made.step_s, want, 1e-6);
}

static void hosts_of_one_machine_share_its_cores(void **state)
{
    (void)state;
    predictions_read_network(
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"h\", \"count\": 4, \"nic\": \"1000 TB/s\", \"latency\": \"0 s\","
        " \"switch\": \"s\", \"cores\": 2, \"machine\": \"m\"},"
        "{\"name\": \"p\", \"workers\": 0, \"servers\": 1, \"nic\": \"1000 TB/s\","
        " \"latency\": \"0 s\", \"switch\": \"s\", \"cores\": 2, \"machine\": \"m\"}]}",
        &network);
    assert_int_equal(network.hosts[3].machine, 0);
    assert_int_equal(network.hosts[4].machine, 0);
    predictions_check("ring", 4, predict(MODE_RING, 4, 0, "none").step_s, 2 * STEP_S, 1e-6);
    costs.optimizer_s = STEP_S;
    predictions_check("ps-sync", 4, predict(MODE_PS_SYNC, 4, 1, "none").step_s, 3 * STEP_S, 1e-6);
}

/* With a core for each thread things are as without a number of cores, but for messages without
 * values. */
static void enough_cores_change_nothing(void **state)
{
    (void)state;
    costs.message_bandwidth = 5e9;
    costs.optimizer_s = 0.001;
    costs.sum_bandwidth = 4e9;
    for (uint32_t servers = 0; servers <= 2; servers++) {
        enum mode_kind mode = servers > 0 ? MODE_PS_SYNC : MODE_RING;
        read_host(8, 4096);
        double limited_s = predict(mode, 8, servers, "none").step_s;
        network.hosts[0].cores = 0;
        predictions_check("a step", 8, predict(mode, 8, servers, "none").step_s, limited_s, 1e-9);
        tear_down(NULL);
    }
    read_host(8, 1);
}

/* One worker of a thousand on hosts of their own stands for all, and shares its host's cores. */
static void hosts_with_cores_are_made_in_small(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_RING, 32, 0, ALL_REDUCE_CHOICE_RING);
    struct prediction whole, small;
    costs.message_s = 0.0001;
    costs.carriage_message_s = 0.0002;
    predictions_read_network("{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
                             "{\"name\": \"h\", \"count\": 32, \"nic\": \"1 Gbit/s\", \"cores\": 1,"
                             " \"latency\": \"10 us\", \"switch\": \"s\"}]}",
                             &network);
    const struct prediction_extent all = {2, 4, PREDICTION_WORK_MAX, 0}, one = {2, 4, 1, 0.01};
    assert_int_equal(prediction_make(&job, &costs, &network, &all, &whole), STATUS_OK);
    assert_int_equal(prediction_make(&job, &costs, &network, &one, &small), STATUS_OK);
    assert_false(whole.is_reduced);
    assert_true(small.is_reduced);
    predictions_check("ring", 32, small.step_s, whole.step_s, 0.01);
    costs.slice_s = 0.004;
    assert_int_equal(prediction_make(&job, &costs, &network, &all, &whole), STATUS_OK);
    assert_int_equal(prediction_make(&job, &costs, &network, &one, &small), STATUS_OK);
    assert_true(small.is_reduced);
    predictions_check("with slices", 32, small.step_s, whole.step_s, 0.01);
}

/* A sample of them was 2.4 % off. */
static void workers_that_wait_for_slices_are_all_simulated(void **state)
{
    (void)state;
    const struct job job = predictions_job(MODE_RING, 64, 0, ALL_REDUCE_CHOICE_RING);
    const struct prediction_extent extent = {1, 2, 0, PREDICTION_ERROR_MAX_ASKED, 16};
    struct prediction made;
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 0.001};
    predictions_read_network(
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"h\", \"count\": 16, \"workers\": 4, \"cores\": 2,"
        " \"nic\": \"25 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}",
        &network);
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    assert_int_equal(made.simulated, 16);
    costs.slice_s = 0.004;
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    assert_int_equal(made.simulated, 64);
    costs.threads = 2; // which know no slices
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    assert_int_equal(made.simulated, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_share_cores_evenly, reset, tear_down),
        cmocka_unit_test_setup_teardown(who_is_done_leaves_its_share_to_the_others, reset,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_thread_does_one_work_after_the_other, reset, tear_down),
        cmocka_unit_test_setup_teardown(crowded_cores_are_slower, reset, tear_down),
        cmocka_unit_test_setup_teardown(turns_make_computing_slower, reset, tear_down),
        cmocka_unit_test_setup_teardown(messages_go_first_where_costs_say_so, reset, tear_down),
        cmocka_unit_test_setup_teardown(threads_with_slices_end_one_after_the_other, reset,
                                        tear_down),
        cmocka_unit_test_setup_teardown(messages_wait_for_the_end_of_a_slice, reset, tear_down),
        cmocka_unit_test_setup_teardown(messages_first_interrupt_a_slice, reset, tear_down),
        cmocka_unit_test_setup_teardown(slices_leave_crowded_cores_as_slow, reset, tear_down),
        cmocka_unit_test_setup_teardown(threads_that_stand_for_several_know_no_slices, reset,
                                        tear_down),
        cmocka_unit_test_setup_teardown(slices_make_no_work, reset, tear_down),
        cmocka_unit_test_setup_teardown(workers_on_one_core_take_turns, reset, tear_down),
        cmocka_unit_test_setup_teardown(a_worker_that_waits_on_purpose_leaves_its_core, reset,
                                        tear_down),
        cmocka_unit_test_setup_teardown(messages_and_updates_take_from_computing, reset, tear_down),
        cmocka_unit_test_setup_teardown(all_reduces_in_memory_take_from_computing, reset,
                                        tear_down),
        cmocka_unit_test_setup_teardown(hosts_of_one_machine_share_its_cores, reset, tear_down),
        cmocka_unit_test_setup_teardown(enough_cores_change_nothing, reset, tear_down),
        cmocka_unit_test_setup_teardown(hosts_with_cores_are_made_in_small, reset, tear_down),
        cmocka_unit_test_setup_teardown(workers_that_wait_for_slices_are_all_simulated, reset,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
