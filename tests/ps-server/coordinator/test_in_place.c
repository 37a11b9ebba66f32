/* Tests of how the coordinator finds out whether the next generation may begin in place. */
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/record/period_line.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define WORKERS 3
#define SERVERS 2
#define LOST_MS 1000

/* The peers: workers are 1 to 3, servers 4 and 5. 40 steps, evaluations every 10. */
static void open_job(struct story *story, const char *mode)
{
    story_open(story, mode, WORKERS, SERVERS);
    struct job *job = &story->job;
    job->steps = 40;
    job->global_batch = 4 * WORKERS;
    job->sync_every = 1;
    job->eval_every = 10;
    job->processes = WORKERS;
    job->min_workers = 1;
    job->server_threads = 1;
    job->on_loss = ON_LOSS_REDEAL;
    snprintf(job->order, sizeof(job->order), "free");
    snprintf(job->switches, sizeof(job->switches), "none");
}

static void ignore_checkpoints(void *context, enum checkpoint_task task, uint64_t peer,
                               const struct message *message)
{
    (void)context;
    (void)task;
    (void)peer;
    (void)message;
}

static void train(struct story *story)
{
    story->coordinator.port.checkpoint = ignore_checkpoints;
    for (uint32_t i = 0; i < WORKERS + SERVERS; i++) {
        bool is_worker = i < WORKERS;
        story_join(story, 1 + i, is_worker ? ROLE_WORKER : ROLE_SERVER,
                   is_worker ? i : i - WORKERS);
    }
    for (uint32_t i = 0; i < WORKERS + SERVERS; i++) {
        story_ready(story, 1 + i, i < WORKERS ? ROLE_WORKER : ROLE_SERVER, "first", &story_layout);
    }
    for (uint32_t i = 0; i < WORKERS + SERVERS; i++) {
        story_connected(story, 1 + i);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
}

static void lose(struct story *story, enum member_role role, uint32_t index)
{
    const struct sender lost = membership_member(&story->coordinator.membership, role, index);
    generation_lose(&story->coordinator, STATUS_UNREACHABLE, "it was killed", &lost, LOST_MS);
    assert_int_equal(story->coordinator.state, COORDINATOR_RENEWING);
}

/* A race that trains, and has lost worker 1. */
static void open_loss(struct story *story)
{
    open_job(story, "ps-async");
    train(story);
    lose(story, ROLE_WORKER, 1);
}

static void answer(struct story *story, uint32_t server, uint64_t gradients)
{
    const uint64_t counts[] = {5, gradients};
    const struct wire_report counted = {
        .late = 1, .staleness = counts, .staleness_bins = 2, .staleness_sum = (double)gradients};
    story_give(story, WORKERS + 1 + server,
               (struct message){.kind = MESSAGE_SNAPSHOT,
                                .step = gradients,
                                .reason = STATUS_AGAIN,
                                .report = &counted},
               LOST_MS + 1);
}

/* As the loop of server.c does. */
static bool awaits(struct story *story, uint64_t now_ms)
{
    in_place_ask(&story->coordinator, now_ms);
    return in_place_awaits(&story->coordinator, now_ms);
}

/* How many servers were asked since so many messages. */
static uint32_t count_asked(const struct story *story, uint32_t since)
{
    uint32_t count = 0;
    for (uint32_t i = since; i < story->transcript.sent_count; i++) {
        count += story->transcript.sent[i].kind == MESSAGE_SNAPSHOT &&
                 story->transcript.sent[i].reason == STATUS_AGAIN &&
                 story->transcript.sent[i].peer > WORKERS;
    }
    return count;
}

static void a_race_begins_at_the_step_that_all_servers_have_the_gradients_of(void **state)
{
    (void)state;
    struct story story;
    struct generation next;
    open_loss(&story);
    uint32_t before = story.transcript.sent_count;
    assert_true(awaits(&story, LOST_MS));
    assert_int_equal(count_asked(&story, before), SERVERS);
    answer(&story, 0, 29);
    assert_true(awaits(&story, LOST_MS + 2)); // and asks nobody twice
    assert_int_equal(count_asked(&story, before), SERVERS);
    assert_int_equal(in_place_step(&story.coordinator), 0);
    answer(&story, 1, 26);
    assert_false(awaits(&story, LOST_MS + 2));
    assert_int_equal(in_place_step(&story.coordinator), 26 / WORKERS);
    story_call_back(&story, LOST_MS + 2);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.in_place_step, 8);
    assert_int_equal(next.recoveries[0].lost_step, 8); // a worker may have made more
    assert_true(next.recoveries[0].is_in_place);
    generation_finish(&next);
    coordinator_finish(&story.coordinator);
}

