/* Runs whose cores worked for known times: what carries their messages is found in them. */
#include "deploy/calibrate/calibration_cores.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PARAMETERS UINT64_C(100000)
#define BYTES      (4.0 * (double)PARAMETERS)
#define ENDS       8.0
#define ALONE_S    2e-3 // a step of one worker
#define SLICE_S    4e-3
#define PART_S     10e-6
#define BYTE_S     1e-9

static struct calibration_run local, plain, coded, longer;
static struct calibration calibration;

static void check_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-6 * fabs(expected))) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

/* Steps of so many workers on two cores, and of a server beside several. `carried`: bytes of a
 * worker's messages as they went. */
static void set_run(struct calibration_run *run, uint32_t workers, const char *transport,
                    const char *compress, double carried)
{
    memset(run, 0, sizeof(*run));
    run->workers = workers;
    run->threads = 1;
    run->parameters = PARAMETERS;
    run->host_count = 1;
    run->hosts[0].cores = 2;
    snprintf(run->transport, sizeof(run->transport), "%s", transport);
    snprintf(run->compress, sizeof(run->compress), "%s", compress);
    run->observation.step_count = run->observation.job_steps = 1;
    run->observation.cores.step_s = 4e-3;
    run->observation.cores.busy = 1;
    run->observation.cores.workers =
        (struct observed_cpu){.processes = workers, .compute_s = ALONE_S};
    if (workers > 1) {
        struct observed_cpu *cpu = &run->observation.cores.workers;
        cpu->ends = ENDS;
        cpu->bytes = 2 * BYTES; // pushed, and answered
        cpu->others_s = ENDS * PART_S + carried * BYTE_S;
        run->observation.cores.servers = (struct observed_cpu){.processes = 1,
                                                               .ends = workers * cpu->ends,
                                                               .bytes = workers * cpu->bytes,
                                                               .others_s = workers * cpu->others_s};
    }
}

static void take_cores(size_t count)
{
    struct calibration_run *runs[] = {&local, &plain, &coded};
    memset(&calibration, 0, sizeof(calibration));
    calibration_take_cores(runs, count, &local, &calibration);
}

/* Where slices are so long, or, with 0, not known, and computing is slower beside others. */
static void take_turns(struct calibration_run *const *runs, size_t count, double slice_s,
                       double crowding)
{
    memset(&calibration, 0, sizeof(calibration));
    calibration.costs.slice_s = slice_s;
    calibration.costs.crowding = crowding;
    calibration_take_turns(runs, count, &local, &calibration);
}

/* In one run messages and their bytes cannot be told apart. */
static void codes_show_what_bytes_are_carried_for(void **state)
{
    (void)state;
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, 2, "tcp", "none", 2 * BYTES);
    set_run(&coded, 2, "tcp", "fp16", BYTES);
    take_cores(2);
    assert_true(calibration.costs.carriage_message_s == 0);
    take_cores(3);
    check_near(calibration.costs.carriage_message_s, PART_S);
    check_near(calibration.costs.carriage_bandwidth, 1 / BYTE_S);
}

static void nothing_is_carried_of_what_is_lent(void **state)
{
    (void)state;
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, 2, "shm", "none", 0);
    take_cores(2);
    check_near(calibration.costs.carriage_message_s, PART_S);
    assert_true(calibration.costs.carriage_bandwidth == 0);
}

/* Beside 0.8 of the other core computing is slower by 0.16, so beside all of it by a fifth. */
static void computing_is_slower_beside_others_with_codes_too(void **state)
{
    (void)state;
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, 2, "tcp", "none", 2 * BYTES);
    set_run(&coded, 2, "tcp", "fp16", BYTES);
    coded.observation.cores.workers.compute_s = 1.16 * ALONE_S;
    coded.observation.cores.busy =
        coded.observation.cores.workers.compute_s / coded.observation.cores.step_s + 0.8;
    plain.observation.cores.busy = ALONE_S / plain.observation.cores.step_s; // nobody beside it
    take_cores(3);
    check_near(calibration.costs.crowding, 1.2);
}

