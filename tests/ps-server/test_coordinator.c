/* Tests of the coordinator: stories of joining, training and losing, in virtual time. */
#include "common/log.h"
#include "ps-server/coordinator.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define SENT_MAX 256

/* What the coordinator did, in order. */
struct transcript {
    struct {
        uint64_t peer;
        enum message_kind kind;
        enum status reason;
        uint32_t rank;
        char text[512];
    } sent[SENT_MAX];
    uint32_t sent_count;
    uint32_t started_count, report_count, epoch_count;
    char last_error[512];
};

struct story {
    struct job job;
    struct transcript transcript;
    struct coordinator coordinator;
};

static void note_send(void *context, uint64_t peer, const struct message *message)
{
    struct transcript *transcript = context;
    if (message->kind == MESSAGE_HEARTBEAT) {
        return;
    }
    assert_in_range(transcript->sent_count, 0, SENT_MAX - 1);
    uint32_t i = transcript->sent_count++;
    transcript->sent[i].peer = peer;
    transcript->sent[i].kind = message->kind;
    transcript->sent[i].reason = message->reason;
    transcript->sent[i].rank = message->rank;
    snprintf(transcript->sent[i].text, sizeof(transcript->sent[i].text), "%s",
             message->text != NULL ? message->text : "");
}

static void note_log(void *context, bool is_error, const char *sentence)
{
    struct transcript *transcript = context;
    if (is_error) {
        snprintf(transcript->last_error, sizeof(transcript->last_error), "%s", sentence);
    }
}

static void note_started(void *context)
{
    ((struct transcript *)context)->started_count++;
}

static void note_reported(void *context, uint32_t rank, const struct message *message)
{
    (void)rank;
    (void)message;
    ((struct transcript *)context)->report_count++;
}

static void note_epoch(void *context, uint32_t epoch)
{
    (void)epoch;
    ((struct transcript *)context)->epoch_count++;
}

static void open_story(struct story *story, const char *mode, uint32_t workers, uint32_t servers)
{
    memset(story, 0, sizeof(*story));
    snprintf(story->job.mode, sizeof(story->job.mode), "%s", mode);
    story->job.workers = workers;
    story->job.servers = servers;
    story->job.start_timeout = 30;
    story->job.lost_after = 5;
    story->job.stall_warn = 10;
    story->job.stall_fail = 120;
    struct coordinator_port port = {
        .context = &story->transcript,
        .send = note_send,
        .log = note_log,
        .started = note_started,
        .reported = note_reported,
        .epoch_closed = note_epoch,
    };
    assert_int_equal(coordinator_init(&story->coordinator, &story->job, "the job", &port, 0),
                     STATUS_OK);
}

static struct layout layout = {
    .value_count = 10, .bucket_count = 1, .buckets = {{0, 10}}, .digest = 5};

static void give(struct story *story, uint64_t peer, struct message message, uint64_t now_ms)
{
    if (message.text == NULL) {
        message.text = "";
    }
    coordinator_receive(&story->coordinator, peer, &message, now_ms);
}

static void join(struct story *story, uint64_t peer, enum member_role role, uint32_t rank)
{
    struct wire_member member = {
        .role = role, .has_rank = true, .rank = rank, .host = "node", .process_id = 100 + rank};
    give(story, peer,
         (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION}, 10);
}

static void ready(struct story *story, uint64_t peer, enum member_role role, const char *digest,
                  const struct layout *of)
{
    char place[64];
    snprintf(place, sizeof(place), "place-%llu", (unsigned long long)peer);
    struct wire_member member = {.role = role,
                                 .host = "node",
                                 .endpoints = place,
                                 .params_digest = digest,
                                 .device = "ref",
                                 .train_samples = 100,
                                 .test_samples = 10};
    give(story, peer,
         (struct message){
             .kind = MESSAGE_READY, .member = &member, .layout = role == ROLE_WORKER ? of : NULL},
         20);
}

static void connected(struct story *story, uint64_t peer)
{
    give(story, peer, (struct message){.kind = MESSAGE_CONNECTED}, 30);
}

