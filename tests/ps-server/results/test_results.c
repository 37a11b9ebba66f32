/* Tests of what a job's reports add up to. */
#include "ps-server/results/results.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

static void the_staleness_of_servers_is_what_they_say_and_not_what_their_bins_hold(void **state)
{
    (void)state;
    struct results results;
    struct staleness shard = {0};
    staleness_add_many(&shard, 1300, 3);
    staleness_add(&shard, 100);
    const struct wire_report report = {.staleness = shard.counts,
                                       .staleness_bins = staleness_bins(&shard),
                                       .staleness_sum = shard.sum,
                                       .staleness_max = shard.max};
    assert_int_equal(results_init(&results, 1, 2), STATUS_OK);
    results_close_server(&results, 0, &report);
    results_close_server(&results, 1, &report);
    assert_true(staleness_mean(&results.staleness) == 1000);
    assert_int_equal(results.staleness.max, 1300);
    assert_int_equal(results.staleness.total, 8);
    assert_int_equal(results.staleness.counts[STALENESS_BINS - 1], 6);
    assert_true(staleness_is_capped(&results.staleness));
    results_finish(&results);
}

static void the_steps_of_a_job_are_those_of_its_average_worker(void **state)
{
    (void)state;
    struct results results;
    const struct wire_report few = {.steps = 10}, many = {.steps = 15};
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    assert_int_equal(results_steps_made(&results), 0);
    results_close_worker(&results, 0, &few);
    results_close_worker(&results, 1, &many);
    assert_int_equal(results_steps_made(&results), 12);
    results_finish(&results);
}

static void images_that_entered_no_update_are_no_throughput(void **state)
{
    (void)state;
    struct results results;
    const struct wire_report interval = {
        .steps = 4, .images = 64, .images_dropped = 16, .loss_sum = 128, .total_ns = 1000000000};
    struct wire_report period = interval;
    period.closes_period = true;
    struct message message = {.kind = MESSAGE_REPORT, .step = 4, .report = &interval};
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    assert_int_equal(results_add(&results, 0, &message), STATUS_OK);
    assert_true(results_current_rate(&results) == 48);
    assert_true(results.ranks[0].loss == 2); // of what was computed
    assert_int_equal(results_add(&results, 1, &message), STATUS_OK);
    assert_true(results_images(&results) == 96);
    assert_true(results_images_dropped(&results) == 32);
    message.report = &period;
    assert_int_equal(results_add(&results, 0, &message), STATUS_OK);
    assert_int_equal(results.periods[0].images, 64);
    assert_true(results.periods[0].images_dropped == 16);
    results_finish(&results);
}

static void the_rate_of_a_job_that_has_gone_on_is_that_of_all_its_parts(void **state)
{
    (void)state;
    struct results results, before;
    const struct wire_report early = {
        .steps = 90, .images = 900, .images_dropped = 100, .total_ns = 8000000000};
    const struct wire_report last = {.warm_images = 100, .warm_ns = 500000000};
    const struct message message = {.kind = MESSAGE_REPORT, .step = 90, .report = &early};
    assert_int_equal(results_init(&before, 2, 0), STATUS_OK);
    assert_int_equal(results_add(&before, 0, &message), STATUS_OK);
    assert_int_equal(results_add(&before, 1, &message), STATUS_OK);
    assert_int_equal(results_init(&results, 2, 0), STATUS_OK);
    results_go_on(&results, &before);
    results_close_worker(&results, 0, &last);
    results_close_worker(&results, 1, &last);
    assert_true(results_images_per_second(&results) == 1800 / 8.5);
    results_finish(&results);
}

/* The job had two shards until then, and has one since. */
static void what_servers_had_counted_until_then_counts_as_often_as_since(void **state)
{
    (void)state;
    struct results results, before;
    const uint64_t counts[] = {7, 0, 3};
    const struct wire_report last = {.staleness = counts,
                                     .staleness_bins = 3,
                                     .staleness_sum = 6,
                                     .staleness_max = 2,
                                     .late = 5};
    assert_int_equal(results_init(&before, 1, 2), STATUS_OK);
    assert_int_equal(results_init(&results, 1, 1), STATUS_OK);
    staleness_add_many(&before.staleness, 1, 40);
    before.late_count = 8;
    results_go_on(&results, &before);
    results_close_server(&results, 0, &last);
    assert_int_equal(results.staleness.total, 30);
    assert_int_equal(results.staleness.counts[1], 20);
    assert_int_equal(results.staleness.counts[2], 3);
    assert_int_equal(results.staleness.max, 2);
    assert_true(results.staleness.sum == 26);
    assert_int_equal(results.late_count, 4 + 5);
    results_finish(&results);
}

