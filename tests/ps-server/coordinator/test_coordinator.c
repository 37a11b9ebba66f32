/* Tests of the coordinator: stories of joining, training and losing, in virtual time. */
#include "common/base/log.h"
#include "tests/support/common/choices.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void a_ring_starts_when_all_are_ready_and_each_hears_of_its_next(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 3);
    assert_int_equal(story.transcript.started_count, 1);
    assert_int_equal(story.transcript.sent_count, 9); // three welcomes, starts and gos
    const char *const next[] = {"place-2\n", "place-3\n", "place-1\n"};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(story.transcript.sent[3 + i].kind, MESSAGE_START);
        assert_int_equal(story.transcript.sent[3 + i].peer, 1 + i);
        assert_string_equal(story.transcript.sent[3 + i].text, next[i]);
    }
    coordinator_finish(&story.coordinator);
}

/* What a worker has found out. */
static void give_tried(struct story *story, uint64_t peer, enum status refusal)
{
    const struct all_reduce_path path = {50000, 2000, 1000000000};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_TRIED, .reason = refusal, .path = &path}, 25);
}

/* Two workers of one host that may share memory, and have been asked to try; rank 0 has. */
static void open_trial(struct story *story, const char *transport, enum status first_answer)
{
    story_open(story, "ring", 2, 0);
    story->job.all_reduce = ALL_REDUCE_CHOICE_AUTO;
    story->job.transport = choice_of(transport_choices, transport);
    for (uint32_t i = 0; i < 2; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        story_ready(story, 1 + i, ROLE_WORKER, "first", &story_layout);
    }
    assert_int_equal(story_last_kind(story), MESSAGE_TRY);
    assert_string_equal(story_last_text(story), "place-1\nplace-2\n");
    give_tried(story, 1, first_answer);
    assert_int_equal(story_last_kind(story), MESSAGE_TRY); // not everybody has
}

static void expect_all_reduce(const struct story *story, const char *expected)
{
    char text[128];
    assert_true(coordinator_all_reduce(&story->coordinator, text, sizeof(text)));
    assert_string_equal(text, expected);
}

static void workers_that_have_mapped_each_others_memory_go_direct(void **state)
{
    (void)state;
    struct story story;
    open_trial(&story, "auto", STATUS_OK);
    give_tried(&story, 2, STATUS_OK);
    assert_int_equal(story_last_kind(&story), MESSAGE_START);
    assert_string_equal(story_last_text(&story), "place-1\nplace-2\n");
    story_connected(&story, 1);
    assert_int_equal(story_last_kind(&story), MESSAGE_START);
    story_connected(&story, 2);
    assert_int_equal(story_last_kind(&story), MESSAGE_GO);
    expect_all_reduce(&story, "direct in shared memory");
    coordinator_finish(&story.coordinator);
}

static void a_worker_that_cannot_map_makes_all_take_messages(void **state)
{
    (void)state;
    struct story story;
    open_trial(&story, "auto", STATUS_OK);
    give_tried(&story, 2, STATUS_UNREACHABLE);
    assert_int_equal(story_last_kind(&story), MESSAGE_START);
    expect_all_reduce(&story, "ring (50 us, 2.0 us a message, 1000 MB/s)"); // two of them
    coordinator_finish(&story.coordinator);
}

/* Also if it is not the last one to answer. */
static void where_memory_must_be_shared_who_cannot_ends_the_job(void **state)
{
    (void)state;
    for (uint32_t refuser = 0; refuser < 2; refuser++) {
        struct story story;
        open_trial(&story, "shm", refuser == 0 ? STATUS_UNREACHABLE : STATUS_OK);
        give_tried(&story, 2, refuser == 1 ? STATUS_UNREACHABLE : STATUS_OK);
        assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
        char expected[64];
        snprintf(expected, sizeof(expected), "worker %u (host node, pid %u) cannot map the memory",
                 refuser, 100 + refuser);
        if (strstr(story_last_text(&story), expected) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", expected, story_last_text(&story));
        }
        coordinator_finish(&story.coordinator);
    }
}

/* Whoever is silent while others have found out is named. */
static void a_worker_that_never_finds_out_is_named(void **state)
{
    (void)state;
    struct story story;
    open_trial(&story, "auto", STATUS_OK);
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT}, 29000);
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT}, 29000);
    coordinator_tick(&story.coordinator, 31000, 0);
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    assert_non_null(strstr(story_last_text(&story), "still connecting: rank 1"));
    coordinator_finish(&story.coordinator);
}

