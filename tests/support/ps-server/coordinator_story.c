/* A transcript of what the coordinator did. */
#include "tests/support/ps-server/coordinator_story.h"

#include "ps-server/coordinator/coordinator_states.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void note_send(void *context, uint64_t peer, const struct message *message)
{
    struct transcript *transcript = context;
    if (message->kind == MESSAGE_HEARTBEAT && message->reason == STATUS_OK) {
        transcript->patience_ms = message->patience_ms;
        return;
    }
    assert_in_range(transcript->sent_count, 0, SENT_MAX - 1);
    uint32_t i = transcript->sent_count++;
    transcript->sent[i].peer = peer;
    transcript->sent[i].kind = message->kind;
    transcript->sent[i].reason = message->reason;
    transcript->sent[i].rank = message->rank;
    transcript->sent[i].term = message->term;
    transcript->sent[i].bucket_bytes = message->start != NULL ? message->start->bucket_bytes : 0;
    transcript->sent[i].is_enough = message->decision != NULL && message->decision->is_enough;
    transcript->sent[i].bucket_count = message->layout != NULL ? message->layout->bucket_count : 0;
    snprintf(transcript->sent[i].text, sizeof(transcript->sent[i].text), "%s",
             message->text != NULL ? message->text : "");
}

static void note_log(void *context, bool is_error, const char *sentence)
{
    struct transcript *transcript = context;
    char *line = is_error ? transcript->last_error : transcript->last_fact;
    snprintf(line, sizeof(transcript->last_error), "%s", sentence);
}

static void note_started(void *context)
{
    ((struct transcript *)context)->started_count++;
}

static void note_switched(void *context)
{
    ((struct transcript *)context)->switched_count++;
}

static void note_reported(void *context, uint32_t rank, const struct message *message)
{
    (void)rank;
    (void)message;
    ((struct transcript *)context)->report_count++;
}

static void note_period(void *context, uint32_t period)
{
    (void)period;
    ((struct transcript *)context)->period_count++;
}

static void note_await_again(void *context, enum member_role role, uint32_t number)
{
    struct transcript *transcript = context;
    (void)role;
    transcript->awaited_count++;
    transcript->awaited_number = number;
}

static enum presence look(void *context, struct sighting *sighting)
{
    const struct transcript *transcript = context;
    sighting->is_met = true;
    return transcript->presence;
}

void story_open(struct story *story, const char *mode, uint32_t workers, uint32_t servers)
{
    memset(story, 0, sizeof(*story));
    story->job.mode = mode_of(mode);
    story->job.workers = workers;
    story->job.global_batch = workers;
    story->job.servers = servers;
    story->job.server_threads = 1;
    story->job.all_reduce = ALL_REDUCE_CHOICE_RING;
    story->job.bucket_mb = 1;
    snprintf(story->job.faults, sizeof(story->job.faults), "none");
    snprintf(story->job.server_device, sizeof(story->job.server_device), "host");
    story->job.start_timeout = 30;
    story->job.lost_after = 5;
    story->job.stall_warn = 10;
    story->job.stall_fail = 120;
    struct coordinator_port port = {
        .context = &story->transcript,
        .look = look,
        .send = note_send,
        .log = note_log,
        .started = note_started,
        .switched = note_switched,
        .reported = note_reported,
        .period_closed = note_period,
        .await_again = note_await_again,
    };
    assert_int_equal(coordinator_init(&story->coordinator, &story->job, "the job", &port, 0),
                     STATUS_OK);
}

struct layout story_layout = {
    .value_count = 10, .bucket_count = 1, .buckets = {{0, 10}}, .digest = 5};

void story_give(struct story *story, uint64_t peer, struct message message, uint64_t now_ms)
{
    if (message.text == NULL) {
        message.text = "";
    }
    coordinator_receive(&story->coordinator, peer, &message, now_ms);
}

void story_join(struct story *story, uint64_t peer, enum member_role role, uint32_t rank)
{
    struct wire_member member = {.role = role,
                                 .has_rank = true,
                                 .rank = rank,
                                 .host = "node",
                                 .process_id = 100 + rank,
                                 .cores = story->cores};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION},
               10);
}

void story_join_process(struct story *story, uint64_t peer, uint32_t worker, uint64_t process_id,
                        uint32_t launch)
{
    const struct wire_member member = {.role = ROLE_WORKER,
                                       .has_rank = true,
                                       .rank = worker,
                                       .host = "node",
                                       .process_id = process_id,
                                       .launch = launch};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION},
               110);
}

const struct wire_nccl *story_nccl;
const char *story_optimizer, *story_tensors;
const struct optimizer_groups *story_groups;
bool story_has_no_model = false;

static uint64_t count_lines(const char *text)
{
    uint64_t count = 0;
    for (; text != NULL && *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

void story_ready(struct story *story, uint64_t peer, enum member_role role, const char *digest,
                 const struct layout *of)
{
    char place[64];
    snprintf(place, sizeof(place), "place-%llu", (unsigned long long)peer);
    struct wire_member member = {.role = role,
                                 .host = "node",
                                 .endpoints = place,
                                 .params_digest = digest,
                                 .device = "ref",
                                 .tensors = story_tensors,
                                 .tensor_count = count_lines(story_tensors),
                                 .parameters =
                                     of != NULL && !story_has_no_model ? of->value_count : 0,
                                 .train_samples = 100,
                                 .test_samples = 10};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_READY,
                                .member = &member,
                                .nccl = story_nccl,
                                .text = role == ROLE_WORKER ? story_optimizer : NULL,
                                .groups = role == ROLE_WORKER ? story_groups : NULL,
                                .layout = role == ROLE_WORKER ? of : NULL},
               20);
}

void story_connected(struct story *story, uint64_t peer)
{
    story_give(story, peer, (struct message){.kind = MESSAGE_CONNECTED}, 30);
}

void story_done(struct story *story, uint64_t peer, const char *digest, uint64_t now_ms)
{
    struct wire_member member = {.role = ROLE_WORKER, .params_digest = digest};
    struct wire_report report = {.warm_images = 100, .warm_ns = 1000000000};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_DONE, .member = &member, .report = &report},
               now_ms);
}

void story_answer_stop(struct story *story, uint64_t peer, uint64_t now_ms)
{
    story_give(story, peer, (struct message){.kind = MESSAGE_LEAVE, .text = ""}, now_ms);
}

void story_open_training(struct story *story, uint32_t workers)
{
    story_open_crowded(story, workers, 0);
}

void story_open_crowded(struct story *story, uint32_t workers, uint32_t cores)
{
    story_open(story, "ring", workers, 0);
    story->cores = cores;
    for (uint32_t i = 0; i < workers; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    for (uint32_t i = 0; i < workers; i++) {
        story_ready(story, 1 + i, ROLE_WORKER, "first", &story_layout);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_CONNECTING);
    for (uint32_t i = 0; i < workers; i++) {
        assert_int_equal(story->transcript.started_count, 0);
        story_connected(story, 1 + i);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
}

void story_call_back(struct story *story, uint64_t now_ms)
{
    assert_int_equal(story->coordinator.state, COORDINATOR_RENEWING);
    assert_int_equal(story->coordinator.verdict, STATUS_AGAIN);
    coordinator_call_back(&story->coordinator, now_ms);
}

const char *story_last_text(const struct story *story)
{
    return story->transcript.sent[story->transcript.sent_count - 1].text;
}

enum message_kind story_last_kind(const struct story *story)
{
    return story->transcript.sent[story->transcript.sent_count - 1].kind;
}