/* What members are told, and that a generation which ends before it trains leaves it at that. */
static void members_hear_that_servers_go_on_from_what_they_have(void **state)
{
    (void)state;
    struct story story;
    struct generation next, later;
    open_loss(&story);
    const struct coordinator_port port = story.coordinator.port;
    (void)awaits(&story, LOST_MS);
    answer(&story, 0, 24);
    answer(&story, 1, 24);
    story_call_back(&story, LOST_MS + 2);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    generation_change_job(&story.coordinator, &next, &story.job);
    coordinator_finish(&story.coordinator);
    assert_int_equal(coordinator_init(&story.coordinator, &story.job, "the job", &port, 1100),
                     STATUS_OK);
    generation_begin(&next, &story.coordinator);
    story_join(&story, 14, ROLE_SERVER, 0);
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].reason, STATUS_AGAIN);

    lose(&story, ROLE_WORKER, 0);
    assert_false(awaits(&story, 1200)); // they were asked once
    assert_int_equal(generation_next(&story.coordinator, &later), STATUS_OK);
    assert_int_equal(later.in_place_step, 8);
    generation_finish(&later);
    lose(&story, ROLE_SERVER, 1);
    assert_int_equal(generation_next(&story.coordinator, &later), STATUS_OK);
    assert_int_equal(later.in_place_step, 0);
    generation_finish(&later);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

static void a_server_that_is_lost_or_has_kept_nothing_sends_all_to_a_copy(void **state)
{
    (void)state;
    struct story story;
    open_loss(&story);
    assert_true(awaits(&story, LOST_MS));
    answer(&story, 0, 0);
    assert_false(awaits(&story, LOST_MS));
    answer(&story, 1, 29);
    assert_int_equal(in_place_step(&story.coordinator), 0);
    coordinator_finish(&story.coordinator);

    open_loss(&story);
    assert_true(awaits(&story, LOST_MS));
    answer(&story, 0, 29);
    deadlines_note_closed(&story.coordinator, WORKERS + SERVERS, LOST_MS + 1);
    assert_false(awaits(&story, LOST_MS + 1));
    assert_int_equal(in_place_step(&story.coordinator), 0);
    coordinator_finish(&story.coordinator);
}

static void a_server_that_does_not_answer_is_not_waited_for_long(void **state)
{
    (void)state;
    struct story story;
    open_loss(&story);
    assert_true(awaits(&story, LOST_MS));
    answer(&story, 0, 29);
    answer(&story, 0, 30); // twice, which no server of ours does
    assert_true(awaits(&story, LOST_MS + 499));
    assert_false(awaits(&story, LOST_MS + 500));
    assert_int_equal(in_place_step(&story.coordinator), 0);
    coordinator_finish(&story.coordinator);
}

/* Whether servers of a job are asked that has lost worker 1. */
static bool are_asked(struct story *story)
{
    train(story);
    lose(story, ROLE_WORKER, 1);
    bool are = awaits(story, LOST_MS);
    coordinator_finish(&story->coordinator);
    return are;
}

static void jobs_whose_bits_follow_from_copies_go_on_from_one(void **state)
{
    (void)state;
    struct story story;
    open_job(&story, "ps-ssp:2");
    assert_true(are_asked(&story));
    open_job(&story, "ps-sync");
    assert_false(are_asked(&story));
    open_job(&story, "ps-async");
    snprintf(story.job.order, sizeof(story.job.order), "seeded:round-robin");
    assert_false(are_asked(&story));
    open_job(&story, "ps-async");
    story.job.compress.kind = CODEC_TOPK; // what was not sent is nowhere but at the workers
    assert_false(are_asked(&story));
}

