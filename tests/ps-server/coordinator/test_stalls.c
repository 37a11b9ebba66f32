/* Tests of who is named when a job does not go on: by what members say of whom they wait for. */
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define WORKERS 4

/* What each worker of a ring says: NULL: it computes. All are heard twice a second at step 3. */
static void go_on_until(struct story *story, const struct wire_wait *const waits[WORKERS],
                        uint64_t end_ms)
{
    for (uint64_t now_ms = 500; now_ms <= end_ms; now_ms += 500) {
        for (uint32_t i = 0; i < WORKERS; i++) {
            struct wire_wait wait = waits[i] != NULL ? *waits[i] : (struct wire_wait){.index = 0};
            wait.waited_ms = now_ms;
            const struct message heartbeat = {
                .kind = MESSAGE_HEARTBEAT, .step = 3, .wait = waits[i] != NULL ? &wait : NULL};
            story_give(story, 1 + i, heartbeat, now_ms);
        }
        coordinator_tick(&story->coordinator, now_ms, 0);
    }
}

static struct wire_wait for_chunk_of(uint32_t index)
{
    return (struct wire_wait){.role = ROLE_WORKER, .index = index, .what = WIRE_WAIT_CHUNK};
}

static void expect(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, text);
    }
}

static void the_one_that_computes_is_named_with_one_that_waits_for_it(void **state)
{
    (void)state;
    struct story story;
    const struct wire_wait for_0 = for_chunk_of(0), for_2 = for_chunk_of(2),
                           for_3 = for_chunk_of(3);
    const struct wire_wait *const waits[WORKERS] = {&for_3, &for_0, NULL, &for_2};
    story_open_training(&story, WORKERS);
    story.job.stall_warn = 10;
    story.job.stall_fail = 20;
    go_on_until(&story, waits, 11000);
    expect(story.transcript.last_error, "the job is waiting for worker 2 (host node, pid 102)");
    expect(story.transcript.last_error, "worker 3 has waited 10 s for a chunk of worker 2");
    go_on_until(&story, waits, 21000);
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    expect(story.coordinator.reason, "worker 2 (host node) has been at step 3 for 20 s: worker 3 "
                                     "has waited 20 s for a chunk of worker 2 (--stall-fail)");
    coordinator_finish(&story.coordinator);
}

/* A ring that is cut between workers 1 and 2: all wait. */
static void of_two_that_do_not_reach_each_other_the_higher_number_goes(void **state)
{
    (void)state;
    struct story story;
    static const uint64_t given[WORKERS][WORKERS] = {
        {0, 5, 0, 0}, {0, 0, 6, 0}, {0, 0, 0, 5}, {5, 0, 0, 0}};
    static const uint64_t taken[WORKERS] = {5, 5, 4, 5};
    struct wire_wait said[WORKERS];
    const struct wire_wait *waits[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        said[i] = for_chunk_of((i + WORKERS - 1) % WORKERS);
        said[i].taken = taken[i];
        said[i].given = given[i];
        said[i].given_count = WORKERS;
        waits[i] = &said[i];
    }
    story_open_training(&story, WORKERS);
    story.job.on_loss = ON_LOSS_REDEAL;
    story.job.stall_warn = 5;
    story.job.stall_fail = 10;
    go_on_until(&story, waits, 7000);
    expect(story.transcript.last_error, "worker 2 (host node) and worker 1 (host node) do not "
                                        "reach each other: worker 2 has waited 6 s for a chunk of "
                                        "worker 1");
    go_on_until(&story, waits, 11000);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    assert_int_equal(story.coordinator.workers_lost, 1);
    assert_int_equal(story.coordinator.membership.workers[2].state, SLOT_GONE);
    // It is told to end, since it would hold the job up again.
    uint32_t last = story.transcript.sent_count - 1;
    assert_int_equal(story.transcript.sent[last].peer, 3);
    assert_int_equal(story.transcript.sent[last].kind, MESSAGE_STOP);
    assert_int_equal(story.transcript.sent[last].reason, STATUS_TIMED_OUT);
    coordinator_finish(&story.coordinator);
}

