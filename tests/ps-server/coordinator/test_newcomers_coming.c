/* Tests of newcomers that were admitted, and come to the next generation. */
#include "common/service/launch_number.h"
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/coordinator/newcomers.h"
#include "tests/support/ps-server/newcomer_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

/* Worker 3 is to come to two others. */
static void begin_with_newcomer(struct story *story, struct generation *ret_next)
{
    newcomer_story_open(story);
    const struct coordinator_port port = story->coordinator.port;
    newcomer_story_join(story, 9, 3, 0);
    newcomers_admit(&story->coordinator, 200);
    assert_int_equal(generation_next(&story->coordinator, ret_next), STATUS_OK);
    coordinator_finish(&story->coordinator);
    story->job.processes = ret_next->process_count;
    assert_int_equal(coordinator_init(&story->coordinator, &story->job, "the job", &port, 300),
                     STATUS_OK);
    generation_begin(ret_next, &story->coordinator);
}

/* It has come by connection 13, and all prepare. */
static void open_with_newcomer(struct story *story, struct generation *ret_next)
{
    begin_with_newcomer(story, ret_next);
    story_join(story, 10, ROLE_WORKER, 0);
    story_join(story, 11, ROLE_WORKER, 1);
    story_join(story, 13, ROLE_WORKER, 3);
}

static void expect_end(struct story *story, struct generation *generation, enum status verdict)
{
    assert_int_equal(story->coordinator.verdict, verdict);
    coordinator_finish(&story->coordinator);
    generation_finish(generation);
}

/* Its launcher has counted it for another place, or for the same one, after that one had ended. */
static void a_place_that_is_kept_is_for_the_process_that_had_it(void **state)
{
    (void)state;
    struct story story;
    struct generation generation;
    begin_with_newcomer(&story, &generation);
    struct coordinator *coordinator = &story.coordinator;
    const struct slot *kept = &coordinator->membership.workers[1];
    coordinator->membership.workers[1].launch = launch_number_make(6, 2);
    newcomer_story_join(&story, 12, 1, launch_number_make(7, 3));
    assert_int_equal(kept->state, SLOT_FREE);
    assert_int_equal(coordinator->newcomers.count, 1);
    newcomer_story_join(&story, 13, 1, launch_number_make(8, 2));
    assert_int_equal(kept->state, SLOT_GONE);
    assert_string_equal(coordinator->reason,
                        "worker 1 was lost: another one was started in its place");
    assert_int_equal(coordinator->newcomers.count, 2);
    expect_end(&story, &generation, STATUS_AGAIN);

    begin_with_newcomer(&story, &generation);
    coordinator->membership.workers[1].launch = launch_number_make(6, 2);
    newcomer_story_join(&story, 11, 1, launch_number_make(6, 2));
    assert_int_equal(coordinator->membership.workers[1].peer, 11);
    coordinator_finish(coordinator);
    generation_finish(&generation);
}

/* A program that the launcher has started for worker 1 has started two, which ask for one rank. */
static void the_second_worker_below_one_program_takes_no_place_of_the_first(void **state)
{
    (void)state;
    struct story story;
    struct generation generation;
    begin_with_newcomer(&story, &generation);
    struct coordinator *coordinator = &story.coordinator;
    const struct slot *kept = &coordinator->membership.workers[1];
    coordinator->membership.workers[1].launch = launch_number_make(6, 2);
    const struct wire_member second = {.role = ROLE_WORKER,
                                       .has_rank = true,
                                       .rank = 1,
                                       .host = "node",
                                       .process_id = 4711,
                                       .launch = launch_number_make(6, 2)};
    const struct message join = {.kind = MESSAGE_JOIN, .member = &second, .text = RINGSIDE_VERSION};
    story_give(&story, 12, join, 400);
    assert_int_equal(kept->state, SLOT_FREE);
    assert_int_equal(coordinator->newcomers.count, 1);
    assert_int_equal(coordinator->newcomers.list[0].launch, 0);
    assert_non_null(strstr(story.transcript.last_error, "process 4711 on host node"));
    newcomer_story_join(&story, 11, 1, launch_number_make(6, 2)); // the first
    assert_int_equal(kept->peer, 11);
    assert_int_equal(kept->launch, launch_number_make(6, 2));
    coordinator_finish(coordinator);
    generation_finish(&generation);
}