static void the_loss_is_that_of_the_ranks_that_compute(void **state)
{
    (void)state;
    struct results results;
    struct wire_report report = {.steps = 4, .images = 64, .loss_sum = 128, .total_ns = 1};
    const struct message message = {.kind = MESSAGE_REPORT, .step = 4, .report = &report};
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    assert_int_equal(results_add(&results, 0, &message), STATUS_OK);
    assert_int_equal(results_add(&results, 1, &message), STATUS_OK);
    assert_true(results_current_loss(&results) == 2);
    report.loss_sum = 64;
    assert_int_equal(results_add(&results, 0, &message), STATUS_OK);
    report.images = 0; // the other one is left out now
    report.loss_sum = 0;
    assert_int_equal(results_add(&results, 1, &message), STATUS_OK);
    assert_true(results_current_loss(&results) == 1);
    results_finish(&results);
}

/* Reports a test of 10 images after some steps of 4 images, or, without `correct`, what came after
 * the last test. */
static void evaluate(struct results *results, uint32_t rank, uint64_t step, int correct)
{
    const struct wire_report report = {.closes_period = true,
                                       .images = 4,
                                       .loss_sum = 2,
                                       .total_ns = 1000000000,
                                       .test_images = correct >= 0 ? 10 : 0,
                                       .test_correct = correct >= 0 ? (uint64_t)correct : 0,
                                       .test_loss_sum = (double)NAN};
    const struct message message = {.kind = MESSAGE_REPORT, .step = step, .report = &report};
    assert_int_equal(results_add_evaluation(results, rank, &message), STATUS_OK);
}

static void go_to(struct results *results, uint32_t rank, uint64_t step)
{
    const struct wire_report report = {.steps = 1};
    const struct message message = {.kind = MESSAGE_REPORT, .step = step, .report = &report};
    assert_int_equal(results_add(results, rank, &message), STATUS_OK);
}

static void end(struct results *results, uint32_t rank)
{
    const struct wire_report report = {.steps = 100};
    results_close_worker(results, rank, &report);
    assert_int_equal(results_add_rest(results), STATUS_OK);
}

static void the_evaluations_of_a_program_belong_together_by_their_number(void **state)
{
    (void)state;
    struct results results;
    uint32_t period;
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    assert_false(results_best(&results, 1, &period));
    evaluate(&results, 0, 10, 6);
    evaluate(&results, 0, 20, 9);
    assert_false(results_tell_next(&results, &period)); // the other one may come to it yet
    evaluate(&results, 1, 12, 8);
    assert_true(results_tell_next(&results, &period));
    assert_int_equal(period, 0);
    assert_false(results_tell_next(&results, &period));
    assert_int_equal(results.periods[0].step, 12);
    assert_true(results_accuracy(&results, 0) == 0.7);
    assert_true(isnan(results.periods[0].test_loss_sum));
    assert_true(results_period_rate(&results, 0) == 8);
    evaluate(&results, 1, 19, 9);
    assert_true(results_tell_next(&results, &period));
    assert_true(results_best(&results, 1, &period));
    assert_int_equal(period, 1);
    results_finish(&results);
}

static void a_process_that_does_not_evaluate_is_not_waited_for(void **state)
{
    (void)state;
    struct results results;
    uint32_t period;
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    evaluate(&results, 0, 10, 6);
    go_to(&results, 1, 10);
    assert_false(results_tell_next(&results, &period));
    go_to(&results, 1, 11);
    assert_true(results_tell_next(&results, &period));
    assert_true(results_period_rate(&results, 0) == 8); // as if it were as fast
    evaluate(&results, 0, 20, 5);
    evaluate(&results, 1, 20, -1); // all that it has done
    end(&results, 0);
    assert_false(results_tell_next(&results, &period));
    end(&results, 1);
    assert_true(results_tell_next(&results, &period));
    assert_int_equal(results.period_count, 2);
    assert_int_equal(results.periods[1].images, 4);
    assert_true(results_best(&results, 1, &period));
    assert_int_equal(period, 0);
    results_finish(&results);
}