/* Of a job that trains; workers are peers from 1, servers from 10. */
static void open_with_servers(struct story *story, uint32_t workers, uint32_t servers)
{
    story_open(story, "ps-async", workers, servers);
    for (uint32_t i = 0; i < servers; i++) {
        story_join(story, 10 + i, ROLE_SERVER, i);
    }
    for (uint32_t i = 0; i < workers; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    for (uint32_t i = 0; i < workers; i++) {
        story_ready(story, 1 + i, ROLE_WORKER, "first", &story_layout);
    }
    for (uint32_t i = 0; i < servers; i++) {
        story_ready(story, 10 + i, ROLE_SERVER, "", NULL);
    }
    for (uint32_t i = 0; i < workers + servers; i++) {
        story_connected(story, i < workers ? 1 + i : 10 + i - workers);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
    story->job.stall_fail = 20;
}

/* Two workers and two servers, in this order, that are heard until --stall-fail. */
static void wait_until_it_fails(struct story *story, const struct wire_wait waits[4])
{
    static const uint64_t peers[] = {1, 2, 10, 11};
    for (uint64_t now_ms = 500; now_ms <= 21000; now_ms += 500) {
        for (uint32_t i = 0; i < 4; i++) {
            const struct message heartbeat = {
                .kind = MESSAGE_HEARTBEAT, .step = 3, .wait = &waits[i]};
            story_give(story, peers[i], heartbeat, now_ms);
        }
        coordinator_tick(&story->coordinator, now_ms, 0);
    }
}

/* In an order of pushes, each of two servers waits for a worker that waits for the other server. A
 * message was lost in one of four places, and the two that wait there are innocent. */
static const struct wire_wait circle[] = {
    {.role = ROLE_SERVER, .index = 1, .what = WIRE_WAIT_PARAMS},
    {.role = ROLE_SERVER, .index = 0, .what = WIRE_WAIT_PARAMS},
    {.role = ROLE_WORKER, .index = 0, .what = WIRE_WAIT_GRADIENTS},
    {.role = ROLE_WORKER, .index = 1, .what = WIRE_WAIT_GRADIENTS},
};

static void of_a_circle_with_servers_nobody_is_named_alone(void **state)
{
    (void)state;
    struct story story;
    open_with_servers(&story, 2, 2);
    wait_until_it_fails(&story, circle);
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    expect(story.coordinator.reason, "members wait for each other, and nothing shows where a "
                                     "message was lost: ");
    expect(story.coordinator.reason, "worker 0 waits for server 1, which waits for worker 1");
    expect(story.transcript.last_error, "members wait for each other");
    coordinator_finish(&story.coordinator);
}

/* Each says what it has sent to both members of the other role, and what has come from the one that
 * it waits for. */
static void where_a_message_was_lost_in_a_circle_with_servers_the_two_are_named(void **state)
{
    (void)state;
    static const uint64_t given[] = {9, 9};
    static const char *const pairs[] = {
        "worker 0 (host node) and server 1 (host node) do not reach each other: worker 0 has",
        "worker 1 (host node) and server 0 (host node) do not reach each other: worker 1 has",
        "worker 0 (host node) and server 0 (host node) do not reach each other: server 0 has",
        "worker 1 (host node) and server 1 (host node) do not reach each other: server 1 has",
    };
    for (uint32_t broken = 0; broken < 4; broken++) {
        struct story story;
        struct wire_wait waits[4];
        open_with_servers(&story, 2, 2);
        story.job.on_loss = ON_LOSS_REDEAL;
        for (uint32_t i = 0; i < 4; i++) {
            waits[i] = circle[i];
            waits[i].taken = i == broken ? 8 : 9;
            waits[i].given = given;
            waits[i].given_count = 2;
        }
        wait_until_it_fails(&story, waits);
        assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
        expect(story.coordinator.reason, pairs[broken]);
        assert_int_equal(story.coordinator.membership.workers[broken % 2].state, SLOT_GONE);
        assert_int_equal(story.coordinator.workers_lost, 1);
        coordinator_finish(&story.coordinator);
    }
}

/* A worker that waits for one of the circle is not of it. */
static void a_circle_is_told_from_one_of_its_members_on(void **state)
{
    (void)state;
    struct story story;
    open_with_servers(&story, 3, 2);
    static const uint64_t peers[] = {1, 2, 3, 10, 11};
    const struct wire_wait waits[] = {
        {.role = ROLE_SERVER, .index = 0, .what = WIRE_WAIT_PARAMS},
        {.role = ROLE_SERVER, .index = 1, .what = WIRE_WAIT_PARAMS},
        {.role = ROLE_SERVER, .index = 0, .what = WIRE_WAIT_PARAMS},
        {.role = ROLE_WORKER, .index = 1, .what = WIRE_WAIT_GRADIENTS},
        {.role = ROLE_WORKER, .index = 2, .what = WIRE_WAIT_GRADIENTS},
    };
    for (uint64_t now_ms = 500; now_ms <= 21000; now_ms += 500) {
        for (uint32_t i = 0; i < 5; i++) {
            const struct message heartbeat = {
                .kind = MESSAGE_HEARTBEAT, .step = 3, .wait = &waits[i]};
            story_give(&story, peers[i], heartbeat, now_ms);
        }
        coordinator_tick(&story.coordinator, now_ms, 0);
    }
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    expect(story.coordinator.reason, "server 0 waits for worker 1, which waits for server 1, which "
                                     "waits for worker 2, which waits for server 0");
    coordinator_finish(&story.coordinator);
}

static void what_names_nobody_counts_as_nothing(void **state)
{
    (void)state;
    struct story story;
    const struct wire_wait for_nobody = for_chunk_of(77);
    const struct wire_wait for_server = {.role = ROLE_SERVER, .index = 3};
    // Of servers behind the workers, this number would wrap around to worker 2.
    const struct wire_wait for_wrapped = {.role = ROLE_SERVER, .index = UINT32_MAX - 1};
    const struct wire_wait *const waits[WORKERS] = {&for_wrapped, &for_nobody, &for_server, NULL};
    story_open_training(&story, WORKERS);
    story.job.stall_fail = 20;
    go_on_until(&story, waits, 21000);
    expect(story.coordinator.reason,
           "worker 0 (host node) has been at step 3 for 20 s (--stall-fail)");
    coordinator_finish(&story.coordinator);
}

/* A ring of two processes of a program of one's own, of which the first has made 5 steps. */
static void open_external(struct story *story)
{
    story_open_training(story, 2);
    snprintf(story->job.model, sizeof(story->job.model), "external:own");
    story->job.steps = JOB_STEPS_OPEN;
    story_give(story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 5}, 100);
    story_give(story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 5}, 100);
}

