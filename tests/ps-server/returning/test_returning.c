/* Tests of members that come back to another coordinator than the one that they had. */
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/job/job_text.h"
#include "tests/support/common/choices.h"
#include "tests/support/ps-server/comeback.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void training_goes_on_once_all_are_back(void **state)
{
    struct comeback back;
    const struct coordinator *coordinator = &back.story.coordinator;
    (void)state;
    comeback_begin(&back, 100);
    assert_true(comeback_take(&back, 1, 20, 100));
    assert_true(comeback_take(&back, 0, 21, 110));
    assert_int_equal(coordinator->state, COORDINATOR_GATHERING);
    assert_int_equal(comeback_count_sent(&back, MESSAGE_GO), 0);
    assert_true(comeback_take(&back, 2, 20, 120));
    assert_int_equal(coordinator->state, COORDINATOR_TRAINING);
    assert_int_equal(comeback_count_sent(&back, MESSAGE_GO), COMEBACK_WORKERS);
    assert_int_equal(comeback_count_sent(&back, MESSAGE_START), 0);
    assert_int_equal(comeback_count_sent(&back, MESSAGE_WELCOME), 0);
    assert_int_equal(back.story.transcript.started_count, 1);
    assert_int_equal(back.generation.recoveries[0].lost_step, 21);
    assert_int_equal(back.generation.recoveries[0].begin_step, 21);
    assert_true(generation_seconds(coordinator, 120) >= 5.5);
    assert_int_equal(generation_restarts(coordinator), 1);
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        story_done(&back.story, 10 + rank, "last", 130);
    }
    assert_int_equal(coordinator->verdict, STATUS_OK);
    assert_string_equal(coordinator->params_digest, "last");
    comeback_end(&back);
}

static void one_that_knocks_twice_counts_once(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    assert_true(comeback_take(&back, 0, 20, 100));
    assert_true(comeback_take(&back, 0, 20, 101));
    assert_int_equal(back.story.coordinator.state, COORDINATOR_GATHERING);
    comeback_end(&back);
}

static void all_join_anew_if_one_is_elsewhere(void **state)
{
    for (uint32_t difference = 0; difference < 2; difference++) {
        struct comeback back;
        (void)state;
        comeback_begin(&back, 100);
        assert_true(comeback_take(&back, 0, 20, 100));
        if (difference == 0) {
            back.start.phase = 1;
        } else {
            back.back.begin_step = 5;
        }
        assert_true(comeback_take(&back, 1, 20, 100));
        back.start.phase = 0;
        back.back.begin_step = 0;
        assert_int_equal(back.story.coordinator.state, COORDINATOR_GATHERING);
        assert_true(comeback_take(&back, 2, 20, 100));
        story_call_back(&back.story, 100);
        assert_int_equal(comeback_count_sent(&back, MESSAGE_STOP), COMEBACK_WORKERS);
        assert_int_equal(back.story.transcript.started_count, 0);
        comeback_end(&back);
    }
}

/* Its place would be waited for. */
static void who_has_stopped_asking_has_no_place_among_those_who_join_anew(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    back.story.coordinator.newcomers = (struct newcomers){
        .list = {{.peer = 40, .number = 7, .heard_ms = 100}, {41, 8, 3900}}, .count = 2};
    back.start.phase = 1;
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take(&back, rank, 20, 4000));
        back.start.phase = 0;
    }
    assert_int_equal(back.story.coordinator.state, COORDINATOR_RENEWING);
    assert_int_equal(back.story.coordinator.newcomers.count, 1);
    assert_int_equal(back.story.coordinator.newcomers.list[0].number, 8);
    comeback_end(&back);
}

static void members_of_servers_join_the_next_generation(void **state)
{
    struct comeback back;
    struct generation next;
    (void)state;
    comeback_begin_in(&back, "ps-sync", 2, 100);
    const struct coordinator *coordinator = &back.story.coordinator;
    assert_true(comeback_take_anew(&back, ROLE_WORKER, 1, 11));
    assert_true(comeback_take_anew(&back, ROLE_SERVER, 1, 21));
    assert_true(comeback_join(&back, ROLE_SERVER, 0, 20, 100)); // the coordinator's own
    assert_int_equal(story_last_kind(&back.story), MESSAGE_REFUSE);
    assert_true(comeback_take_anew(&back, ROLE_WORKER, 0, 10));
    assert_int_equal(coordinator->state, COORDINATOR_GATHERING);
    assert_true(comeback_take_anew(&back, ROLE_WORKER, 2, 12));
    story_call_back(&back.story, 100);
    assert_int_equal(comeback_count_sent(&back, MESSAGE_STOP), COMEBACK_WORKERS + 2);
    assert_int_equal(generation_next(coordinator, &next), STATUS_OK);
    assert_int_equal(next.number, 1);
    assert_int_equal(next.process_count, COMEBACK_WORKERS);
    assert_int_equal(next.server_count, 2);
    assert_int_equal(next.recovery_count, 1);
    assert_int_equal(next.recoveries[0].lost_step, 20);
    assert_int_equal(next.workers_lost, 0);
    assert_int_equal(next.number + next.restarts_before, 1); // the coordinator was lost, no more
    generation_finish(&next);
    comeback_end(&back);
}