static void what_comes_after_the_last_evaluation_of_all_is_a_period_of_its_own(void **state)
{
    (void)state;
    struct results results;
    uint32_t period;
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    evaluate(&results, 0, 10, 6);
    evaluate(&results, 1, 10, 6);
    evaluate(&results, 1, 15, -1);
    end(&results, 1);
    assert_int_equal(results.period_count, 1);
    evaluate(&results, 0, 15, -1);
    end(&results, 0);
    assert_int_equal(results.period_count, 2);
    assert_int_equal(results.periods[1].step, 15);
    assert_int_equal(results.periods[1].images, 8);
    assert_int_equal(results.periods[1].test_images, 0);
    assert_true(results_tell_next(&results, &period));
    assert_true(results_tell_next(&results, &period));
    assert_false(results_tell_next(&results, &period));
    results_finish(&results);
}

/* The last report of a phase counts: before it, a way may not have been open yet. */
static void what_values_travel_over_is_said_by_every_worker_for_every_phase(void **state)
{
    (void)state;
    struct results results;
    struct wire_report report = {.steps = 1, .transports = WIRE_TRANSPORT_IPC};
    const struct message message = {.kind = MESSAGE_REPORT, .step = 1, .report = &report};
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    assert_int_equal(results_transports(&results), 0);
    assert_int_equal(results_add(&results, 0, &message), STATUS_OK);
    report.transports = WIRE_TRANSPORT_SHM;
    assert_int_equal(results_add(&results, 0, &message), STATUS_OK);
    assert_int_equal(results_transports(&results), WIRE_TRANSPORT_SHM);
    results_end_phase(&results);
    report.transports = WIRE_TRANSPORT_TCP;
    assert_int_equal(results_add(&results, 1, &message), STATUS_OK);
    assert_int_equal(results_transports(&results), WIRE_TRANSPORT_SHM | WIRE_TRANSPORT_TCP);
    results_finish(&results);
}

/* In a race. One has made a slow first step, while the other has made the rest. */
static void a_share_of_the_steps_of_all_takes_the_time_that_has_passed(void **state)
{
    (void)state;
    struct results before, results;
    assert_int_equal(results_init(&before, 2, 1), STATUS_OK);
    const uint64_t made[] = {1, 23}, ns = 2000000000;
    for (uint32_t i = 0; i < 2; i++) {
        before.ranks[i] = (struct results_rank){.steps = made[i],
                                                .images = made[i] * 8,
                                                .loss_sum = (double)made[i] * 16,
                                                .total_ns = ns,
                                                .bytes_sent = made[i] * 100};
        results_rank_share(&before.ranks[i], 12, 96);
        assert_int_equal(before.ranks[i].step, 12);
        assert_int_equal(before.ranks[i].steps, 12);
        assert_int_equal(before.ranks[i].images, 96);
        assert_true(before.ranks[i].loss_sum == 192);
    }
    assert_int_equal(before.ranks[0].bytes_sent + before.ranks[1].bytes_sent, 2400);
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    results_go_on(&results, &before);
    assert_true(results_images_per_second(&results) == 96); // 192 in two seconds
    struct results_rank none = {.steps = 0};
    results_rank_share(&none, 12, 96); // they count, though it has not told of them
    assert_int_equal(none.images, 96);
    assert_true(none.loss_sum == 0);
    results_finish(&before);
    results_finish(&results);
}

