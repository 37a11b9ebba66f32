/* Tests of what a loss of the coordinator has cost, of coordinators that were away, and of programs
 * of one's own that come back. */
#include "common/job/job_options.h"
#include "common/job/job_text.h"
#include "ps-server/coordinator/deadlines.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/ps-server/comeback.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void one_that_comes_by_another_connection_keeps_its_place(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    assert_true(comeback_take(&back, 0, 20, 100));
    const struct message again = comeback_say(&back, 0, 22);
    assert_true(returning_take(&back.returning, &back.generation, &back.story.coordinator, 30,
                               &again, 110));
    assert_int_equal(back.story.coordinator.membership.workers[0].peer, 30);
    assert_int_equal(back.story.coordinator.membership.workers[0].step, 22);
    assert_int_equal(back.generation.workers[0].peer, 30);
    comeback_end(&back);
}

/* It was said before this process stood still, and had come no further than its socket. */
static void what_members_say_is_asked_for_again_as_it_may_be_old(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 60000);
    back.back.alone_ms = 4000;
    back.back.alone_step = 11;
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        const struct message old = comeback_say(&back, rank, 20);
        assert_true(returning_take(&back.returning, &back.generation, &back.story.coordinator,
                                   10 + rank, &old, 60000));
    }
    assert_int_equal(back.story.coordinator.state, COORDINATOR_GATHERING);
    assert_int_equal(comeback_count_sent(&back, MESSAGE_HEARTBEAT), COMEBACK_WORKERS);
    uint32_t ask = comeback_first_sent(&back, MESSAGE_HEARTBEAT);
    assert_int_equal(back.story.transcript.sent[ask].reason, STATUS_AGAIN);
    back.back.alone_ms = 20000;
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_int_equal(comeback_count_sent(&back, MESSAGE_GO), 0);
        const struct message answer = comeback_say(&back, rank, 90 + rank);
        assert_true(returning_take(&back.returning, &back.generation, &back.story.coordinator,
                                   10 + rank, &answer, 60000));
    }
    assert_int_equal(back.story.coordinator.state, COORDINATOR_TRAINING);
    assert_float_equal(back.generation.recoveries[0].seconds, 20, 1e-9);
    assert_int_equal(back.generation.recoveries[0].lost_step, 92);
    assert_int_equal(back.generation.recoveries[0].steps_meanwhile, 92 - 11);
    comeback_end(&back);
}

static void what_one_said_before_it_was_taken_in_is_old(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    back.back.term = 4;
    const struct coordinator *coordinator = &back.story.coordinator;
    const struct message before = comeback_say(&back, 0, 20);
    assert_false(returning_is_old(coordinator, 10, &before));
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take(&back, rank, 20, 100));
    }
    assert_true(returning_is_old(coordinator, 10, &before));
    assert_false(returning_is_old(coordinator, 40, &before)); // by another connection
    back.back.term = coordinator->term;                       // it has missed this one
    assert_false(returning_is_old(coordinator, 10, &before));
    comeback_end(&back);
}

/* It knows its steps, but has not missed the coordinator for as long as others. */
static void who_was_asked_early_does_not_shorten_what_others_made_meanwhile(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 60000);
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        back.back.alone_ms = rank == 1 ? 10 : 20000;
        back.back.alone_step = rank == 1 ? 89 : 30;
        assert_true(comeback_take(&back, rank, 90, 60000));
    }
    assert_float_equal(back.generation.recoveries[0].seconds, 20, 1e-9);
    assert_int_equal(back.generation.recoveries[0].steps_meanwhile, 60);
    comeback_end(&back);
}

static void the_loss_lasts_from_the_last_sign_to_the_return_of_all(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 5000);
    back.back.alone_ms = 2000;
    back.back.alone_step = 11;
    assert_true(comeback_take(&back, 1, 20, 5000));
    back.back.alone_ms = 2500;
    back.back.alone_step = 12;
    assert_true(comeback_take(&back, 0, 21, 5010));
    back.back.alone_ms = UINT64_MAX / 2; // which nobody has waited
    back.back.alone_step = 30;           // nor made
    assert_true(comeback_take(&back, 2, 20, 5250));
    const struct recovery *last = &back.generation.recoveries[0];
    assert_int_equal(back.generation.lost_ms, 0);
    assert_true(last->trained_on);
    assert_int_equal(last->steps_meanwhile, 21 - 12);
    assert_float_equal(last->seconds, 5.25, 1e-9);
    comeback_end(&back);
}