static void workers_hear_of_all_servers_and_go_when_all_are_connected(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ps-sync", 1, 2);
    story_join(&story, 10, ROLE_SERVER, 0);
    story_join(&story, 11, ROLE_SERVER, 1);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    story_ready(&story, 11, ROLE_SERVER, "", NULL);
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    story_ready(&story, 10, ROLE_SERVER, "", NULL);
    assert_int_equal(story.coordinator.state, COORDINATOR_CONNECTING);
    assert_int_equal(story.transcript.sent[3].peer, 10);
    assert_int_equal(story.transcript.sent[4].peer, 11);
    assert_int_equal(story.transcript.sent[5].peer, 1);
    assert_string_equal(story.transcript.sent[5].text, "place-10\nplace-11\n");
    // A worker goes only when the shards can take its messages.
    story_connected(&story, 1);
    story_connected(&story, 11);
    assert_int_equal(story.transcript.sent_count, 6);
    story_connected(&story, 10);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    assert_int_equal(story_last_kind(&story), MESSAGE_GO);
    coordinator_finish(&story.coordinator);
}

static void equal_digests_complete_the_job(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story_done(&story, 1, "same", 1000);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    story_done(&story, 2, "same", 1100);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    story_answer_stop(&story, 1, 1100);
    coordinator_tick(&story.coordinator, 1100, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    story_answer_stop(&story, 2, 1101);
    coordinator_tick(&story.coordinator, 1101, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_OVER);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    assert_string_equal(story.coordinator.params_digest, "same");
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    coordinator_finish(&story.coordinator);
}

static void digests_that_differ_fail_the_job_and_name_the_worker(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story_done(&story, 1, "aaaa", 1000);
    story_done(&story, 2, "bbbb", 1000);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    assert_non_null(strstr(story.coordinator.reason, "worker 1"));
    assert_string_equal(story.coordinator.params_digest, "");
    coordinator_finish(&story.coordinator);
}

static void a_rank_that_is_taken_or_beyond_the_job_is_refused(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 2, ROLE_WORKER, 0);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    // Who is no member yet is told nothing of those who are.
    assert_string_equal(story_last_text(&story),
                        "its rank is taken; see the coordinator's log for the member that has it");
    assert_non_null(strstr(story.transcript.last_error, "taken by process 100 on host node"));
    story_join(&story, 3, ROLE_WORKER, 2);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    assert_string_equal(story_last_text(&story),
                        "there is no such rank; see the coordinator's log for those that exist");
    assert_non_null(
        strstr(story.transcript.last_error, "worker 2 asked to join, but this job has"));
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING); // not disturbed
    coordinator_finish(&story.coordinator);
}

static void workers_without_a_rank_get_the_free_ones(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 3, 0);
    story_join(&story, 1, ROLE_WORKER, 1);
    struct wire_member member = {.role = ROLE_WORKER, .host = "node"};
    struct message message = {.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION};
    story_give(&story, 2, message, 10);
    assert_int_equal(story.transcript.sent[1].rank, 0);
    story_give(&story, 3, message, 10);
    assert_int_equal(story.transcript.sent[2].rank, 2);
    story_give(&story, 4, message, 10);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    coordinator_finish(&story.coordinator);
}

static void another_version_of_the_program_is_refused(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 1, 0);
    struct wire_member member = {.role = ROLE_WORKER, .host = "node"};
    story_give(&story, 1,
               (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = "0.0.0"}, 1);
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    assert_non_null(strstr(story_last_text(&story), "ringside 0.0.0"));
    coordinator_finish(&story.coordinator);
}

static void a_model_that_differs_fails_the_job_by_name(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 2, ROLE_WORKER, 1);
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    struct layout other = story_layout;
    other.digest = 6;
    story_ready(&story, 2, ROLE_WORKER, "first", &other);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    assert_non_null(strstr(story.coordinator.reason, "worker 1 (host node): its model differs"));
    coordinator_finish(&story.coordinator);
}

static void give_classes(struct story *story, uint64_t peer, uint64_t offset, uint64_t size,
                         const char *piece)
{
    story_give(story, peer,
               (struct message){.kind = MESSAGE_CLASSES, .text = piece, .span = {offset, size}},
               15);
}

