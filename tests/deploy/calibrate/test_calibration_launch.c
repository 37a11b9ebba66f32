/* What starting jobs costs: what was put in comes out. */
#include "deploy/calibrate/calibration_launch.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static struct calibration_run runs[3];
static struct calibration calibration;

static void set_run(struct calibration_run *run, uint32_t workers, uint32_t cores, double start_s)
{
    memset(run, 0, sizeof(*run));
    run->workers = workers;
    run->threads = run->host_count = 1;
    run->hosts[0].cores = cores;
    run->hosts[0].machine = 7;
    run->start_s = start_s;
    run->agents_s = 0.05;
}

static const struct launch_costs *take(size_t count)
{
    struct calibration_run *list[] = {&runs[0], &runs[1], &runs[2]};
    memset(&calibration, 0, sizeof(calibration));
    calibration_take_launch(list, count, &calibration);
    assert_int_equal(calibration.cost_notes.count, 1);
    return &calibration.costs.launch;
}

static void check_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-9)) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

static void what_processes_joins_and_the_job_take_is_told_apart(void **state)
{
    (void)state;
    set_run(&runs[0], 1, 2, 0.1 + 0.3 + 0.02); // job, process, join
    set_run(&runs[1], 2, 2, 0.1 + 0.3 + 2 * 0.02);
    set_run(&runs[2], 2, 1, 0.1 + 2 * 0.3 + 2 * 0.02);
    const struct launch_costs *launch = take(3);
    check_near(launch->agents_s, 0.05);
    check_near(launch->job_s, 0.1);
    check_near(launch->process_s, 0.3);
    check_near(launch->join_s, 0.02);
    assert_false(calibration.cost_notes.list[0].is_assumed);
}

/* Whichever of them comes last: four workers on a core take longer than two. */
static void of_runs_on_few_cores_the_quickest_counts_with_its_own_workers(void **state)
{
    (void)state;
    set_run(&runs[0], 1, 2, 0.1 + 0.3);
    set_run(&runs[1], 2, 1, 0.1 + 2 * 0.3);
    set_run(&runs[2], 4, 1, 0.1 + 4 * 0.3 + 1);
    check_near(take(3)->process_s, 0.3);
}

static void without_a_run_on_few_cores_all_of_one_worker_is_its_own(void **state)
{
    (void)state;
    set_run(&runs[0], 1, 2, 0.42);
    set_run(&runs[1], 2, 2, 0.44);
    const struct launch_costs *launch = take(2);
    check_near(launch->process_s, 0.4);
    check_near(launch->job_s, 0);
    assert_non_null(strstr(calibration.cost_notes.list[0].text, "assumed"));
}

/* As where something else has the cores. */
static void a_start_of_several_that_took_too_long_is_no_join(void **state)
{
    (void)state;
    set_run(&runs[0], 1, 2, 0.3);
    set_run(&runs[1], 2, 2, 0.9);
    set_run(&runs[2], 2, 2, 0.32);
    check_near(take(3)->join_s, 0.02); // the quickest one counts
    check_near(take(2)->join_s, 0.3);
}

static void runs_that_do_not_say_it_leave_it_unknown(void **state)
{
    (void)state;
    set_run(&runs[0], 1, 2, 0);
    assert_false(take(1)->is_given);
    assert_true(calibration.cost_notes.list[0].is_assumed);
}

/* A summary that was written `seconds` and a second behind the launch. */
static void a_start_is_the_end_without_what_was_trained(void **state)
{
    (void)state;
    static const char summary[] = "{\"outcome\": \"completed\", \"seconds\": 20}";
    char *folder = temp_folder_create(), path[600];
    struct stat found;
    temp_folder_write(folder, "summary.json", summary, strlen(summary));
    temp_folder_write(folder, "job.json", "{}", 2);
    snprintf(path, sizeof(path), "%s/summary.json", folder);
    assert_int_equal(stat(path, &found), 0);
    double ended_s = (double)found.st_mtim.tv_sec + 1e-9 * (double)found.st_mtim.tv_nsec;
    assert_int_equal(calibration_launch_write(folder, ended_s - 21.5, 0.25), STATUS_OK);
    struct run_folder kept;
    assert_int_equal(run_folder_open(folder, &kept), STATUS_OK);
    runs[0].folder = kept;
    calibration_launch_read(&runs[0]);
    assert_true(fabs(runs[0].start_s - 1.5) < 1e-3);
    check_near(runs[0].agents_s, 0.25);
    run_folder_close(&kept);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_processes_joins_and_the_job_take_is_told_apart),
        cmocka_unit_test(of_runs_on_few_cores_the_quickest_counts_with_its_own_workers),
        cmocka_unit_test(without_a_run_on_few_cores_all_of_one_worker_is_its_own),
        cmocka_unit_test(a_start_of_several_that_took_too_long_is_no_join),
        cmocka_unit_test(runs_that_do_not_say_it_leave_it_unknown),
        cmocka_unit_test(a_start_is_the_end_without_what_was_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