/* Ten steps of four images, and an evaluation of `test_images`, half of them right. */
static void report_period(struct story *story, uint32_t rank, uint64_t period, uint64_t test_images)
{
    const struct wire_report report = {.closes_period = true,
                                       .period = period,
                                       .steps = 10,
                                       .images = 40,
                                       .loss_sum = 20,
                                       .total_ns = 100,
                                       .test_images = test_images,
                                       .test_correct = test_images / 2,
                                       .test_loss_sum = (double)test_images};
    story_give(story, 1 + rank,
               (struct message){.kind = MESSAGE_REPORT, .rank = rank, .report = &report}, 500);
}

/* A race loses worker 2 when some workers have reported the first period, which ends at step 10.
 * Servers have at least so many gradients, three for each step. */
static void open_evaluation(struct story *story, uint32_t reports, uint64_t gradients,
                            double target_accuracy)
{
    open_job(story, "ps-async");
    story->job.target_accuracy = target_accuracy;
    train(story);
    for (uint32_t rank = 0; rank < reports; rank++) {
        report_period(story, rank, 0, 8);
    }
    lose(story, ROLE_WORKER, 2);
    (void)awaits(story, LOST_MS);
    answer(story, 0, gradients);
    answer(story, 1, gradients + 2);
}

/* Two of three workers have evaluated their parts. */
static void an_evaluation_lacks_the_part_of_a_worker_that_has_not_reported_it(void **state)
{
    (void)state;
    struct story story;
    char line[PERIOD_LINE_BYTES];
    open_evaluation(&story, WORKERS - 1, 37, 0);
    story.coordinator.test_samples = 24;
    assert_int_equal(in_place_step(&story.coordinator), 12);
    in_place_describe(&story.coordinator, 12);
    const struct results *results = &story.coordinator.results;
    assert_true(results_period_is_complete(results, 0));
    assert_int_equal(results->periods[0].test_images, 2 * 8);
    period_line_format(&story.coordinator, 0, line);
    assert_non_null(strstr(line, "test accuracy 50.00 % (16 of 24 images)"));
    assert_true(results_accuracy(results, 0) == 0.5);
    assert_int_equal(results->periods[0].images, 10 * 4 * WORKERS);
    assert_int_equal(story.transcript.period_count, 1);
    coordinator_finish(&story.coordinator);
}

static void an_evaluation_that_nobody_has_reported_is_made_again(void **state)
{
    (void)state;
    struct story story;
    open_evaluation(&story, 0, 37, 0);
    assert_int_equal(in_place_step(&story.coordinator), 9);
    in_place_describe(&story.coordinator, 9);
    assert_int_equal(story.coordinator.results.period_count, 0);
    assert_int_equal(story.transcript.period_count, 0);
    coordinator_finish(&story.coordinator);
}

static void an_evaluation_at_the_step_where_all_are_is_made_again(void **state)
{
    (void)state;
    struct story story;
    open_evaluation(&story, WORKERS - 1, 31, 0);
    assert_int_equal(in_place_step(&story.coordinator), 9);
    coordinator_finish(&story.coordinator);
}

static void an_evaluation_that_decides_is_made_by_all_workers(void **state)
{
    (void)state;
    struct story story;
    for (uint32_t reports = WORKERS - 1; reports <= WORKERS; reports++) {
        open_evaluation(&story, reports, 37, 0.9);
        assert_int_equal(in_place_step(&story.coordinator), reports == WORKERS ? 12 : 9);
        coordinator_finish(&story.coordinator);
    }
}

/* Two of three workers have reported it: the third one's images count as the others' do. */
static void
a_period_without_an_evaluation_is_closed_for_those_who_have_not_reported_it(void **state)
{
    (void)state;
    struct story story;
    open_job(&story, "ps-async");
    story.job.eval = EVALUATION_NONE;
    train(&story);
    for (uint32_t rank = 0; rank < WORKERS - 1; rank++) {
        report_period(&story, rank, 0, 0);
    }
    lose(&story, ROLE_WORKER, 2);
    (void)awaits(&story, LOST_MS);
    answer(&story, 0, 31);
    answer(&story, 1, 33);
    assert_int_equal(in_place_step(&story.coordinator), 10);
    assert_int_equal(story.transcript.period_count, 0);
    in_place_describe(&story.coordinator, 10);
    assert_true(results_period_is_complete(&story.coordinator.results, 0));
    assert_int_equal(story.coordinator.results.periods[0].images, 10 * 4 * WORKERS);
    assert_true(story.coordinator.results.periods[0].loss_sum == 0.5 * 10 * 4 * WORKERS);
    assert_int_equal(story.transcript.period_count, 1); // it is told like any other
    coordinator_finish(&story.coordinator);
}