static void worker_0_tells_the_names_of_classes_before_it_is_ready(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 2, ROLE_WORKER, 1);
    give_classes(&story, 1, 0, 13, "[\"cat\",");
    assert_null(long_text_whole(&story.coordinator.classes));
    give_classes(&story, 2, 0, 2, "[]");
    give_classes(&story, 1, 7, 13, "\"dog\"]");
    assert_string_equal(long_text_whole(&story.coordinator.classes), "[\"cat\",\"dog\"]");
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    give_classes(&story, 1, 0, 2, "[]");
    assert_string_equal(long_text_whole(&story.coordinator.classes), "[\"cat\",\"dog\"]");
    coordinator_finish(&story.coordinator);
}

static void names_of_classes_that_do_not_fit_together_are_none(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 1, 0);
    story_join(&story, 1, ROLE_WORKER, 0);
    give_classes(&story, 1, 0, 13, "[\"cat\",");
    give_classes(&story, 1, 6, 13, "\"dog\"]");
    assert_null(long_text_whole(&story.coordinator.classes));
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    coordinator_finish(&story.coordinator);
}

static void first_parameters_that_differ_fail_the_job(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 2, ROLE_WORKER, 1);
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    story_ready(&story, 2, ROLE_WORKER, "other", &story_layout);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    assert_non_null(strstr(story.coordinator.reason, "first parameters differ"));
    coordinator_finish(&story.coordinator);
}

static void a_worker_that_does_not_come_is_named(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 3, 0);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 2, ROLE_WORKER, 2);
    for (uint64_t now_ms = 0; now_ms < 30000; now_ms += 1000) {
        story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT}, now_ms);
        story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT}, now_ms);
        coordinator_tick(&story.coordinator, now_ms, 0);
    }
    assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
    coordinator_tick(&story.coordinator, 30010, 0); // the last came at 10
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    assert_non_null(strstr(story.coordinator.reason, "only 2 of 3 workers"));
    assert_non_null(strstr(story.coordinator.reason, "rank 1 "));
    coordinator_finish(&story.coordinator);
}

static void a_silent_worker_is_lost_and_named_with_its_step(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 17}, 1000);
    for (uint64_t now_ms = 1000; now_ms < 6000; now_ms += 500) {
        story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 18}, now_ms);
        coordinator_tick(&story.coordinator, now_ms, 0);
        assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    }
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 18}, 6000);
    coordinator_tick(&story.coordinator, 6000, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    assert_int_equal(story.coordinator.workers_lost, 1);
    assert_non_null(strstr(story.coordinator.reason, "worker 1 (host node, pid 101) was lost"));
    assert_non_null(strstr(story.coordinator.reason, "step 17"));
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    coordinator_finish(&story.coordinator);
}

static void a_worker_that_stands_still_is_reported_then_fails_the_job(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    for (uint64_t now_ms = 500; now_ms <= 121000; now_ms += 500) {
        story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 4}, now_ms);
        story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 3}, now_ms);
        coordinator_tick(&story.coordinator, now_ms, 0);
        if (now_ms == 11000) {
            assert_non_null(strstr(story.transcript.last_error, "waiting for worker 1"));
        }
    }
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    assert_non_null(strstr(story.coordinator.reason, "worker 1 (host node) has been at step 3"));
    coordinator_finish(&story.coordinator);
}

/* Whichever of them it is. */
static void the_last_step_has_to_end_as_well(void **state)
{
    (void)state;
    for (uint64_t stuck = 1; stuck <= 2; stuck++) {
        struct story story;
        story_open_training(&story, 2);
        story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 9}, 100);
        story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 9}, 100);
        story_done(&story, 3 - stuck, "last", 200);
        for (uint64_t now_ms = 500; now_ms <= 121000; now_ms += 500) {
            story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 9}, now_ms);
            story_give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 9}, now_ms);
            coordinator_tick(&story.coordinator, now_ms, 0);
        }
        assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
        assert_non_null(strstr(story.coordinator.reason, "has been at step 9"));
        coordinator_finish(&story.coordinator);
    }
}

/* The member that the verdict is about. */
static void check_culprit(const struct story *story, enum member_role role, uint32_t index)
{
    const struct sender *culprit = &story->coordinator.culprit;
    assert_non_null(culprit->slot);
    assert_int_equal(culprit->role, role);
    assert_int_equal(culprit->index, index);
}

