/* Tests of members that a launcher has started, and of whose end it tells late. */
#include "common/service/launch_number.h"
#include "ps-server/coordinator/deadlines.h"
#include "tests/support/ps-server/launched_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

/* Its connection was closed, and another process took its place before the launcher knew. */
static void a_late_end_does_not_free_the_place_of_the_one_that_came_for_it(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story.coordinator.is_launched = true;
    story_join_launched(&story, 2, 1, 5);
    deadlines_note_closed(&story.coordinator, 2, 100);
    story_join_launched(&story, 3, 1, 0); // by hand
    const struct launcher_news late = {LAUNCHER_AGAIN, ROLE_WORKER, 1, launch_number_make(5, 2),
                                       "it was killed"};
    launcher_news_apply(&late, &story.coordinator, 120);
    const struct slot *slot = &story.coordinator.membership.workers[1];
    assert_int_equal(slot->state, SLOT_JOINED);
    assert_int_equal(slot->peer, 3);
    assert_int_equal(story.coordinator.workers_lost, 1);
    assert_int_equal(story.transcript.awaited_count, 0);
    coordinator_finish(&story.coordinator);
}

/* Nobody has told yet that the one before has ended. */
static void one_that_was_started_later_gets_the_place_of_the_one_before(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story.coordinator.is_launched = true;
    story_join_launched(&story, 2, 1, 5);
    story_join_launched(&story, 3, 1, 6);
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    assert_int_equal(story.coordinator.membership.workers[1].peer, 3);
    assert_int_equal(story.coordinator.workers_lost, 1);
    assert_non_null(strstr(story.transcript.last_error, "another one was started in its place"));
    const struct launcher_news late = {LAUNCHER_AGAIN, ROLE_WORKER, 1, launch_number_make(5, 2),
                                       "it was killed"};
    launcher_news_apply(&late, &story.coordinator, 120);
    assert_int_equal(story.coordinator.workers_lost, 1);
    coordinator_finish(&story.coordinator);
}

/* It was killed while its JOIN was on its way, which comes behind that of the next one. */
static void one_that_was_started_earlier_takes_no_place_from_a_later_one(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story.coordinator.is_launched = true;
    const struct launcher_news news = {LAUNCHER_AGAIN, ROLE_WORKER, 1, launch_number_make(5, 2),
                                       "it was killed"};
    launcher_news_apply(&news, &story.coordinator, 100);
    assert_int_equal(story.transcript.awaited_count, 1);
    story_join_launched(&story, 3, 1, 6);
    story_join_launched(&story, 2, 1, 5);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    assert_int_equal(story.coordinator.membership.workers[1].peer, 3);
    coordinator_finish(&story.coordinator);
}

/* A program that the launcher has started has started both of its members. */
static void of_two_below_one_program_the_launcher_speaks_of_the_first(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 3, 0);
    story.coordinator.is_launched = true;
    story_join_launched(&story, 2, 1, 5);
    struct wire_member second = {.role = ROLE_WORKER,
                                 .has_rank = true, // 0
                                 .host = "node",
                                 .process_id = 4711,
                                 .launch = launch_number_make(5, 2)};
    const struct message join = {.kind = MESSAGE_JOIN, .member = &second, .text = RINGSIDE_VERSION};
    story_give(&story, 3, join, 110);
    const struct slot *workers = story.coordinator.membership.workers;
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    assert_int_equal(workers[0].process_id, 4711);
    assert_int_equal(workers[0].launch, 0);
    assert_int_equal(workers[1].launch, launch_number_make(5, 2));
    const struct launcher_news news = {LAUNCHER_AGAIN, ROLE_WORKER, 1, launch_number_make(5, 2),
                                       "it was killed"};
    launcher_news_apply(&news, &story.coordinator, 120);
    assert_int_equal(workers[0].state, SLOT_JOINED);
    assert_int_equal(workers[1].state, SLOT_FREE);

    // The program starts another one in the place of the first.
    story_join_launched(&story, 4, 1, 5);
    assert_int_equal(workers[1].state, SLOT_JOINED);
    assert_int_equal(workers[1].launch, launch_number_make(5, 2));
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_end_does_not_free_the_place_of_the_one_that_came_for_it),
        cmocka_unit_test(one_that_was_started_later_gets_the_place_of_the_one_before),
        cmocka_unit_test(one_that_was_started_earlier_takes_no_place_from_a_later_one),
        cmocka_unit_test(of_two_below_one_program_the_launcher_speaks_of_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