/* Nothing is left to do there. */
static void no_generation_begins_in_place_behind_the_last_step(void **state)
{
    (void)state;
    struct story story;
    open_job(&story, "ps-async");
    story.job.eval_every = 1000;
    train(&story);
    lose(&story, ROLE_WORKER, 1);
    (void)awaits(&story, LOST_MS);
    answer(&story, 0, UINT64_C(40) * WORKERS);
    answer(&story, 1, UINT64_C(40) * WORKERS);
    assert_int_equal(in_place_step(&story.coordinator), 0);
    coordinator_finish(&story.coordinator);
}

static void report_interval(struct story *story, uint32_t rank, uint64_t steps, double loss)
{
    const struct wire_report report = {.steps = steps,
                                       .images = 4 * steps,
                                       .loss_sum = loss * 4 * (double)steps,
                                       .total_ns = 1000 * steps};
    story_give(
        story, 1 + rank,
        (struct message){.kind = MESSAGE_REPORT, .rank = rank, .step = steps, .report = &report},
        500);
}

/* 13 steps of 3 ranks of 4 images, whoever has made how many of them. */
static void the_images_of_all_steps_count_once(void **state)
{
    (void)state;
    struct story story;
    open_job(&story, "ps-async");
    train(&story);
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        report_interval(&story, rank, 9 + 5 * rank, 0.5);
        report_period(&story, rank, 0, 8);
    }
    lose(&story, ROLE_WORKER, 1);
    (void)awaits(&story, LOST_MS);
    answer(&story, 0, 40);
    answer(&story, 1, 41);
    assert_int_equal(in_place_step(&story.coordinator), 13);
    in_place_describe(&story.coordinator, 13);
    const struct checkpointing *of = &story.coordinator.checkpointing;
    assert_int_equal(of->step, 13);
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        assert_int_equal(of->collected[rank].results.steps, 13);
        assert_int_equal(of->collected[rank].results.images, 13 * 4);
        assert_int_equal(of->collected[rank].open_period.steps, 3);
        assert_int_equal(of->collected[rank].open_period.images, 3 * 4);
        assert_true(of->collected[rank].open_period.loss_sum == 0.5 * 3 * 4);
        assert_int_equal(of->collected[rank].open_period.total_ns, 1000 * (9 + 5 * rank) - 100);
    }
    assert_int_equal(of->counted.staleness.total, 2 * 5 + 40 + 41);
    assert_int_equal(of->counted.late_count, 2);
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_race_begins_at_the_step_that_all_servers_have_the_gradients_of),
        cmocka_unit_test(members_hear_that_servers_go_on_from_what_they_have),
        cmocka_unit_test(a_server_that_is_lost_or_has_kept_nothing_sends_all_to_a_copy),
        cmocka_unit_test(a_server_that_does_not_answer_is_not_waited_for_long),
        cmocka_unit_test(jobs_whose_bits_follow_from_copies_go_on_from_one),
        cmocka_unit_test(an_evaluation_lacks_the_part_of_a_worker_that_has_not_reported_it),
        cmocka_unit_test(an_evaluation_that_nobody_has_reported_is_made_again),
        cmocka_unit_test(an_evaluation_at_the_step_where_all_are_is_made_again),
        cmocka_unit_test(an_evaluation_that_decides_is_made_by_all_workers),
        cmocka_unit_test(
            a_period_without_an_evaluation_is_closed_for_those_who_have_not_reported_it),
        cmocka_unit_test(no_generation_begins_in_place_behind_the_last_step),
        cmocka_unit_test(the_images_of_all_steps_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