static void a_worker_that_leaves_says_why(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story_give(&story, 2,
               (struct message){.kind = MESSAGE_LEAVE,
                                .reason = STATUS_NOT_FINITE,
                                .text = "the loss is not finite"},
               1000);
    assert_int_equal(story.coordinator.verdict, STATUS_NOT_FINITE);
    assert_non_null(strstr(story.coordinator.reason, "worker 1 "));
    assert_non_null(strstr(story.coordinator.reason, "the loss is not finite"));
    check_culprit(&story, ROLE_WORKER, 1);
    coordinator_finish(&story.coordinator);
}

static void an_interrupted_job_ends_within_its_closing_time(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    coordinator_stop(&story.coordinator, STATUS_INTERRUPTED, "interrupted", 5000);
    coordinator_tick(&story.coordinator, 5500, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_CLOSING);
    coordinator_tick(&story.coordinator, 6000, 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_OVER);
    assert_int_equal(story.coordinator.verdict, STATUS_INTERRUPTED);
    assert_null(story.coordinator.culprit.slot);
    coordinator_finish(&story.coordinator);
}

static void messages_of_strangers_are_ignored(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    story_give(&story, 77, (struct message){.kind = MESSAGE_LEAVE, .text = "bye"}, 1000);
    story_done(&story, 77, "same", 1000);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

static void periods_close_when_every_worker_has_closed_them(void **state)
{
    (void)state;
    struct story story;
    story_open_training(&story, 2);
    struct wire_report report = {.steps = 5,
                                 .images = 50,
                                 .loss_sum = 100,
                                 .total_ns = 1000000000,
                                 .closes_period = true,
                                 .test_images = 5,
                                 .test_correct = 4};
    struct message message = {.kind = MESSAGE_REPORT, .report = &report};
    story_give(&story, 1, message, 100);
    assert_int_equal(story.transcript.period_count, 0);
    story_give(&story, 2, message, 100);
    assert_int_equal(story.transcript.period_count, 1);
    assert_int_equal(story.coordinator.results.periods[0].images, 100);
    assert_int_equal(story.coordinator.results.periods[0].test_correct, 8);
    report.period = 900; // out of order: dropped, and nothing is allocated for it
    story_give(&story, 1, message, 100);
    assert_int_equal(story.coordinator.results.period_count, 1);
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_starts_when_all_are_ready_and_each_hears_of_its_next),
        cmocka_unit_test(workers_that_have_mapped_each_others_memory_go_direct),
        cmocka_unit_test(a_worker_that_cannot_map_makes_all_take_messages),
        cmocka_unit_test(a_worker_that_never_finds_out_is_named),
        cmocka_unit_test(where_memory_must_be_shared_who_cannot_ends_the_job),
        cmocka_unit_test(workers_hear_of_all_servers_and_go_when_all_are_connected),
        cmocka_unit_test(equal_digests_complete_the_job),
        cmocka_unit_test(digests_that_differ_fail_the_job_and_name_the_worker),
        cmocka_unit_test(a_rank_that_is_taken_or_beyond_the_job_is_refused),
        cmocka_unit_test(workers_without_a_rank_get_the_free_ones),
        cmocka_unit_test(another_version_of_the_program_is_refused),
        cmocka_unit_test(a_model_that_differs_fails_the_job_by_name),
        cmocka_unit_test(worker_0_tells_the_names_of_classes_before_it_is_ready),
        cmocka_unit_test(names_of_classes_that_do_not_fit_together_are_none),
        cmocka_unit_test(first_parameters_that_differ_fail_the_job),
        cmocka_unit_test(a_worker_that_does_not_come_is_named),
        cmocka_unit_test(a_silent_worker_is_lost_and_named_with_its_step),
        cmocka_unit_test(a_worker_that_stands_still_is_reported_then_fails_the_job),
        cmocka_unit_test(the_last_step_has_to_end_as_well),
        cmocka_unit_test(a_worker_that_leaves_says_why),
        cmocka_unit_test(an_interrupted_job_ends_within_its_closing_time),
        cmocka_unit_test(messages_of_strangers_are_ignored),
        cmocka_unit_test(periods_close_when_every_worker_has_closed_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