static void leave_unable(struct story *story, uint64_t peer)
{
    const struct message leave = {.kind = MESSAGE_LEAVE,
                                  .reason = STATUS_UNSUPPORTED,
                                  .text = "it cannot prepare (not supported by this build)"};
    story_give(story, peer, leave, 400);
}

static void others_go_on_without_a_newcomer_that_lacks_what_it_needs(void **state)
{
    (void)state;
    struct story story;
    struct generation generation;
    open_with_newcomer(&story, &generation);
    leave_unable(&story, 13);
    assert_non_null(strstr(story.coordinator.reason, "worker 3 (host node"));
    expect_end(&story, &generation, STATUS_AGAIN);

    open_with_newcomer(&story, &generation);
    leave_unable(&story, 11); // which has trained: what it lacks now, others lack
    expect_end(&story, &generation, STATUS_UNSUPPORTED);

    open_with_newcomer(&story, &generation);
    story_ready(&story, 13, ROLE_WORKER, "first", &story_layout);
    leave_unable(&story, 13); // so has one that was ready
    expect_end(&story, &generation, STATUS_UNSUPPORTED);
}

static void others_go_on_without_a_newcomer_that_differs_from_them(void **state)
{
    (void)state;
    struct story story;
    struct generation generation;
    struct layout other = story_layout;
    other.digest++;
    open_with_newcomer(&story, &generation);
    story_ready(&story, 10, ROLE_WORKER, "first", &story_layout);
    story_ready(&story, 13, ROLE_WORKER, "first", &other);
    assert_non_null(strstr(story.coordinator.reason, "its model differs"));
    expect_end(&story, &generation, STATUS_AGAIN);

    // It is ready before any of them.
    const struct coordinator_resume copy = {.layout_digest = story_layout.digest,
                                            .value_count = story_layout.value_count};
    open_with_newcomer(&story, &generation);
    story.coordinator.resume = &copy;
    story_ready(&story, 13, ROLE_WORKER, "first", &other);
    assert_non_null(strstr(story.coordinator.reason, "its model is not that of the job"));
    expect_end(&story, &generation, STATUS_AGAIN);

    // There is no copy so far.
    open_with_newcomer(&story, &generation);
    story_ready(&story, 13, ROLE_WORKER, "first", &other);
    story_ready(&story, 10, ROLE_WORKER, "first", &story_layout);
    assert_non_null(strstr(story.coordinator.reason,
                           "worker 3 (host node) is new, and worker 0 (host node) does not agree"));
    assert_int_equal(story.coordinator.membership.workers[2].state, SLOT_GONE);
    assert_int_equal(story.coordinator.membership.workers[0].state, SLOT_JOINED);
    expect_end(&story, &generation, STATUS_AGAIN);

    // One that has agreed with it is one of those who were there.
    open_with_newcomer(&story, &generation);
    story_ready(&story, 13, ROLE_WORKER, "first", &story_layout);
    story_ready(&story, 10, ROLE_WORKER, "first", &story_layout);
    story_ready(&story, 11, ROLE_WORKER, "first", &other);
    expect_end(&story, &generation, STATUS_MISMATCH);

    open_with_newcomer(&story, &generation);
    story_ready(&story, 10, ROLE_WORKER, "first", &story_layout);
    story_ready(&story, 11, ROLE_WORKER, "first", &other);
    expect_end(&story, &generation, STATUS_MISMATCH);
}

/* Nobody was lost. It was killed before it came, on another host, where nobody sees that. */
static void a_newcomer_that_does_not_come_is_called_one(void **state)
{
    (void)state;
    struct story story;
    struct generation generation;
    begin_with_newcomer(&story, &generation);
    story_join(&story, 10, ROLE_WORKER, 0);
    story_join(&story, 11, ROLE_WORKER, 1);
    const struct message heartbeat = {.kind = MESSAGE_HEARTBEAT};
    story_give(&story, 10, heartbeat, 5000);
    story_give(&story, 11, heartbeat, 5000);
    coordinator_tick(&story.coordinator, 5400, 0);
    assert_string_equal(story.coordinator.reason,
                        "worker 3 did not come within 5 s of being told to");
    expect_end(&story, &generation, STATUS_AGAIN);
}