/* Of each core messages have a half of a slice, and computing takes a fifth longer besides. */
static void what_messages_put_out_of_caches_is_not_crowding(void **state)
{
    (void)state;
    struct calibration_run *const runs[] = {&local, &plain};
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, 2, "tcp", "none", 2 * BYTES);
    struct observed_cores *cores = &plain.observation.cores;
    cores->workers.messages_s = 0.2 * SLICE_S;
    cores->workers.others_s = 0.1 * SLICE_S;
    cores->servers.others_s = 0.4 * SLICE_S;
    cores->workers.compute_s = 1.2 * (ALONE_S + 0.5 * 0.1 * SLICE_S);
    cores->busy = cores->workers.compute_s / cores->step_s + 1;
    memset(&calibration, 0, sizeof(calibration));
    calibration.costs.slice_s = SLICE_S;
    calibration.costs.refill_s = 0.1 * SLICE_S;
    calibration_take_crowding(runs, 2, &local, &calibration);
    check_near(calibration.costs.crowding, 1.2);
}

static void take_messages_away(struct calibration_run *run)
{
    run->observation.cores.servers.processes = 0;
    run->observation.cores.workers.others_s = 0;
}

/* A run of several workers on one core, who compute so much longer than one worker alone does, and
 * whose messages take no time. */
static void set_crowded(uint32_t workers, double alone_s, double longer_s)
{
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, workers, "shm", "none", 0);
    take_messages_away(&plain);
    plain.hosts[0].cores = 1;
    local.observation.cores.workers.compute_s = alone_s;
    plain.observation.cores.workers.compute_s = alone_s + longer_s;
}

static void take_crowded(uint32_t workers, double alone_s, double longer_s)
{
    struct calibration_run *const runs[] = {&local, &plain};
    set_crowded(workers, alone_s, longer_s);
    take_turns(runs, 2, SLICE_S, 1.25);
}

/* Between two turns of a worker the other has had a half of a slice, or, of ten, all of each. */
static void where_slices_are_known_turns_have_a_time_each(void **state)
{
    (void)state;
    take_crowded(2, 0.4 * SLICE_S, 0.1 * SLICE_S);
    check_near(calibration.costs.refill_s, 0.2 * SLICE_S);
    assert_true(calibration.costs.turns == 0);
    take_crowded(4, 0.4 * SLICE_S, 0.1 * SLICE_S); // three others: more than a slice
    check_near(calibration.costs.refill_s, 0.1 * SLICE_S);
    take_crowded(2, 9.5 * SLICE_S, 0.5 * SLICE_S);
    check_near(calibration.costs.refill_s, 0.05 * SLICE_S);
    take_crowded(2, SLICE_S, -0.1 * SLICE_S); // no thread gets quicker by turns
    assert_true(calibration.costs.refill_s == 0);
}

/* Two workers, whose messages interrupt each of them for a tenth of a slice: between two turns of
 * one the other has had 0.5 of a slice, and messages 0.1. */
static void messages_put_out_of_caches_what_turns_do(void **state)
{
    (void)state;
    struct calibration_run *const runs[] = {&local, &plain};
    set_crowded(2, 0.36 * SLICE_S, 0.14 * SLICE_S);
    plain.observation.cores.workers.others_s = 0.1 * SLICE_S;
    take_turns(runs, 2, SLICE_S, 1.25);
    check_near(calibration.costs.refill_s, 0.2 * SLICE_S);
}