static void where_all_join_anew_the_loss_lasts_from_the_last_sign_too(void **state)
{
    struct comeback back;
    struct generation next;
    (void)state;
    comeback_begin_in(&back, "ps-sync", 2, 5000);
    back.back.alone_ms = 60;
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take_anew(&back, ROLE_WORKER, rank, 10 + rank)); // at 100
    }
    assert_true(comeback_take_anew(&back, ROLE_SERVER, 1, 21));
    assert_true(comeback_join(&back, ROLE_SERVER, 0, 20, 100));
    assert_int_equal(back.story.coordinator.verdict, STATUS_AGAIN);
    assert_int_equal(generation_next(&back.story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.lost_ms, 40);
    assert_false(next.recoveries[0].trained_on);
    generation_finish(&next);
    comeback_end(&back);
}

static void a_coordinator_that_was_away_keeps_what_it_knows_of_losses(void **state)
{
    struct comeback back;
    struct generation again;
    (void)state;
    comeback_begin(&back, 100);
    back.generation.recoveries[0].lost_step = 17;
    const struct returning_past away = {
        .restarts = 2, .was_away = true, .before = &back.generation, .fetched_bytes = 77};
    struct message first = comeback_say(&back, 0, 20);
    first.generation = 1;
    assert_int_equal(returning_generation(&first, &back.story.job, &away, 9000, &again), STATUS_OK);
    assert_int_equal(again.number, 2);
    assert_int_equal(again.restarts_before, 0);
    assert_int_equal(again.recovery_count, 2);
    assert_int_equal(again.recoveries[0].lost_step, 17);
    assert_int_equal(again.recoveries[0].bytes, 77);
    assert_int_equal(again.recoveries[1].bytes, 0);
    assert_non_null(strstr(again.recoveries[1].reason, "the coordinator was away"));
    generation_finish(&again);
    comeback_end(&back);
}

static void where_all_join_anew_it_keeps_what_the_loss_before_has_moved(void **state)
{
    struct comeback back;
    struct generation next;
    (void)state;
    comeback_begin_in(&back, "ps-sync", 1, 100);
    struct generation before = back.generation;
    const struct returning_past away = {.was_away = true, .before = &before, .fetched_bytes = 77};
    struct message first = comeback_say(&back, 0, 20);
    first.start = NULL;
    assert_int_equal(returning_generation(&first, &back.story.job, &away, 100, &back.generation),
                     STATUS_OK);
    returning_begin(&back.returning, &first, &back.story.job, &back.generation,
                    &back.story.coordinator);
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take_anew(&back, ROLE_WORKER, rank, 10 + rank));
    }
    assert_true(comeback_join(&back, ROLE_SERVER, 0, 20, 100));
    assert_int_equal(back.story.coordinator.verdict, STATUS_AGAIN);
    assert_int_equal(generation_next(&back.story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.recovery_count, 2);
    assert_int_equal(next.recoveries[0].bytes, 77);
    generation_finish(&next);
    generation_finish(&before);
    comeback_end(&back);
}

static void each_coordinator_has_a_term_and_an_older_one_gives_way(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    back.back.term = 4;
    const struct message one = comeback_say(&back, 0, 20);
    assert_false(returning_is_replaced(&back.story.coordinator, &one)); // it gathers
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        back.back.term = rank == 1 ? 5 : 4;
        assert_true(comeback_take(&back, rank, 20, 100));
    }
    assert_int_equal(back.story.coordinator.term, 6);
    uint32_t go = comeback_first_sent(&back, MESSAGE_GO);
    assert_int_equal(back.story.transcript.sent[go].term, 6);
    back.back.term = 6;
    assert_false(returning_is_replaced(&back.story.coordinator, &one));
    back.back.term = 7;
    assert_true(returning_is_replaced(&back.story.coordinator, &one));
    comeback_end(&back);
    comeback_begin(&back, 100);
    back.back.term = UINT32_MAX; // which nobody has counted to
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take(&back, rank, 20, 100));
    }
    assert_int_equal(back.story.coordinator.term, UINT32_MAX);
    comeback_end(&back);
}