static void all_train_on_if_no_shard_was_lost(void **state)
{
    struct comeback back;
    (void)state;
    for (uint32_t runs = 0; runs < 2; runs++) { // whether the server trains
        comeback_begin_in(&back, "ps-sync", 1, 100);
        const struct coordinator *coordinator = &back.story.coordinator;
        back.story.job.coordinator_role = COORDINATOR_APART;
        struct message server = comeback_say(&back, 0, 20);
        back.member.role = ROLE_SERVER;
        back.member.rank = 1;
        server.layout = NULL;
        server.start = runs ? server.start : NULL;
        struct generation first = back.generation;
        assert_int_equal(
            returning_generation(&server, &back.story.job, &comeback_past, 100, &back.generation),
            STATUS_OK);
        generation_finish(&first);
        assert_int_equal(back.generation.servers[0].number, 1);
        returning_begin(&back.returning, &server, &back.story.job, &back.generation,
                        &back.story.coordinator);
        assert_true(comeback_hear(&back, 21, &server, 100));
        for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
            assert_int_equal(coordinator->state, COORDINATOR_GATHERING);
            assert_true(comeback_take(&back, rank, 20, 100));
        }
        assert_int_equal(comeback_count_sent(&back, MESSAGE_GO), runs ? COMEBACK_WORKERS + 1 : 0);
        assert_int_equal(coordinator->verdict, runs ? STATUS_OK : STATUS_AGAIN);
        comeback_end(&back);
    }
}

static void one_that_was_started_again_counts_as_back(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin_in(&back, "ps-sync", 2, 100);
    assert_true(comeback_join(&back, ROLE_SERVER, 1, 21, 100));
    assert_true(comeback_join(&back, ROLE_WORKER, 2, 12, 100));
    const struct message late = comeback_say(&back, 2, 20); // its place is taken
    back.member.process_id = 999;
    assert_false(
        returning_take(&back.returning, &back.generation, &back.story.coordinator, 32, &late, 100));
    assert_false(comeback_join(&back, ROLE_WORKER, COMEBACK_WORKERS, 33, 100));
    assert_false(comeback_join(&back, ROLE_SERVER, 2, 34, 100));
    assert_true(comeback_take_anew(&back, ROLE_WORKER, 0, 10));
    assert_true(comeback_take_anew(&back, ROLE_WORKER, 1, 11));
    assert_true(comeback_join(&back, ROLE_SERVER, 0, 20, 100));
    assert_int_equal(back.story.coordinator.verdict, STATUS_AGAIN);
    comeback_end(&back);
}

static void of_a_job_that_has_lost_workers_numbers_say_nothing(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin_in(&back, "ps-sync", 2, 100);
    struct job own = back.story.job;
    own.workers = own.processes = COMEBACK_WORKERS + 1;
    const struct message first = comeback_say(&back, 0, 20);
    returning_begin(&back.returning, &first, &own, &back.generation, &back.story.coordinator);
    assert_false(comeback_join(&back, ROLE_WORKER, 2, 12, 100));
    assert_true(comeback_join(&back, ROLE_SERVER, 1, 21, 100));
    comeback_end(&back);
}

static void who_asks_again_is_not_lost(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin_in(&back, "ps-sync", 1, 1000);
    back.story.coordinator.created_ms = 1000;
    generation_begin(&back.generation, &back.story.coordinator);
    assert_true(comeback_take_anew(&back, ROLE_WORKER, 0, 10));
    assert_true(comeback_take_anew(&back, ROLE_WORKER, 2, 12));
    const struct message alive = {.kind = MESSAGE_HEARTBEAT, .text = ""};
    for (uint64_t now_ms = 1000; now_ms <= 60000; now_ms += 500) {
        coordinator_receive(&back.story.coordinator, 10, &alive, now_ms);
        coordinator_receive(&back.story.coordinator, 12, &alive, now_ms);
        (void)comeback_join(&back, ROLE_SERVER, 0, 20, now_ms);
        coordinator_tick(&back.story.coordinator, now_ms, 0);
    }
    assert_int_equal(back.story.coordinator.verdict, STATUS_AGAIN);
    assert_non_null(strstr(back.story.coordinator.reason, "worker 1 did not come back"));
    comeback_end(&back);
}

