/* Runs that took longer than their costs say: calibrate finds by how much messages are longer. */
#include "common/job/job_options.h"
#include "deploy/calibrate/calibration_files.h"
#include "deploy/calibrate/calibration_unseen.h"
#include "deploy/predict/prediction.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <jansson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARRIAGE_MESSAGE_S 2e-6
#define CARRIAGE_BANDWIDTH 5e8

static struct calibration_run run;
static struct calibration calibration;
static double step_s;

/* Two workers on two cores, over a million parameters. */
static int set_up(void **state)
{
    (void)state;
    memset(&run, 0, sizeof(run));
    memset(&calibration, 0, sizeof(calibration));
    run.workers = 2;
    run.batch = 32;
    run.threads = 1;
    snprintf(run.transport, sizeof(run.transport), "tcp");
    run.host_count = 1;
    snprintf(run.hosts[0].name, sizeof(run.hosts[0].name), "h");
    run.hosts[0].workers = run.hosts[0].cores = 2;
    run.observation.step_count = 1;
    run.observation.step_s = &step_s;
    run.observation.cores.workers.processes = 2;
    run.observation.cores.workers.ends = 100;
    run.folder.job = json_pack("{s:{s:s, s:i, s:s, s:s}}", "options", "mode", "ring", "workers", 2,
                               "all-reduce", "ring", "transport", "tcp");
    calibration.costs =
        (struct costs){.batch = 32,
                       .layers = {{.parameters = 1000000, .forward_s = 0.01, .backward_s = 0.02}},
                       .layer_count = 1,
                       .message_s = 1e-5,
                       .threads = 1,
                       .carriage_message_s = CARRIAGE_MESSAGE_S,
                       .carriage_bandwidth = CARRIAGE_BANDWIDTH};
    calibration.links = (struct calibrated_links){1e9, 1e-5, 1e9, 2e-5, true};
    calibration.widest = &run;
    calibration.has_network = true;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(run.folder.job);
    return 0;
}

/* The run takes as long as it would with carriage so many times as long. */
static void take_as_long_as(double factor)
{
    struct network network;
    struct prediction made;
    struct job job;
    const struct option_set set = job_option_set(&job);
    const struct prediction_extent extent = {3, 40, PREDICTION_WORK_MAX, PREDICTION_ERROR_MAX};
    struct costs costs = calibration.costs;
    json_t *object = calibration_network_json(&calibration);
    options_reset(&set);
    job.mode = (struct mode){.kind = MODE_RING};
    job.workers = 2;
    job.all_reduce = ALL_REDUCE_CHOICE_RING;
    job.transport = TRANSPORT_TCP;
    costs.carriage_message_s *= factor;
    costs.carriage_bandwidth /= factor;
    assert_int_equal(network_take(object, "made", &network), STATUS_OK);
    assert_int_equal(prediction_make(&job, &costs, &network, &extent, &made), STATUS_OK);
    run.observation.passed_s = made.step_s;
    network_finish(&network);
    json_decref(object);
}

static void check_factor(double factor)
{
    double message = calibration.costs.carriage_message_s / CARRIAGE_MESSAGE_S;
    double bandwidth = CARRIAGE_BANDWIDTH / calibration.costs.carriage_bandwidth;
    if (!(fabs(message - factor) <= 0.01 * factor && fabs(bandwidth - message) <= 1e-9)) {
        fail_msg("carriage is %.4f and %.4f times what it was, and not %.4f", message, bandwidth,
                 factor);
    }
}

static void take(void)
{
    struct calibration_run *const runs[] = {&run};
    calibration_take_unseen(runs, 1, &calibration);
}

static void what_timelines_do_not_show_is_found(void **state)
{
    (void)state;
    take_as_long_as(1.5);
    take();
    check_factor(1.5);
    assert_int_equal(calibration.cost_notes.count, 1);
    assert_non_null(strstr(calibration.cost_notes.list[0].text, "1 run takes as long"));
}