static void nobody_goes_on_in_a_phase_that_no_job_has(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin(&back, 100);
    back.start.phase = UINT32_MAX;
    const struct message first = comeback_say(&back, 0, 20);
    returning_begin(&back.returning, &first, &back.story.job, &back.generation,
                    &back.story.coordinator);
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take(&back, rank, 20, 100));
    }
    assert_int_equal(back.story.coordinator.phase_index, 0);
    assert_int_equal(back.story.coordinator.verdict, STATUS_AGAIN);
    comeback_end(&back);
}

/* Of a program of its own. */
static void begin_external(struct comeback *back, bool commits)
{
    comeback_begin_in(back, "ring", 0, 100);
    snprintf(back->story.job.model, sizeof(back->story.job.model), "external:mine");
    back->story.job.on_loss = commits ? ON_LOSS_COMMIT : ON_LOSS_FAIL;
    back->story.job.optimizer = OPTIMIZER_SGD;
}

static void a_program_that_cannot_begin_anew_ends_and_says_how_it_could(void **state)
{
    struct comeback back;
    (void)state;
    begin_external(&back, false);
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take_anew(&back, ROLE_WORKER, rank, 10 + rank));
    }
    assert_int_equal(back.story.coordinator.verdict, STATUS_UNREACHABLE);
    assert_non_null(strstr(back.story.coordinator.reason, "--on-loss commit"));
    comeback_end(&back);
}

static void the_optimizer_of_a_program_is_known_again(void **state)
{
    struct comeback back;
    (void)state;
    for (uint32_t differs = 0; differs < 2; differs++) {
        begin_external(&back, true);
        struct job told;
        const struct option_set defaults = job_option_set(&told);
        options_reset(&defaults);
        back.story.job = SAMPLE_JOB("mode=ring", "workers=3", "steps=1000", "batch=2",
                                    "model=external:mine", "data=external:mine", "on-loss=commit");
        back.story.job.optimizer = OPTIMIZER_AUTO;
        char text[JOB_OPTIMIZER_TEXT_BYTES];
        told.optimizer = OPTIMIZER_ADAM;
        told.lr = 0.125;
        job_encode_optimizer(&told, text);
        for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
            const struct message message = comeback_say(&back, rank, 20);
            back.member.optimizer = differs && rank == 2 ? "" : text;
            assert_true(comeback_hear(&back, 10 + rank, &message, 100));
        }
        const struct coordinator *coordinator = &back.story.coordinator;
        assert_int_equal(coordinator->job->optimizer, OPTIMIZER_ADAM);
        assert_true(coordinator->job->lr == 0.125);
        assert_string_equal(coordinator->optimizer, text);
        assert_int_equal(coordinator->verdict, differs ? STATUS_AGAIN : STATUS_OK);
        comeback_end(&back);
    }
}

static void a_commit_that_some_know_of_counts_for_all(void **state)
{
    struct comeback back;
    struct generation next;
    (void)state;
    for (uint32_t anew = 0; anew < 2; anew++) {
        begin_external(&back, true);
        back.sums[0] = 1.5;
        for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
            bool knows = rank == 1;
            back.back.sum_round = knows ? 3 : 2;
            back.back.has_commit = knows;
            back.back.commit_step = knows ? 12 : 0;
            struct message message = comeback_say(&back, rank, 20);
            message.start = anew ? NULL : message.start;
            assert_true(comeback_hear(&back, 10 + rank, &message, 100));
        }
        const struct coordinator *coordinator = &back.story.coordinator;
        for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
            assert_true(coordinator->membership.workers[rank].has_commit);
        }
        assert_int_equal(coordinator->commit_step, 12);
        if (anew) {
            story_call_back(&back.story, 100);
        }
        uint32_t then = comeback_first_sent(&back, anew ? MESSAGE_STOP : MESSAGE_GO);
        assert_true(comeback_first_sent(&back, MESSAGE_SUM) < then && then != UINT32_MAX);
        if (anew) {
            assert_int_equal(generation_next(coordinator, &next), STATUS_OK);
            assert_true(next.workers[0].has_commit && next.process_count == COMEBACK_WORKERS);
            generation_finish(&next);
        }
        comeback_end(&back);
    }
}