static void leave(struct story *story, uint64_t peer, uint64_t step)
{
    const struct wire_member member = {.role = ROLE_WORKER, .params_digest = "same"};
    static const struct wire_report report;
    story_give(
        story, peer,
        (struct message){.kind = MESSAGE_DONE, .step = step, .member = &member, .report = &report},
        200);
}

static void one_that_leaves_before_a_step_of_others_ends_the_job(void **state)
{
    (void)state;
    struct story story;
    open_external(&story);
    leave(&story, 1, 5);
    coordinator_tick(&story.coordinator, 300, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING); // the other may leave, too
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 6}, 400);
    coordinator_tick(&story.coordinator, 400, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    expect(story.coordinator.reason, "worker 0 (host node) left after 5 steps, but worker 1 (host "
                                     "node) is in step 6: in ring the numbers");
    coordinator_finish(&story.coordinator);
}

static void steps_may_differ_by_the_bound_of_the_mode(void **state)
{
    (void)state;
    struct story story;
    open_external(&story);
    story.job.mode = (struct mode){MODE_PS_SSP, 2};
    leave(&story, 1, 5);
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 7}, 400);
    coordinator_tick(&story.coordinator, 400, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 8}, 500);
    coordinator_tick(&story.coordinator, 500, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    coordinator_finish(&story.coordinator);
}

static void give_sum(struct story *story, uint64_t peer, uint64_t step)
{
    static const double value = 1;
    const struct wire_sum sum = {0, 1, &value};
    story_give(story, peer, (struct message){.kind = MESSAGE_SUM, .step = step, .sum = &sum}, 200);
}

static void a_collective_of_one_beside_a_step_of_another_ends_the_job(void **state)
{
    (void)state;
    struct story story;
    open_external(&story);
    give_sum(&story, 1, 5);
    coordinator_tick(&story.coordinator, 300, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 6}, 400);
    coordinator_tick(&story.coordinator, 400, 0);
    expect(story.coordinator.reason, "worker 0 (host node) waits, to leave or in a collective, "
                                     "after 5 steps, but worker 1");
    coordinator_finish(&story.coordinator);
}