/* With a larger batch, whose steps are two slices long, and not of the batch that costs are of. */
static void long_steps_show_what_turns_cost(void **state)
{
    (void)state;
    struct calibration_run *const runs[] = {&local, &plain, &coded, &longer};
    set_crowded(2, 0.4 * SLICE_S, 0);
    set_run(&coded, 1, "none", "none", 0);
    set_run(&longer, 2, "shm", "none", 0);
    take_messages_away(&longer);
    longer.hosts[0].cores = 1;
    longer.batch = coded.batch = local.batch + 1;
    coded.observation.cores.workers.compute_s = 1.9 * SLICE_S;
    longer.observation.cores.workers.compute_s = 2 * SLICE_S;
    take_turns(runs, 4, SLICE_S, 1.25);
    check_near(calibration.costs.refill_s, 0.05 * SLICE_S);
    longer.batch++; // nothing is known of that alone
    take_turns(runs, 4, SLICE_S, 1.25);
    assert_true(calibration.costs.refill_s == 0);
}

static void where_slices_are_not_known_turns_are_a_factor(void **state)
{
    (void)state;
    struct calibration_run *const runs[] = {&local, &plain};
    set_crowded(2, ALONE_S, 0.2 * ALONE_S);
    take_turns(runs, 2, 0, 1.25);
    check_near(calibration.costs.turns, 1.2);
    assert_true(calibration.costs.refill_s == 0);
}

/* The other core was busy for half of the time, as where a link is slow. */
static void runs_that_wait_for_links_do_not_show_what_others_take(void **state)
{
    (void)state;
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, 2, "tcp", "none", 2 * BYTES);
    plain.observation.cores.workers.compute_s = 1.2 * ALONE_S;
    plain.observation.cores.busy =
        plain.observation.cores.workers.compute_s / plain.observation.cores.step_s + 0.5;
    take_cores(2);
    assert_true(calibration.costs.crowding == 0);
}

/* Four workers on two cores, both of which are busy: that alone makes their steps longer. */
static void turns_are_found_besides_crowding(void **state)
{
    (void)state;
    struct calibration_run *const runs[] = {&local, &plain};
    set_crowded(4, 0.4 * SLICE_S, 0.2 * SLICE_S);
    plain.hosts[0].cores = 2;
    take_turns(runs, 2, SLICE_S, 1.25); // 0.1 of a slice is for 0.6 of others', and is crowded, too
    check_near(calibration.costs.refill_s, 0.1 / 0.6 / 1.25 * SLICE_S);
    take_turns(runs, 2, 0, 1.25);
    check_near(calibration.costs.turns, 1.25);
}

/* One worker alone took longer the second time, and so did what came next to that run. */
static void runs_are_compared_with_those_next_to_them(void **state)
{
    (void)state;
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, 1, "none", "none", 0);
    set_run(&coded, 2, "tcp", "none", 2 * BYTES);
    plain.observation.cores.workers.compute_s = 1.2 * ALONE_S;
    coded.observation.cores.workers.compute_s = 1.1 * 1.2 * ALONE_S;
    coded.observation.cores.busy =
        coded.observation.cores.workers.compute_s / coded.observation.cores.step_s + 1;
    take_cores(3);
    check_near(calibration.costs.crowding, 1.1);
    struct calibration_run *const runs[] = {&local, &plain, &coded};
    check_near(calibration_speed_share(runs, 3, &local), 1.1);
    check_near(calibration_speed_share(runs, 1, &local), 1);
}

/* Of runs of one worker alone before and behind, of which the second took a fifth longer, each
 * counts the more the nearer it is: behind a third of the way the machine had become slower by a
 * third of that. */
static void runs_between_two_of_one_worker_are_compared_with_both(void **state)
{
    (void)state;
    static struct calibration_run again;
    struct calibration_run *const runs[] = {&local, &plain, &coded, &again};
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, 2, "tcp", "none", 2 * BYTES);
    set_run(&coded, 2, "tcp", "fp16", BYTES);
    set_run(&again, 1, "none", "none", 0);
    again.observation.cores.workers.compute_s = 1.2 * ALONE_S;
    struct observed_cores *cores = &plain.observation.cores;
    cores->workers.compute_s = 1.1 * (1 + 0.2 / 3) * ALONE_S;
    cores->busy = cores->workers.compute_s / cores->step_s + 1;
    coded.observation.cores.busy = ALONE_S / coded.observation.cores.step_s; // nobody beside it
    memset(&calibration, 0, sizeof(calibration));
    calibration_take_cores(runs, 4, &local, &calibration);
    check_near(calibration.costs.crowding, 1.1);
}