static void a_run_that_is_faster_changes_nothing(void **state)
{
    (void)state;
    take_as_long_as(0.5);
    take();
    check_factor(1);
}

static void runs_that_do_not_show_it_are_left_out(void **state)
{
    (void)state;
    take_as_long_as(2);
    run.hosts[0].cores = 1; // they take turns, which is another cost
    take();
    run.hosts[0].cores = 2;
    snprintf(run.transport, sizeof(run.transport), "shm");
    take();
    snprintf(run.transport, sizeof(run.transport), "tcp");
    run.observation.cores.workers.processes = 0; // a timeline of before
    take();
    check_factor(1);
    assert_int_equal(calibration.cost_notes.count, 0);
}

/* Two workers on one core, which was busy all the time: of 10 ms, threads had 9.8. */
static void where_slices_are_known_a_crowded_run_shows_it(void **state)
{
    (void)state;
    take_as_long_as(1.5); // which would say something else
    run.hosts[0].cores = 1;
    run.observation.cores.step_s = 0.010;
    run.observation.cores.busy = 0.98;
    run.observation.cores.workers.others_s = 0.0012;
    calibration.costs.input_s = 0.0002;
    take();
    check_factor(1); // slices are not known
    calibration.costs.slice_s = 0.004;
    take();
    check_factor(1 + 0.0002 / 0.002);
    assert_int_equal(calibration.cost_notes.count, 1);
    assert_non_null(strstr(calibration.cost_notes.list[0].text, "shared a core"));
}

/* Links are the limit, and cores are idle. */
static void runs_that_cores_do_not_limit_are_left_out(void **state)
{
    (void)state;
    calibration.links.memory = 2e7;
    take_as_long_as(1);
    run.observation.passed_s *= 1.02;
    take();
    check_factor(1);
    assert_int_equal(calibration.cost_notes.count, 0);
}

static void a_run_that_nothing_explains_changes_nothing(void **state)
{
    (void)state;
    take_as_long_as(1);
    run.observation.passed_s *= 10; // others used the cores
    take();
    check_factor(1);
    assert_int_equal(calibration.cost_notes.count, 1);
    assert_true(calibration.cost_notes.list[0].is_assumed);
}

/* Each worker on a host of its own, and both hosts on one machine. */
static void set_hosts_of_one_machine(double nic)
{
    run.host_count = 2;
    snprintf(run.hosts[1].name, sizeof(run.hosts[1].name), "i");
    run.hosts[0].workers = run.hosts[1].workers = 1;
    run.hosts[1].cores = 2;
    run.hosts[0].machine = run.hosts[1].machine = 7;
    calibration.links.nic = nic;
}

static void hosts_of_one_machine_share_its_cores(void **state)
{
    (void)state;
    set_hosts_of_one_machine(1e10);
    take_as_long_as(1.5);
    take();
    check_factor(1.5);
}

/* Steps show the carriage, and how long links take as well. */
static void runs_that_links_limit_too_are_left_out(void **state)
{
    (void)state;
    set_hosts_of_one_machine(3e8);
    take_as_long_as(1.5);
    take();
    check_factor(1);
    assert_int_equal(calibration.cost_notes.count, 0);
}

static void runs_whose_messages_go_another_way_are_left_out(void **state)
{
    (void)state;
    static struct calibration_run other;
    take_as_long_as(1.5);
    other = run;
    other.host_count = 2; // what the network has
    calibration.widest = &other;
    take();
    check_factor(1);
    run.host_count = 2; // hosts of machines that nobody knows
    take();
    check_factor(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_timelines_do_not_show_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_is_faster_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_that_do_not_show_it_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_slices_are_known_a_crowded_run_shows_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(runs_that_cores_do_not_limit_are_left_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_nothing_explains_changes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(hosts_of_one_machine_share_its_cores, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_that_links_limit_too_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_whose_messages_go_another_way_are_left_out, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