/* The job had four workers and has lost worker 1: workers 0, 2 and 3 have slots 0, 1 and 2. */
static void begin_with_three(struct comeback *back)
{
    comeback_begin(back, 100);
    struct job own = back->story.job;
    own.workers = own.processes = COMEBACK_WORKERS + 1;
    const struct message first = comeback_say(back, 0, 20);
    returning_begin(&back->returning, &first, &own, &back->generation, &back->story.coordinator);
}

static bool take_numbered(struct comeback *back, uint32_t slot, uint32_t number)
{
    const struct message message = comeback_say(back, slot, 20);
    back->member.rank = number;
    return comeback_hear(back, 10 + number, &message, 100);
}

/* It was told to join the next generation, before the coordinator was lost. */
static bool join_again(struct comeback *back, uint32_t number)
{
    comeback_say(back, number, 0);
    const struct message message = {
        .kind = MESSAGE_JOIN, .generation = 1, .text = RINGSIDE_VERSION, .member = &back->member};
    return returning_take_join(&back->returning, &back->generation, &back->story.coordinator,
                               10 + number, &message, 100);
}

static void one_that_was_there_has_a_place_though_it_comes_by_join(void **state)
{
    static const uint32_t numbers[] = {0, 2, 3};
    struct comeback back;
    struct generation next;
    (void)state;
    for (uint32_t order = 0; order < 2; order++) {
        begin_with_three(&back);
        assert_true(order > 0 || take_numbered(&back, 2, 3));
        assert_true(join_again(&back, 2)); // as a newcomer, its place would stay free
        assert_true(order == 0 || take_numbered(&back, 2, 3) || join_again(&back, 3));
        assert_true(take_numbered(&back, 0, 0) || join_again(&back, 0));
        assert_int_equal(back.story.coordinator.state, COORDINATOR_RENEWING);
        assert_int_equal(generation_next(&back.story.coordinator, &next), STATUS_OK);
        assert_int_equal(next.process_count, 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(next.workers[i].number, numbers[i]);
        }
        assert_int_equal(next.workers_lost, 0);
        generation_finish(&next);
        comeback_end(&back);
    }
}

static void a_commit_that_some_know_of_counts_for_all_that_are_left(void **state)
{
    struct comeback back;
    struct generation next;
    (void)state;
    for (uint32_t known = 0; known < 2; known++) {
        begin_external(&back, true);
        struct coordinator *coordinator = &back.story.coordinator;
        for (uint32_t rank = 0; rank < 2; rank++) {
            bool knows = known > 0 && rank == 1;
            back.back.sum_round = knows ? 3 : 2;
            back.back.has_commit = knows;
            back.back.commit_step = knows ? 12 : 0;
            assert_true(comeback_take(&back, rank, 20, 100));
        }
        const struct sender lost = membership_member(&coordinator->membership, ROLE_WORKER, 2);
        generation_lose(coordinator, STATUS_UNREACHABLE, "worker 2 did not come back", &lost, 100);
        assert_int_equal(coordinator->verdict, STATUS_AGAIN);
        returning_settle(&back.returning, coordinator);
        story_call_back(&back.story, 100);
        uint32_t told = comeback_first_sent(&back, MESSAGE_SUM);
        assert_true(told < comeback_first_sent(&back, MESSAGE_STOP));
        assert_int_equal(coordinator->commit_step, known ? 12 : 0);
        assert_int_equal(generation_next(coordinator, &next), STATUS_OK);
        assert_int_equal(next.process_count, 2);
        assert_true(next.workers[0].has_commit == known && next.workers[1].has_commit == known);
        generation_finish(&next);
        comeback_end(&back);
    }
}