static void done(struct story *story, uint64_t peer, const char *digest, uint64_t now_ms)
{
    struct wire_member member = {.role = ROLE_WORKER, .params_digest = digest};
    struct wire_report report = {.warm_images = 100, .warm_ns = 1000000000};
    give(story, peer, (struct message){.kind = MESSAGE_DONE, .member = &member, .report = &report},
         now_ms);
}

/* A ring of `workers` that is training; the peers are 1, 2, ... */
static void open_training(struct story *story, uint32_t workers)
{
    open_story(story, "ring", workers, 0);
    for (uint32_t i = 0; i < workers; i++) {
        join(story, 1 + i, ROLE_WORKER, i);
    }
    for (uint32_t i = 0; i < workers; i++) {
        ready(story, 1 + i, ROLE_WORKER, "first", &layout);
    }
    assert_int_equal(story->coordinator.phase, COORDINATOR_CONNECTING);
    for (uint32_t i = 0; i < workers; i++) {
        assert_int_equal(story->transcript.started_count, 0);
        connected(story, 1 + i);
    }
    assert_int_equal(story->coordinator.phase, COORDINATOR_TRAINING);
}

static const char *last_text(const struct story *story)
{
    return story->transcript.sent[story->transcript.sent_count - 1].text;
}

static enum message_kind last_kind(const struct story *story)
{
    return story->transcript.sent[story->transcript.sent_count - 1].kind;
}

static void a_ring_starts_when_all_are_ready_and_each_hears_of_its_next(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 3);
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

static void workers_hear_of_all_servers_and_go_when_all_are_connected(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, "ps-sync", 1, 2);
    join(&story, 10, ROLE_SERVER, 0);
    join(&story, 11, ROLE_SERVER, 1);
    join(&story, 1, ROLE_WORKER, 0);
    ready(&story, 1, ROLE_WORKER, "first", &layout);
    ready(&story, 11, ROLE_SERVER, "", NULL);
    assert_int_equal(story.coordinator.phase, COORDINATOR_GATHERING);
    ready(&story, 10, ROLE_SERVER, "", NULL);
    assert_int_equal(story.coordinator.phase, COORDINATOR_CONNECTING);
    assert_int_equal(story.transcript.sent[3].peer, 10);
    assert_int_equal(story.transcript.sent[4].peer, 11);
    assert_int_equal(story.transcript.sent[5].peer, 1);
    assert_string_equal(story.transcript.sent[5].text, "place-10\nplace-11\n");
    // A worker goes only when the shards can take its messages.
    connected(&story, 1);
    connected(&story, 11);
    assert_int_equal(story.transcript.sent_count, 6);
    connected(&story, 10);
    assert_int_equal(story.coordinator.phase, COORDINATOR_TRAINING);
    assert_int_equal(last_kind(&story), MESSAGE_GO);
    coordinator_finish(&story.coordinator);
}

static void equal_digests_complete_the_job(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    done(&story, 1, "same", 1000);
    assert_int_equal(story.coordinator.phase, COORDINATOR_TRAINING);
    done(&story, 2, "same", 1100);
    assert_int_equal(story.coordinator.phase, COORDINATOR_CLOSING);
    coordinator_tick(&story.coordinator, 1100);
    assert_int_equal(story.coordinator.phase, COORDINATOR_OVER);
    assert_int_equal(story.coordinator.verdict, STATUS_OK);
    assert_string_equal(story.coordinator.params_digest, "same");
    assert_int_equal(last_kind(&story), MESSAGE_STOP);
    coordinator_finish(&story.coordinator);
}

static void digests_that_differ_fail_the_job_and_name_the_worker(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    done(&story, 1, "aaaa", 1000);
    done(&story, 2, "bbbb", 1000);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    assert_non_null(strstr(story.coordinator.reason, "worker 1"));
    assert_string_equal(story.coordinator.params_digest, "");
    coordinator_finish(&story.coordinator);
}

static void a_rank_that_is_taken_or_beyond_the_job_is_refused(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, "ring", 2, 0);
    join(&story, 1, ROLE_WORKER, 0);
    join(&story, 2, ROLE_WORKER, 0);
    assert_int_equal(last_kind(&story), MESSAGE_REFUSE);
    assert_non_null(strstr(last_text(&story), "taken by process 100 on host node"));
    join(&story, 3, ROLE_WORKER, 2);
    assert_int_equal(last_kind(&story), MESSAGE_REFUSE);
    assert_non_null(strstr(last_text(&story), "worker 2"));
    assert_int_equal(story.coordinator.phase, COORDINATOR_GATHERING); // not disturbed
    coordinator_finish(&story.coordinator);
}