/* Between two heartbeats a process makes many steps, and may come to a collective. */
static void a_collective_says_how_many_steps_came_before_it(void **state)
{
    (void)state;
    struct story story;
    open_external(&story);
    give_sum(&story, 1, 9);
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 9}, 400);
    coordinator_tick(&story.coordinator, 400, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

static void a_collective_that_another_has_left_without_ends_the_job(void **state)
{
    (void)state;
    struct story story;
    open_external(&story);
    story.job.mode = (struct mode){MODE_PS_ASYNC, 0};
    leave(&story, 2, 5);
    give_sum(&story, 1, 5);
    coordinator_tick(&story.coordinator, 300, 0);
    expect(story.coordinator.reason,
           "worker 0 (host node) waits in a collective, and worker 1 (host node) "
           "has left without it");
    coordinator_finish(&story.coordinator);
}

static void a_collective_that_another_trains_without_ends_the_job(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    snprintf(story.job.model, sizeof(story.job.model), "external:own");
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 2, ROLE_WORKER, 1);
    give_sum(&story, 1, 0);
    coordinator_tick(&story.coordinator, 300, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    story_ready(&story, 2, ROLE_WORKER, "first", &story_layout);
    coordinator_tick(&story.coordinator, 400, 0);
    expect(story.coordinator.reason,
           "worker 0 (host node) waits in a collective, and worker 1 (host "
           "node) has gone on to train without it");
    coordinator_finish(&story.coordinator);
}

/* Calls that go past the coordinator show by the heartbeats that a program gets on. */
static void programs_that_make_calls_of_each_other_have_time_to_start(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    snprintf(story.job.model, sizeof(story.job.model), "external:own");
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 2, ROLE_WORKER, 1);
    uint64_t timeout_ms = (uint64_t)(1000 * story.job.start_timeout), now_ms = 200;
    for (uint64_t calls = 1; calls < 20; calls++) {
        now_ms += timeout_ms / 4;
        story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = calls}, now_ms);
        story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT}, now_ms);
        coordinator_tick(&story.coordinator, now_ms, 0);
        assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    }
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    assert_int_equal(story.coordinator.membership.workers[0].step, 0);
    now_ms += 2 * timeout_ms;
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT}, now_ms);
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT}, now_ms);
    coordinator_tick(&story.coordinator, now_ms, 0);
    expect(story.coordinator.reason, "some workers are not ready");
    coordinator_finish(&story.coordinator);
}

/* A program of its own may have ended without a model, where others train one. */
static void a_program_without_a_model_is_told_so(void **state)
{
    (void)state;
    for (uint64_t without = 1; without <= 2; without++) {
        struct story story;
        struct layout nothing = story_layout;
        nothing.digest = 6;
        story_open(&story, "ring", 2, 0);
        snprintf(story.job.model, sizeof(story.job.model), "external:own");
        story_tensors = "1 nothing\n";
        story_join(&story, 1, ROLE_WORKER, 0);
        story_join(&story, 2, ROLE_WORKER, 1);
        for (uint64_t peer = 1; peer <= 2; peer++) {
            story_has_no_model = peer == without;
            story_ready(&story, peer, ROLE_WORKER, "first", peer == 1 ? &story_layout : &nothing);
        }
        story_has_no_model = false;
        story_tensors = NULL;
        assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
        assert_non_null(strstr(story.coordinator.reason,
                               without == 2 ? "its program has ended without training one"
                                            : "and the others have ended without training one"));
        coordinator_finish(&story.coordinator);
    }
}

static void a_job_of_our_own_is_not_looked_at(void **state)
{
    (void)state;
    struct story story;
    open_external(&story);
    snprintf(story.job.model, sizeof(story.job.model), "cnn");
    give_sum(&story, 1, 5);
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 6}, 400);
    coordinator_tick(&story.coordinator, 400, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_computes_is_named_with_one_that_waits_for_it),
        cmocka_unit_test(of_two_that_do_not_reach_each_other_the_higher_number_goes),
        cmocka_unit_test(of_a_circle_with_servers_nobody_is_named_alone),
        cmocka_unit_test(where_a_message_was_lost_in_a_circle_with_servers_the_two_are_named),
        cmocka_unit_test(a_circle_is_told_from_one_of_its_members_on),
        cmocka_unit_test(what_names_nobody_counts_as_nothing),
        cmocka_unit_test(one_that_leaves_before_a_step_of_others_ends_the_job),
        cmocka_unit_test(steps_may_differ_by_the_bound_of_the_mode),
        cmocka_unit_test(a_collective_of_one_beside_a_step_of_another_ends_the_job),
        cmocka_unit_test(a_collective_says_how_many_steps_came_before_it),
        cmocka_unit_test(a_collective_that_another_has_left_without_ends_the_job),
        cmocka_unit_test(a_collective_that_another_trains_without_ends_the_job),
        cmocka_unit_test(programs_that_make_calls_of_each_other_have_time_to_start),
        cmocka_unit_test(a_program_without_a_model_is_told_so),
        cmocka_unit_test(a_job_of_our_own_is_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