/* Nor is the job held up for --lost-after. */
static void a_newcomer_that_is_closed_before_it_comes_is_not_waited_for(void **state)
{
    (void)state;
    struct story story;
    struct generation generation;
    begin_with_newcomer(&story, &generation);
    deadlines_note_closed(&story.coordinator, 9, 400);
    story_join(&story, 10, ROLE_WORKER, 0);
    story_join(&story, 11, ROLE_WORKER, 1);
    coordinator_tick(&story.coordinator, 1399, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    coordinator_tick(&story.coordinator, 1400, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_RENEWING);
    expect_end(&story, &generation, STATUS_AGAIN);

    begin_with_newcomer(&story, &generation);
    deadlines_note_closed(&story.coordinator, 9, 400);
    deadlines_note_closed(&story.coordinator, 1, 400); // of one that was there, and joins anew
    story_join(&story, 10, ROLE_WORKER, 0);
    story_join(&story, 11, ROLE_WORKER, 1);
    story_join(&story, 13, ROLE_WORKER, 3);
    coordinator_tick(&story.coordinator, 1400, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    coordinator_finish(&story.coordinator);
    generation_finish(&generation);
}

/* The end of the process that has begun this generation, or the one before. */
static void tell_killed(struct story *story)
{
    const struct sender lost = membership_called(&story->coordinator.membership, ROLE_WORKER, 3);
    generation_lose_killed(&story->coordinator, "worker 3 was killed", &lost, 500);
}

/* Whatever becomes of it until it is ready, the others have all that they had. */
static void a_newcomer_that_has_never_taken_part_is_no_lost_worker(void **state)
{
    (void)state;
    struct story story;
    struct generation generation;
    begin_with_newcomer(&story, &generation);
    deadlines_note_closed(&story.coordinator, 9, 400);
    coordinator_tick(&story.coordinator, 1400, 0); // it does not come
    assert_int_equal(story.coordinator.workers_lost, 0);
    expect_end(&story, &generation, STATUS_AGAIN);

    open_with_newcomer(&story, &generation);
    leave_unable(&story, 13);
    assert_int_equal(story.coordinator.workers_lost, 0);
    expect_end(&story, &generation, STATUS_AGAIN);

    open_with_newcomer(&story, &generation);
    deadlines_note_closed(&story.coordinator, 13, 400);
    coordinator_tick(&story.coordinator, 1400, 0);
    assert_int_equal(story.coordinator.workers_lost, 0);
    expect_end(&story, &generation, STATUS_AGAIN);

    for (uint32_t is_ready = 0; is_ready < 2; is_ready++) {
        open_with_newcomer(&story, &generation);
        if (is_ready != 0) {
            story_ready(&story, 13, ROLE_WORKER, "first", &story_layout);
        }
        tell_killed(&story);
        assert_int_equal(story.coordinator.workers_lost, is_ready);
        expect_end(&story, &generation, STATUS_AGAIN);
    }
}

/* A loss has overtaken its preparation. */
static void a_newcomer_is_one_until_it_has_been_ready(void **state)
{
    (void)state;
    struct story story;
    struct generation generation, next;
    open_with_newcomer(&story, &generation);
    story.job.min_workers = 1;
    deadlines_note_closed(&story.coordinator, 11, 400);
    coordinator_tick(&story.coordinator, 2000, 0);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    assert_int_equal(next.process_count, 2);
    assert_false(next.workers[0].is_new);
    assert_true(next.workers[1].is_new);

    // Then it joins anew, by another connection, like all others.
    const struct coordinator_port port = story.coordinator.port;
    expect_end(&story, &generation, STATUS_AGAIN);
    story.job.processes = next.process_count;
    assert_int_equal(coordinator_init(&story.coordinator, &story.job, "the job", &port, 2100),
                     STATUS_OK);
    generation_begin(&next, &story.coordinator);
    deadlines_note_closed(&story.coordinator, 13, 2200);
    coordinator_tick(&story.coordinator, 3300, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    coordinator_finish(&story.coordinator);
    generation_finish(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_that_is_kept_is_for_the_process_that_had_it),
        cmocka_unit_test(the_second_worker_below_one_program_takes_no_place_of_the_first),
        cmocka_unit_test(others_go_on_without_a_newcomer_that_lacks_what_it_needs),
        cmocka_unit_test(others_go_on_without_a_newcomer_that_differs_from_them),
        cmocka_unit_test(a_newcomer_that_does_not_come_is_called_one),
        cmocka_unit_test(a_newcomer_that_is_closed_before_it_comes_is_not_waited_for),
        cmocka_unit_test(a_newcomer_is_one_until_it_has_been_ready),
        cmocka_unit_test(a_newcomer_that_has_never_taken_part_is_no_lost_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