static void workers_without_a_rank_get_the_free_ones(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, "ring", 3, 0);
    join(&story, 1, ROLE_WORKER, 1);
    struct wire_member member = {.role = ROLE_WORKER, .host = "node"};
    struct message message = {.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION};
    give(&story, 2, message, 10);
    assert_int_equal(story.transcript.sent[1].rank, 0);
    give(&story, 3, message, 10);
    assert_int_equal(story.transcript.sent[2].rank, 2);
    give(&story, 4, message, 10);
    assert_int_equal(last_kind(&story), MESSAGE_REFUSE);
    coordinator_finish(&story.coordinator);
}

static void another_version_of_the_program_is_refused(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, "ring", 1, 0);
    struct wire_member member = {.role = ROLE_WORKER, .host = "node"};
    give(&story, 1, (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = "0.0.0"}, 1);
    assert_int_equal(last_kind(&story), MESSAGE_REFUSE);
    assert_non_null(strstr(last_text(&story), "version 0.0.0"));
    coordinator_finish(&story.coordinator);
}

static void a_model_that_differs_fails_the_job_by_name(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, "ring", 2, 0);
    join(&story, 1, ROLE_WORKER, 0);
    join(&story, 2, ROLE_WORKER, 1);
    ready(&story, 1, ROLE_WORKER, "first", &layout);
    struct layout other = layout;
    other.digest = 6;
    ready(&story, 2, ROLE_WORKER, "first", &other);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    assert_non_null(strstr(story.coordinator.reason, "worker 1 (host node): its model differs"));
    coordinator_finish(&story.coordinator);
}

static void first_parameters_that_differ_fail_the_job(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, "ring", 2, 0);
    join(&story, 1, ROLE_WORKER, 0);
    join(&story, 2, ROLE_WORKER, 1);
    ready(&story, 1, ROLE_WORKER, "first", &layout);
    ready(&story, 2, ROLE_WORKER, "other", &layout);
    assert_int_equal(story.coordinator.verdict, STATUS_MISMATCH);
    assert_non_null(strstr(story.coordinator.reason, "first parameters differ"));
    coordinator_finish(&story.coordinator);
}

static void a_worker_that_does_not_come_is_named(void **state)
{
    (void)state;
    struct story story;
    open_story(&story, "ring", 3, 0);
    join(&story, 1, ROLE_WORKER, 0);
    join(&story, 2, ROLE_WORKER, 2);
    for (uint64_t now_ms = 0; now_ms < 30000; now_ms += 1000) {
        give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT}, now_ms);
        give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT}, now_ms);
        coordinator_tick(&story.coordinator, now_ms);
    }
    assert_int_equal(story.coordinator.phase, COORDINATOR_GATHERING);
    coordinator_tick(&story.coordinator, 30000);
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    assert_non_null(strstr(story.coordinator.reason, "only 2 of 3 workers"));
    assert_non_null(strstr(story.coordinator.reason, "rank 1 "));
    coordinator_finish(&story.coordinator);
}

static void a_silent_worker_is_lost_and_named_with_its_step(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 17}, 1000);
    for (uint64_t now_ms = 1000; now_ms < 6000; now_ms += 500) {
        give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 18}, now_ms);
        coordinator_tick(&story.coordinator, now_ms);
        assert_int_equal(story.coordinator.phase, COORDINATOR_TRAINING);
    }
    give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 18}, 6000);
    coordinator_tick(&story.coordinator, 6000);
    assert_int_equal(story.coordinator.verdict, STATUS_UNREACHABLE);
    assert_int_equal(story.coordinator.workers_lost, 1);
    assert_non_null(strstr(story.coordinator.reason, "worker 1 (host node, pid 101) was lost"));
    assert_non_null(strstr(story.coordinator.reason, "step 17"));
    assert_int_equal(last_kind(&story), MESSAGE_STOP);
    coordinator_finish(&story.coordinator);
}