/* Two are back, the third one is about to come, and nothing is heard of any. */
static void one_that_is_cut_off_while_members_come_back_gives_up_nobody(void **state)
{
    struct comeback back;
    struct coordinator *coordinator = &back.story.coordinator;
    (void)state;
    comeback_begin(&back, 1000);
    back.story.job.outlast = 60;
    coordinator->created_ms = 1000;
    generation_begin(&back.generation, coordinator);
    assert_true(comeback_take(&back, 0, 20, 1000));
    assert_true(comeback_take(&back, 1, 20, 1100));
    coordinator_tick(coordinator, 40000, 0);
    assert_true(deadlines_hears_nobody(coordinator, 40000));
    assert_int_equal(coordinator->state, COORDINATOR_GATHERING);
    assert_true(comeback_take(&back, 1, 20, 40100)); // it is reached again
    coordinator_tick(coordinator, 40100, 0);
    assert_int_equal(coordinator->state, COORDINATOR_GATHERING);
    assert_true(comeback_take(&back, 0, 20, 40200));
    assert_true(comeback_take(&back, 2, 20, 40300));
    assert_int_equal(coordinator->state, COORDINATOR_TRAINING);
    assert_int_equal(coordinator->workers_lost, 0);
    comeback_end(&back);
}

static void who_has_lost_its_connection_alone_has_missed_nobody(void **state)
{
    struct comeback back;
    (void)state;
    comeback_begin_in(&back, "ps-sync", 1, 100);
    struct coordinator *coordinator = &back.story.coordinator;
    for (uint32_t rank = 0; rank < COMEBACK_WORKERS; rank++) {
        assert_true(comeback_take_anew(&back, ROLE_WORKER, rank, 10 + rank));
    }
    const struct message said = comeback_say(&back, 1, 20);
    back.back.alone_ms = 150;
    assert_false(returning_is_reconnected(coordinator, &said)); // members come back to it
    coordinator->state = COORDINATOR_TRAINING;
    coordinator->generation = NULL; // its first one
    assert_true(returning_is_reconnected(coordinator, &said));
    back.back.alone_ms = (uint64_t)(1000 * back.story.job.lost_after);
    assert_false(returning_is_reconnected(coordinator, &said)); // it was not heard for so long
    back.back.alone_ms = 150;
    back.back.term = 1; // another one has taken it in
    assert_false(returning_is_reconnected(coordinator, &said));
    back.back.term = 0;
    back.member.process_id++; // another process
    assert_false(returning_is_reconnected(coordinator, &said));
    back.member.process_id--;
    returning_renew(coordinator, 30, &said, 1000);
    assert_int_equal(coordinator->state, COORDINATOR_RENEWING);
    assert_int_equal(coordinator->membership.workers[1].peer, 30); // hears that it joins anew
    assert_int_equal(coordinator->ended_ms, 850);
    assert_int_equal(coordinator->workers_lost, 0);
    comeback_end(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_comes_by_another_connection_keeps_its_place),
        cmocka_unit_test(what_members_say_is_asked_for_again_as_it_may_be_old),
        cmocka_unit_test(what_one_said_before_it_was_taken_in_is_old),
        cmocka_unit_test(who_was_asked_early_does_not_shorten_what_others_made_meanwhile),
        cmocka_unit_test(the_loss_lasts_from_the_last_sign_to_the_return_of_all),
        cmocka_unit_test(where_all_join_anew_the_loss_lasts_from_the_last_sign_too),
        cmocka_unit_test(a_coordinator_that_was_away_keeps_what_it_knows_of_losses),
        cmocka_unit_test(where_all_join_anew_it_keeps_what_the_loss_before_has_moved),
        cmocka_unit_test(one_that_is_cut_off_while_members_come_back_gives_up_nobody),
        cmocka_unit_test(each_coordinator_has_a_term_and_an_older_one_gives_way),
        cmocka_unit_test(nobody_goes_on_in_a_phase_that_no_job_has),
        cmocka_unit_test(a_program_that_cannot_begin_anew_ends_and_says_how_it_could),
        cmocka_unit_test(the_optimizer_of_a_program_is_known_again),
        cmocka_unit_test(a_commit_that_some_know_of_counts_for_all),
        cmocka_unit_test(a_commit_that_some_know_of_counts_for_all_that_are_left),
        cmocka_unit_test(who_has_lost_its_connection_alone_has_missed_nobody),
        cmocka_unit_test(one_that_was_there_has_a_place_though_it_comes_by_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