static void who_has_no_place_is_not_taken(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    assert_true(comeback_take(&back, 0, 20, 100));
    assert_false(comeback_take(&back, COMEBACK_WORKERS, 20, 100));
    const struct message other = comeback_say(&back, 0, 20);
    back.member.process_id = 999; // whoever that is
    assert_false(returning_take(&back.returning, &back.generation, &back.story.coordinator, 30,
                                &other, 100));
    assert_true(comeback_take(&back, 1, 20, 100));
    comeback_end(&back);
}

static void a_sum_that_some_have_is_sent_to_all(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    back.back.sum_round = 4;
    assert_true(comeback_take(&back, 0, 20, 100));
    back.back.sum_round = 5;
    back.sums[0] = 2.5;
    assert_true(comeback_take(&back, 1, 20, 100));
    back.back.sum_round = 4;
    back.sums[0] = 0;
    assert_true(comeback_take(&back, 2, 20, 100));
    assert_int_equal(comeback_count_sent(&back, MESSAGE_SUM), COMEBACK_WORKERS);
    assert_int_equal(back.story.coordinator.sums.round, 5);
    assert_true(back.returning.sum[0] == 2.5);
    comeback_end(&back);
}

static void one_that_does_not_come_back_is_lost(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 1000);
    back.story.coordinator.created_ms = 1000;
    generation_begin(&back.generation, &back.story.coordinator);
    assert_true(comeback_take(&back, 0, 20, 1000));
    assert_true(comeback_take(&back, 2, 20, 1000));
    coordinator_tick(&back.story.coordinator, 3000, 0);
    assert_int_equal(back.story.coordinator.state, COORDINATOR_GATHERING);
    const struct message alive = {.kind = MESSAGE_HEARTBEAT, .text = ""};
    for (uint64_t now_ms = 3000; now_ms <= 60000; now_ms += 1000) {
        coordinator_receive(&back.story.coordinator, 10, &alive, now_ms);
        coordinator_receive(&back.story.coordinator, 12, &alive, now_ms);
        coordinator_tick(&back.story.coordinator, now_ms, 0);
    }
    assert_int_equal(back.story.coordinator.verdict, STATUS_AGAIN);
    assert_non_null(strstr(back.story.coordinator.reason, "worker 1 did not come back"));
    assert_int_equal(back.story.coordinator.workers_lost, 1);
    comeback_end(&back);
}

/* The coordinator's loss and what came behind it are one, and nobody has trained meanwhile. */
static void who_is_lost_with_the_coordinator_is_no_loss_of_its_own(void **state)
{
    struct comeback back;
    struct generation next;
    (void)state;
    comeback_begin_in(&back, "ps-sync", 2, 5000);
    back.back.alone_ms = 60;
    assert_true(comeback_take_anew(&back, ROLE_WORKER, 0, 10)); // at 100
    const struct sender lost =
        membership_called(&back.story.coordinator.membership, ROLE_SERVER, 1);
    generation_lose(&back.story.coordinator, STATUS_UNREACHABLE, "server 1 was killed", &lost, 200);
    assert_int_equal(back.story.coordinator.verdict, STATUS_AGAIN);
    assert_int_equal(generation_next(&back.story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.number + next.restarts_before, 1);
    assert_int_equal(next.recovery_count, 1);
    assert_string_equal(next.recoveries[0].reason,
                        "the coordinator was lost, and server 1 was killed");
    assert_int_equal(next.lost_ms, 40);
    generation_finish(&next);
    comeback_end(&back);
}

/* It has nothing that a coordinator which has begun nothing either would have to know. */
static void one_whose_job_has_not_begun_gives_its_place_up_and_joins_anew(void **state)
{
    struct comeback back;
    (void)state;
    memset(&back, 0, sizeof(back));
    story_open(&back.story, "ring", COMEBACK_WORKERS, 0);
    story_join(&back.story, 10, ROLE_WORKER, 0); // as process 100
    struct message said = comeback_say(&back, 0, 0);
    assert_false(returning_has_begun(&said));
    struct slot *slot = &back.story.coordinator.membership.workers[0];
    back.member.process_id = 999;
    returning_release(&back.story.coordinator, &said);
    assert_int_equal(slot->state, SLOT_JOINED); // that of another process
    back.member.process_id = 100;
    returning_release(&back.story.coordinator, &said);
    assert_int_equal(slot->state, SLOT_FREE);
    assert_int_equal(back.story.coordinator.workers_lost, 0);
    back.back.trained_ms = 1;
    assert_true(returning_has_begun(&said));
    back.back.trained_ms = 0;
    said.generation = 1; // it had begun before
    assert_true(returning_has_begun(&said));
    comeback_end(&back);
}

static void who_joins_anew_meanwhile_is_a_newcomer(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    assert_true(comeback_take(&back, 0, 20, 100));
    story_join(&back.story, 40, ROLE_WORKER, 1);
    assert_int_equal(story_last_kind(&back.story), MESSAGE_REFUSE);
    assert_int_equal(back.story.coordinator.membership.workers[1].state, SLOT_FREE);
    comeback_end(&back);
}

static void a_repeated_report_counts_and_is_not_shown_again(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take(&back, rank, 20, 100));
    }
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        const struct wire_report report = {
            .closes_period = true, .is_repeated = true, .images = 20, .steps = 10};
        const struct message message = {
            .kind = MESSAGE_REPORT, .rank = rank, .step = 10, .report = &report, .text = ""};
        coordinator_receive(&back.story.coordinator, 10 + rank, &message, 110);
    }
    assert_true(results_period_is_complete(&back.story.coordinator.results, 0));
    assert_int_equal(back.story.transcript.period_count, 0);
    comeback_end(&back);
}

