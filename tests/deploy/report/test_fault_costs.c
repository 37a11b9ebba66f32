/* Tests of what faults have cost, as reports say it. */
#include "deploy/page/html_faults.h"
#include "deploy/report/fault_costs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run that has no metrics: its summary, details and job. */
static struct run_folder make_run(const char *fault, const char *mode, const char *digest,
                                  double seconds)
{
    struct run_folder run = {.path = "/nowhere"};
    snprintf(run.label, sizeof(run.label), "%s", mode);
    run.summary = json_pack("{s:s, s:s, s:s, s:f}", "outcome", "completed", "mode", mode,
                            "params_digest", digest, "seconds", seconds);
    run.job = json_pack("{s:{s:s, s:s, s:s}}", "options", "fault", fault, "mode", mode, "on-loss",
                        "shrink");
    if (strcmp(fault, "none") == 0) {
        return run; // and has lost nobody
    }
    run.details =
        json_pack("{s:[{s:i, s:i, s:i, s:I, s:f}, {s:i, s:i, s:i, s:I, s:f}]}", "recoveries",
                  "begin_step", 10, "lost_step", 14, "steps_redone", 4, "bytes",
                  (json_int_t)1 << 20, "seconds", 0.5, "begin_step", 30, "lost_step", 31,
                  "steps_redone", 1, "bytes", (json_int_t)1 << 20, "seconds", 0.25);
    assert_non_null(run.summary);
    assert_non_null(run.job);
    assert_non_null(run.details);
    return run;
}

static void close_runs(struct run_folder *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        run_folder_close(&runs[i]);
    }
}

static void losses_are_added_up_and_compared_with_the_job_without_faults(void **state)
{
    (void)state;
    struct run_folder runs[] = {
        make_run("rank=1,step=15,kill", "ring", "aa", 12),
        make_run("none", "ps-sync", "bb", 9),
        make_run("none", "ring", "aa", 10),
        make_run("rank=1,step=15,kill", "ps-sync", "cc", 9),
    };
    struct fault_cost cost;
    assert_true(fault_cost_find(runs, 4, 0, &cost));
    assert_int_equal(cost.losses, 2);
    assert_true(cost.seconds == 0.75);
    assert_int_equal(cost.steps_redone, 5);
    assert_int_equal(cost.bytes, 2 << 20);
    assert_true(cost.whole_seconds == 2);
    assert_int_equal(cost.bits, FAULT_BITS_SAME);
    assert_true(fault_cost_find(runs, 4, 3, &cost));
    assert_int_equal(cost.bits, FAULT_BITS_OTHER);
    assert_false(fault_cost_find(runs, 4, 1, &cost)); // has none
    close_runs(runs, 4);
}

/* A file of a run may be damaged, or somebody else's. */
static void counts_that_are_none_count_as_nothing(void **state)
{
    (void)state;
    struct run_folder run = make_run("rank=1,step=15,kill", "ring", "aa", 12);
    json_t *first = json_array_get(json_object_get(run.details, "recoveries"), 0);
    json_object_set_new(first, "steps_redone", json_integer(-4));
    json_object_set_new(first, "bytes", json_real(1e300));
    struct fault_cost cost;
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.steps_redone, 1);
    assert_true(cost.bytes == 1 << 20);
    close_runs(&run, 1);
}

static void a_coordinator_that_was_done_without_has_held_nobody_up(void **state)
{
    (void)state;
    struct run_folder run = make_run("shard=0,step=15,kill", "ring", "aa", 12);
    json_t *first = json_array_get(json_object_get(run.details, "recoveries"), 0);
    json_object_set_new(first, "trained_on", json_true());
    struct fault_cost cost;
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.losses, 2);
    assert_true(cost.seconds == 0.25);
    close_runs(&run, 1);
}

/* Its step and its seconds are null: there are none. */
static void a_loss_that_the_job_did_not_outlast_has_cost_nothing_to_go_on(void **state)
{
    (void)state;
    char cells[FAULT_COLUMNS][FAULT_CELL_BYTES];
    struct run_folder run = make_run("rank=1,step=15,kill", "ring", "aa", 12);
    json_t *recoveries = json_object_get(run.details, "recoveries");
    for (size_t i = 0; i < 2; i++) {
        json_t *recovery = json_array_get(recoveries, i);
        json_object_set_new(recovery, "begin_step", json_null());
        json_object_set_new(recovery, "seconds", json_null());
        json_object_set_new(recovery, "steps_redone", json_integer(0));
    }
    struct fault_cost cost;
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.losses, 2);
    assert_false(cost.has_gone_on);
    fault_cost_format(&run, &cost, cells);
    assert_string_equal(cells[4], "-");
    assert_string_equal(cells[8], "-");
    close_runs(&run, 1);
}