static void a_job_that_nobody_has_ended_has_the_rate_of_what_was_reported(void **state)
{
    (void)state;
    struct results results;
    const struct wire_report report = {.steps = 10, .images = 40, .total_ns = 500000000};
    const struct message message = {.kind = MESSAGE_REPORT, .step = 10, .report = &report};
    assert_int_equal(results_init(&results, 2, 1), STATUS_OK);
    assert_true(results_images_per_second(&results) == 0);
    assert_int_equal(results_add(&results, 0, &message), STATUS_OK);
    assert_int_equal(results_add(&results, 1, &message), STATUS_OK);
    assert_true(results_images_per_second(&results) == 160);
    const struct wire_report last = {.steps = 10, .warm_images = 30, .warm_ns = 100000000};
    results_close_worker(&results, 0, &last);
    assert_true(results_images_per_second(&results) == 300); // its own account
    results_finish(&results);
}

/* What counts of evaluations when a program goes on from its commit, in other processes. */
static void evaluations_behind_the_last_commit_are_taken_back(void **state)
{
    (void)state;
    struct results results, next;
    uint32_t period;
    assert_int_equal(results_init(&results, 3, 1), STATUS_OK);
    for (uint32_t rank = 0; rank < 3; rank++) {
        evaluate(&results, rank, 10, 5);
    }
    assert_true(results_tell_next(&results, &period));
    const struct wire_report report = {.steps = 10, .images = 40};
    const struct message message = {.kind = MESSAGE_REPORT, .step = 10, .report = &report};
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_int_equal(results_add(&results, rank, &message), STATUS_OK);
    }
    results_note_commit(&results);
    assert_int_equal(results_add(&results, 0, &message), STATUS_OK);
    evaluate(&results, 0, 12, 9);
    assert_int_equal(results_init(&next, 2, 1), STATUS_OK);
    results_keep_committed(&next, &results);
    results_finish(&results);
    results_cut(&next, 10);
    assert_int_equal(next.period_count, 1);
    assert_true(results_images(&next) == 120);
    assert_true(results_best(&next, 1, &period));
    assert_true(results_accuracy(&next, period) == 0.5);
    assert_false(results_tell_next(&next, &period)); // it was told
    evaluate(&next, 0, 12, 8);
    evaluate(&next, 1, 12, 8);
    assert_true(results_tell_next(&next, &period));
    assert_int_equal(period, 1);
    assert_int_equal(next.periods[1].test_images, 20);
    results_finish(&next);
}

/* Some may have heard that a commit counts, and others, whose state is gone on from, not. */
static void evaluations_behind_the_step_that_is_gone_on_from_are_taken_back(void **state)
{
    (void)state;
    struct results results, next;
    assert_int_equal(results_init(&results, 1, 1), STATUS_OK);
    evaluate(&results, 0, 10, 5);
    evaluate(&results, 0, 12, 9);
    results_note_commit(&results);
    assert_int_equal(results_init(&next, 1, 1), STATUS_OK);
    results_keep_committed(&next, &results);
    results_cut(&next, 11);
    assert_int_equal(next.period_count, 1);
    assert_int_equal(next.ranks[0].evaluations, 1);
    results_finish(&results);
    results_finish(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_staleness_of_servers_is_what_they_say_and_not_what_their_bins_hold),
        cmocka_unit_test(the_steps_of_a_job_are_those_of_its_average_worker),
        cmocka_unit_test(images_that_entered_no_update_are_no_throughput),
        cmocka_unit_test(the_rate_of_a_job_that_has_gone_on_is_that_of_all_its_parts),
        cmocka_unit_test(what_servers_had_counted_until_then_counts_as_often_as_since),
        cmocka_unit_test(the_loss_is_that_of_the_ranks_that_compute),
        cmocka_unit_test(the_evaluations_of_a_program_belong_together_by_their_number),
        cmocka_unit_test(a_process_that_does_not_evaluate_is_not_waited_for),
        cmocka_unit_test(what_comes_after_the_last_evaluation_of_all_is_a_period_of_its_own),
        cmocka_unit_test(what_values_travel_over_is_said_by_every_worker_for_every_phase),
        cmocka_unit_test(a_job_that_nobody_has_ended_has_the_rate_of_what_was_reported),
        cmocka_unit_test(a_share_of_the_steps_of_all_takes_the_time_that_has_passed),
        cmocka_unit_test(evaluations_behind_the_last_commit_are_taken_back),
        cmocka_unit_test(evaluations_behind_the_step_that_is_gone_on_from_are_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