static void members_of_another_job_are_not_taken(void **state)
{
    static char text[JOB_TEXT_BYTES];
    char why[COORDINATOR_REASON_BYTES], error[OPTION_ERROR_BYTES];
    struct comeback back;
    struct job job, got;
    const struct option_set defaults = job_option_set(&job);
    (void)state;
    memset(&back, 0, sizeof(back));
    options_reset(&defaults);
    job.mode = mode_of("ring");
    job.workers = COMEBACK_WORKERS;
    job.global_batch = 3;
    snprintf(job.model, sizeof(job.model), "lenet5");
    snprintf(job.data, sizeof(job.data), "shapes");
    assert_int_equal(job_resolve(&job, error, sizeof(error)), STATUS_OK);
    assert_int_equal(job_encode(&job, text, sizeof(text)), STATUS_OK);
    struct message message = comeback_say(&back, 0, 20);
    message.text = text;
    assert_int_equal(returning_read_job(&message, &job, &got, why, sizeof(why)), STATUS_OK);
    job.seed++;
    assert_int_not_equal(returning_read_job(&message, &job, &got, why, sizeof(why)), STATUS_OK);
    assert_non_null(strstr(why, "--seed"));
    message.text = "no job";
    assert_int_not_equal(returning_read_job(&message, &job, &got, why, sizeof(why)), STATUS_OK);
}

static void a_snapshot_that_went_to_the_one_before_holds_nobody_up(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    back.back.snapshot_step = 30;
    assert_true(comeback_take(&back, 0, 31, 100));
    back.back.snapshot_step = 20;
    assert_true(comeback_take(&back, 1, 31, 100));
    assert_int_equal(back.story.coordinator.checkpointing.shares[0].last, 30);
    assert_int_equal(back.story.coordinator.checkpointing.shares[1].last, 20);
    comeback_end(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_goes_on_once_all_are_back),
        cmocka_unit_test(one_that_knocks_twice_counts_once),
        cmocka_unit_test(all_join_anew_if_one_is_elsewhere),
        cmocka_unit_test(who_has_stopped_asking_has_no_place_among_those_who_join_anew),
        cmocka_unit_test(members_of_servers_join_the_next_generation),
        cmocka_unit_test(all_train_on_if_no_shard_was_lost),
        cmocka_unit_test(one_that_was_started_again_counts_as_back),
        cmocka_unit_test(of_a_job_that_has_lost_workers_numbers_say_nothing),
        cmocka_unit_test(who_asks_again_is_not_lost),
        cmocka_unit_test(who_has_no_place_is_not_taken),
        cmocka_unit_test(a_sum_that_some_have_is_sent_to_all),
        cmocka_unit_test(one_that_does_not_come_back_is_lost),
        cmocka_unit_test(who_is_lost_with_the_coordinator_is_no_loss_of_its_own),
        cmocka_unit_test(one_whose_job_has_not_begun_gives_its_place_up_and_joins_anew),
        cmocka_unit_test(who_joins_anew_meanwhile_is_a_newcomer),
        cmocka_unit_test(a_repeated_report_counts_and_is_not_shown_again),
        cmocka_unit_test(members_of_another_job_are_not_taken),
        cmocka_unit_test(a_snapshot_that_went_to_the_one_before_holds_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