/* A worker that is started again costs time and steps, too. */
static void who_comes_is_no_loss(void **state)
{
    (void)state;
    struct run_folder run = make_run("rank=1,step=15,kill", "ring", "aa", 12);
    json_t *recoveries = json_object_get(run.details, "recoveries");
    json_object_set_new(run.summary, "workers", json_integer(4));
    json_object_set_new(json_array_get(recoveries, 0), "processes", json_integer(3));
    json_object_set_new(json_array_get(recoveries, 1), "processes", json_integer(4));
    struct fault_cost cost;
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.losses, 1);
    assert_int_equal(cost.joins, 1);
    assert_true(cost.seconds == 0.75);
    assert_int_equal(cost.steps_redone, 5);
    json_object_set_new(json_object_get(run.job, "options"), "processes", json_integer(2));
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.losses, 0); // two have joined
    close_runs(&run, 1);
}

/* One that was overtaken by the next has no ranks that have taken part. */
static json_t *recovery_of(int processes, bool is_overtaken)
{
    return json_pack("{s:i, s:i, s:i}", "processes", processes, "ranks", is_overtaken ? 0 : 3,
                     "begin_step", 10);
}

/* One of three is lost, another one comes, and ends before it has taken part in anything. */
static void who_has_come_and_taken_no_part_is_no_loss(void **state)
{
    (void)state;
    struct run_folder run = make_run("rank=1,step=15,kill", "ring", "aa", 12);
    json_t *recoveries = json_object_get(run.details, "recoveries");
    json_object_set_new(run.summary, "workers", json_integer(3));
    json_object_set_new(run.summary, "workers_lost", json_integer(1));
    json_array_clear(recoveries);
    json_array_append_new(recoveries, recovery_of(2, false));
    json_array_append_new(recoveries, recovery_of(3, true));
    json_array_append_new(recoveries, recovery_of(2, false));
    struct fault_cost cost;
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.losses, 1);
    assert_int_equal(cost.joins, 0);
    json_array_append_new(recoveries, recovery_of(3, false)); // another one, which trains
    json_array_append_new(recoveries, recovery_of(2, false));
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.losses, 2);
    assert_int_equal(cost.joins, 1);
    close_runs(&run, 1);
}

/* As the coordinator has counted them. The run has no metrics: it was lost before any. */
static void rates_before_during_and_after_are_those_of_the_recoveries(void **state)
{
    (void)state;
    static const char *const keys[] = {"images_per_second_before", "images_per_second_during",
                                       "images_per_second_after", "seconds_behind"};
    static const double values[2][4] = {{8000, 1000, 6000, 1}, {6000, 0, 7000, 3}};
    char cells[FAULT_COLUMNS][FAULT_CELL_BYTES];
    struct run_folder run = make_run("rank=1,step=15,kill", "ring", "aa", 12);
    json_t *recoveries = json_object_get(run.details, "recoveries");
    struct fault_cost cost;
    assert_true(fault_cost_find(&run, 1, 0, &cost)); // of an older version
    fault_cost_format(&run, &cost, cells);
    assert_string_equal(cells[5], "-");
    assert_string_equal(cells[6], "-");
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 4; k++) {
            json_object_set_new(json_array_get(recoveries, i), keys[k], json_real(values[i][k]));
        }
    }
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    fault_cost_format(&run, &cost, cells);
    assert_string_equal(cells[5], "8000");
    assert_string_equal(cells[6], "250"); // 1000 images in four seconds
    assert_string_equal(cells[7], "7000");
    json_object_set_new(json_array_get(recoveries, 0), keys[1], json_real(0));
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    fault_cost_format(&run, &cost, cells);
    assert_string_equal(cells[6], "0"); // no step was made again
    close_runs(&run, 1);
}

/* The name of the row says that one comes. */
static void a_join_that_never_came_is_told_with_the_row(void **state)
{
    (void)state;
    struct run_folder run = make_run("rank=1,step=15,kill;after=step:30,join", "ring", "aa", 12);
    json_object_set_new(run.details, "unmet",
                        json_pack("[s, s]", "--timeline-steps 1..9 has recorded nothing",
                                  "--fault after=step:30,join did not strike: no <worker>"));
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    fault_costs_print(memory, &run, 1);
    html_faults(memory, &run, 1);
    fclose(memory);
    assert_non_null(strstr(text, " 0 of 1 "));    // of the joins
    assert_non_null(strstr(text, "<td>0 of 1<")); // on the page
    assert_non_null(strstr(text, "\nring: --fault after=step:30,join did not strike: no <worker>"));
    assert_non_null(strstr(text, ">ring: --fault after=step:30,join did not strike: no &lt;"));
    assert_null(strstr(text, "timeline"));
    free(text);
    close_runs(&run, 1);
}