static void a_worker_that_stands_still_is_reported_then_fails_the_job(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    for (uint64_t now_ms = 500; now_ms <= 121000; now_ms += 500) {
        give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 4}, now_ms);
        give(&story, 2, (struct message){.kind = MESSAGE_HEARTBEAT, .step = 3}, now_ms);
        coordinator_tick(&story.coordinator, now_ms);
        if (now_ms == 11000) {
            assert_non_null(strstr(story.transcript.last_error, "waits for worker 1"));
        }
    }
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    assert_non_null(strstr(story.coordinator.reason, "worker 1 (host node) has been at step 3"));
    coordinator_finish(&story.coordinator);
}

static void a_worker_that_leaves_says_why(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    give(&story, 2,
         (struct message){
             .kind = MESSAGE_LEAVE, .reason = STATUS_NOT_FINITE, .text = "the loss is not finite"},
         1000);
    assert_int_equal(story.coordinator.verdict, STATUS_NOT_FINITE);
    assert_non_null(strstr(story.coordinator.reason, "worker 1 "));
    assert_non_null(strstr(story.coordinator.reason, "the loss is not finite"));
    coordinator_finish(&story.coordinator);
}

static void an_interrupted_job_ends_within_its_closing_time(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    coordinator_stop(&story.coordinator, STATUS_INTERRUPTED, "interrupted", 5000);
    coordinator_tick(&story.coordinator, 5500);
    assert_int_equal(story.coordinator.phase, COORDINATOR_CLOSING);
    coordinator_tick(&story.coordinator, 6000);
    assert_int_equal(story.coordinator.phase, COORDINATOR_OVER);
    assert_int_equal(story.coordinator.verdict, STATUS_INTERRUPTED);
    coordinator_finish(&story.coordinator);
}

static void messages_of_strangers_are_ignored(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    give(&story, 77, (struct message){.kind = MESSAGE_LEAVE, .text = "bye"}, 1000);
    done(&story, 77, "same", 1000);
    assert_int_equal(story.coordinator.phase, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

static void epochs_close_when_every_worker_has_closed_them(void **state)
{
    (void)state;
    struct story story;
    open_training(&story, 2);
    struct wire_report report = {.steps = 5,
                                 .images = 50,
                                 .loss_sum = 100,
                                 .total_ns = 1000000000,
                                 .is_epoch = true,
                                 .test_images = 5,
                                 .test_correct = 4};
    struct message message = {.kind = MESSAGE_REPORT, .report = &report};
    give(&story, 1, message, 100);
    assert_int_equal(story.transcript.epoch_count, 0);
    give(&story, 2, message, 100);
    assert_int_equal(story.transcript.epoch_count, 1);
    assert_int_equal(story.coordinator.results.epochs[0].images, 100);
    assert_int_equal(story.coordinator.results.epochs[0].test_correct, 8);
    message.epoch = 900; // out of order: dropped, and nothing is allocated for it
    give(&story, 1, message, 100);
    assert_int_equal(story.coordinator.results.epoch_count, 1);
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_starts_when_all_are_ready_and_each_hears_of_its_next),
        cmocka_unit_test(workers_hear_of_all_servers_and_go_when_all_are_connected),
        cmocka_unit_test(equal_digests_complete_the_job),
        cmocka_unit_test(digests_that_differ_fail_the_job_and_name_the_worker),
        cmocka_unit_test(a_rank_that_is_taken_or_beyond_the_job_is_refused),
        cmocka_unit_test(workers_without_a_rank_get_the_free_ones),
        cmocka_unit_test(another_version_of_the_program_is_refused),
        cmocka_unit_test(a_model_that_differs_fails_the_job_by_name),
        cmocka_unit_test(first_parameters_that_differ_fail_the_job),
        cmocka_unit_test(a_worker_that_does_not_come_is_named),
        cmocka_unit_test(a_silent_worker_is_lost_and_named_with_its_step),
        cmocka_unit_test(a_worker_that_stands_still_is_reported_then_fails_the_job),
        cmocka_unit_test(a_worker_that_leaves_says_why),
        cmocka_unit_test(an_interrupted_job_ends_within_its_closing_time),
        cmocka_unit_test(messages_of_strangers_are_ignored),
        cmocka_unit_test(epochs_close_when_every_worker_has_closed_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