/* Of both kinds of runs the quickest quarter of all steps counts, and runs that wait for messages
 * do not count beside them. */
static void workers_that_are_apart_show_crowding_by_their_quickest_steps(void **state)
{
    (void)state;
    static struct calibration_run again;
    static double quick[4] = {1e-3, 5e-3, 9e-3, 7e-3}, slow[4] = {3e-3, 3e-3, 3e-3, 3e-3};
    static double beside[4] = {9e-3, 2.4e-3, 8e-3, 3e-3};
    struct calibration_run *const runs[] = {&local, &plain, &coded, &again};
    set_run(&local, 1, "none", "none", 0);
    set_run(&again, 1, "none", "none", 0);
    set_run(&plain, 2, "tcp", "none", 2 * BYTES);
    set_run(&coded, 2, "tcp", "none", BYTES);
    local.observation.step_s = quick;
    again.observation.step_s = slow;
    coded.observation.step_s = beside;
    local.observation.step_count = again.observation.step_count = coded.observation.step_count = 4;
    coded.is_apart = true;
    struct observed_cores *cores = &plain.observation.cores;
    cores->workers.compute_s = 1.9 * ALONE_S;
    cores->busy = cores->workers.compute_s / cores->step_s + 1;
    coded.observation.cores.busy = ALONE_S / coded.observation.cores.step_s + 1;
    memset(&calibration, 0, sizeof(calibration));
    calibration_take_cores(runs, 4, &local, &calibration);
    check_near(calibration.costs.crowding, 2.4 / 2); // ms, those alone being 1 and 3
}

/* By more than a tenth, in whichever direction. */
static void a_machine_that_gets_slower_or_quicker_is_disturbed(void **state)
{
    (void)state;
    static const struct {
        double last_s; // 0: there is one run only
        bool is_disturbed;
    } cases[] = {{0, false}, {4.3e-3, false}, {3.7e-3, false}, {4.5e-3, true}, {3.6e-3, true}};
    set_run(&local, 1, "none", "none", 0);
    set_run(&plain, 2, "tcp", "none", 2 * BYTES);
    set_run(&coded, 1, "none", "none", 0);
    local.batch = plain.batch = coded.batch = 32;
    plain.observation.cores.step_s = 9e-3; // with others steps may take as long as they like
    struct calibration_run *const runs[] = {&local, &plain, &coded};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double first = 0, last = 0;
        coded.observation.cores.step_s = cases[i].last_s;
        assert_int_equal(
            calibration_is_disturbed(runs, cases[i].last_s > 0 ? 3 : 2, &local, &first, &last),
            cases[i].is_disturbed);
        if (cases[i].is_disturbed) {
            check_near(first, 32 / 4e-3);
            check_near(last, 32 / cases[i].last_s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_show_what_bytes_are_carried_for),
        cmocka_unit_test(nothing_is_carried_of_what_is_lent),
        cmocka_unit_test(computing_is_slower_beside_others_with_codes_too),
        cmocka_unit_test(runs_that_wait_for_links_do_not_show_what_others_take),
        cmocka_unit_test(runs_are_compared_with_those_next_to_them),
        cmocka_unit_test(runs_between_two_of_one_worker_are_compared_with_both),
        cmocka_unit_test(workers_that_are_apart_show_crowding_by_their_quickest_steps),
        cmocka_unit_test(a_machine_that_gets_slower_or_quicker_is_disturbed),
        cmocka_unit_test(what_messages_put_out_of_caches_is_not_crowding),
        cmocka_unit_test(where_slices_are_known_turns_have_a_time_each),
        cmocka_unit_test(messages_put_out_of_caches_what_turns_do),
        cmocka_unit_test(long_steps_show_what_turns_cost),
        cmocka_unit_test(where_slices_are_not_known_turns_are_a_factor),
        cmocka_unit_test(turns_are_found_besides_crowding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
