/* What servers take, by costs and in a run whose costs are known. */
#include "deploy/calibrate/calibration_service.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

#define STEPS    UINT64_C(10)
#define PUSHES   4
#define PUSHED   4e6 // bytes of a step
#define ANSWERED 3e6

static struct calibration_run run;
static struct calibration calibration;

static void check_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

static void set_up(double server_s)
{
    memset(&run, 0, sizeof(run));
    memset(&calibration, 0, sizeof(calibration));
    calibration.costs.message_s = 20e-6;
    calibration.costs.message_bandwidth = 10e9;
    calibration.costs.sum_bandwidth = 5e9;
    calibration.costs.optimizer_s = 3e-3;
    run.threads = 1;
    run.observation.job_steps = STEPS;
    run.observation.served.bytes = PUSHED * (double)STEPS;
    run.observation.cores.workers.processes = 2;
    run.observation.cores.servers = (struct observed_cpu){
        .processes = 1, .messages_s = server_s, .ends = 2 * PUSHES, .bytes = PUSHED + ANSWERED};
}

static void a_push_takes_its_message_its_values_and_its_sum(void **state)
{
    (void)state;
    set_up(0);
    const struct calibrated_service service = calibration_service(&calibration.costs, false);
    check_near(service.push_s, 20e-6);
    check_near(service.push_byte_s, 3e-10);
    check_near(service.answer_s, 20e-6);
    check_near(service.answer_byte_s, 1e-10);
    check_near(service.update_s, 3e-3);
    // Values that are lent are added up where they are.
    check_near(calibration_service(&calibration.costs, true).push_byte_s, 2e-10);
    assert_true(calibration_service(&calibration.costs, true).answer_byte_s == 0);
    calibration.costs.message_bandwidth = calibration.costs.sum_bandwidth = 0; // in no time
    check_near(calibration_service(&calibration.costs, false).push_byte_s, 0);
}

static void a_step_of_a_server_stands_beside_what_it_was(void **state)
{
    (void)state;
    struct calibration_run *list[] = {&run};
    double said_s = 0, was_s = 0;
    set_up(5e-3);
    assert_true(calibration_service_step(&run, &calibration.costs, &said_s, &was_s));
    check_near(said_s, 2 * PUSHES * 20e-6 + PUSHED * 3e-10 + ANSWERED * 1e-10 + 3e-3);
    check_near(was_s, 5e-3);
    calibration_note_service(list, 1, &calibration);
    assert_string_equal(calibration.cost_notes.list[0].name, "service");
    assert_non_null(strstr(calibration.cost_notes.list[0].text,
                           "20 us and 300 us a MB for a push, 20 us and 100 us a MB for an answer, "
                           "3 ms for an update; of a step 4.66 ms, and 5 ms in runs"));
}

static void a_run_without_servers_shows_no_step(void **state)
{
    (void)state;
    double said_s = 0, was_s = 0;
    set_up(5e-3);
    run.observation.cores.servers.processes = 0;
    assert_false(calibration_service_step(&run, &calibration.costs, &said_s, &was_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_takes_its_message_its_values_and_its_sum),
        cmocka_unit_test(a_step_of_a_server_stands_beside_what_it_was),
        cmocka_unit_test(a_run_without_servers_shows_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