/* --on-loss fail, and what --restarts starts again as a whole. */
static void losses_that_nobody_has_outlasted_count(void **state)
{
    (void)state;
    char cells[FAULT_COLUMNS][FAULT_CELL_BYTES];
    struct run_folder run = make_run("none", "ring", "aa", 12);
    struct fault_cost cost;
    assert_false(fault_cost_find(&run, 1, 0, &cost));
    json_object_set_new(run.summary, "workers_lost", json_integer(2));
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.losses, 2);
    fault_cost_format(&run, &cost, cells);
    assert_string_equal(cells[1], "2");
    assert_string_equal(cells[4], "-"); // nobody knows
    assert_string_equal(cells[8], "-");
    close_runs(&run, 1);
    run = make_run("shard=1,step=15,kill", "ps-sync", "aa", 12); // a server is no worker
    json_object_set_new(run.summary, "outcome", json_string("failed"));
    json_decref(run.details);
    run.details = json_pack("{s:{s:s, s:i}}", "failed_member", "role", "server", "index", 1);
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.losses, 1);
    close_runs(&run, 1);
}

/* Somebody has killed a worker: there is no --fault. */
static void a_loss_that_nobody_has_planned_has_its_row(void **state)
{
    (void)state;
    struct run_folder runs[] = {make_run("rank=1,step=15,kill", "ring", "aa", 12),
                                make_run("none", "ring", "aa", 10)};
    json_object_set_new(json_object_get(runs[0].job, "options"), "fault", json_string("none"));
    struct fault_cost cost;
    assert_true(fault_cost_find(runs, 2, 0, &cost));
    assert_int_equal(cost.losses, 2);
    assert_true(cost.whole_seconds == 2);
    assert_int_equal(cost.bits, FAULT_BITS_SAME);
    assert_false(fault_cost_find(runs, 2, 1, &cost));
    close_runs(runs, 2);
}

static void a_coordinator_that_was_started_again_had_the_same_job(void **state)
{
    (void)state;
    struct run_folder runs[] = {make_run("shard=0,step=15,kill", "ring", "aa", 12),
                                make_run("none", "ring", "aa", 10)};
    for (uint32_t i = 0; i < 2; i++) {
        json_object_set_new(runs[i].summary, "workers", json_integer(4));
        json_object_set_new(json_object_get(runs[i].job, "options"), "processes",
                            json_integer(i == 0 ? 4 : 0));
    }
    struct fault_cost cost;
    assert_true(fault_cost_find(runs, 2, 0, &cost));
    assert_int_equal(cost.bits, FAULT_BITS_SAME);
    close_runs(runs, 2);
}

static void without_a_job_to_compare_with_bits_are_not_known(void **state)
{
    (void)state;
    struct run_folder run = make_run("rank=1,step=15,kill", "ring", "aa", 12);
    struct fault_cost cost;
    assert_true(fault_cost_find(&run, 1, 0, &cost));
    assert_int_equal(cost.bits, FAULT_BITS_UNKNOWN);
    close_runs(&run, 1);
}

static void the_table_and_the_page_have_a_row_for_each_run_with_faults(void **state)
{
    (void)state;
    struct run_folder runs[] = {make_run("rank=1,step=15,kill", "ri<ng", "aa", 12),
                                make_run("none", "ri<ng", "aa", 10)};
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    fault_costs_print(memory, runs, 2);
    html_faults(memory, runs, 2);
    fclose(memory);
    assert_non_null(strstr(text, "ri<ng "));
    assert_non_null(strstr(text, "<th>s to go on</th>"));
    assert_non_null(
        strstr(text, "<td>ri&lt;ng</td><td>2</td><td>0</td><td>shrink</td><td>0.75</td><td>-</td>"
                     "<td>-</td><td>-</td><td>5</td><td>2.0</td><td>2.0</td><td>same</td>"));
    free(text);
    memory = open_memstream(&text, &size);
    fault_costs_print(memory, &runs[1], 1);
    html_faults(memory, &runs[1], 1);
    fclose(memory);
    assert_string_equal(text, "");
    free(text);
    close_runs(runs, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_added_up_and_compared_with_the_job_without_faults),
        cmocka_unit_test(counts_that_are_none_count_as_nothing),
        cmocka_unit_test(a_coordinator_that_was_done_without_has_held_nobody_up),
        cmocka_unit_test(a_loss_that_the_job_did_not_outlast_has_cost_nothing_to_go_on),
        cmocka_unit_test(who_comes_is_no_loss),
        cmocka_unit_test(who_has_come_and_taken_no_part_is_no_loss),
        cmocka_unit_test(rates_before_during_and_after_are_those_of_the_recoveries),
        cmocka_unit_test(a_join_that_never_came_is_told_with_the_row),
        cmocka_unit_test(losses_that_nobody_has_outlasted_count),
        cmocka_unit_test(a_loss_that_nobody_has_planned_has_its_row),
        cmocka_unit_test(a_coordinator_that_was_started_again_had_the_same_job),
        cmocka_unit_test(without_a_job_to_compare_with_bits_are_not_known),
        cmocka_unit_test(the_table_and_the_page_have_a_row_for_each_run_with_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
