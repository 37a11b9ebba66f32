/* Plays members that come back to a coordinator. */
#include "tests/support/ps-server/comeback.h"

#include "common/job/job_text.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

/* What the worker says. Borrows from the comeback until the next call. */
struct message comeback_say(struct comeback *back, uint32_t rank, uint64_t step)
{
    back->member = (struct wire_member){.role = ROLE_WORKER,
                                        .has_rank = true,
                                        .rank = rank,
                                        .host = "node",
                                        .process_id = 100 + rank,
                                        .endpoints = "its place",
                                        .params_digest = "first",
                                        .device = "cpu",
                                        .figures = "",
                                        .train_samples = 60,
                                        .data_digest = 8};
    back->sum = (struct wire_sum){back->back.sum_round - 1, 2, back->sums};
    return (struct message){.kind = MESSAGE_BACK,
                            .job_id = 77,
                            .rank = rank,
                            .step = step,
                            .text = "",
                            .member = &back->member,
                            .layout = &story_layout,
                            .start = &back->start,
                            .back = &back->back,
                            .sum = back->back.sum_round > 0 ? &back->sum : NULL};
}

const struct returning_past comeback_past = {.seconds = 1.5, .restarts = 1};

void comeback_begin_in(struct comeback *back, const char *mode, uint32_t servers, uint64_t now_ms)
{
    memset(back, 0, sizeof(*back));
    story_open(&back->story, mode, COMEBACK_WORKERS, servers);
    back->story.job.on_loss = ON_LOSS_REDEAL;
    back->story.job.min_workers = 1;
    back->story.job.global_batch = 6;
    back->story.job.batch = 2;
    back->story.job.steps = 1000;
    back->start = (struct wire_start){.all_reduce = ALL_REDUCE_RING, .bucket_bytes = 40};
    back->back = (struct wire_back){.trained_ms = 4000};
    assert_true(returning_may_begin(&back->story.coordinator));
    struct message first = comeback_say(back, 0, 20);
    first.start = servers > 0 ? NULL : first.start;
    assert_int_equal(
        returning_generation(&first, &back->story.job, &comeback_past, now_ms, &back->generation),
        STATUS_OK);
    returning_begin(&back->returning, &first, &back->story.job, &back->generation,
                    &back->story.coordinator);
    assert_false(returning_may_begin(&back->story.coordinator));
}

void comeback_begin(struct comeback *back, uint64_t now_ms)
{
    comeback_begin_in(back, "ring", 0, now_ms);
}

/* It says so once more, as it is asked. */
bool comeback_hear(struct comeback *back, uint64_t peer, const struct message *message,
                   uint64_t now_ms)
{
    for (uint32_t words = 0; words < 2; words++) {
        if (!returning_take(&back->returning, &back->generation, &back->story.coordinator, peer,
                            message, now_ms)) {
            return false;
        }
    }
    return true;
}

/* Of a job with servers: says that it joins anew. */
bool comeback_take_anew(struct comeback *back, enum member_role role, uint32_t rank, uint64_t peer)
{
    struct message message = comeback_say(back, rank, 20);
    back->member.role = role;
    message.start = NULL;
    message.layout = NULL;
    return comeback_hear(back, peer, &message, 100);
}

/* One that was not there, or does not know that it was. */
bool comeback_join(struct comeback *back, enum member_role role, uint32_t number, uint64_t peer,
                   uint64_t now_ms)
{
    comeback_say(back, number, 0);
    back->member.role = role;
    const struct message message = {
        .kind = MESSAGE_JOIN, .text = RINGSIDE_VERSION, .member = &back->member};
    return returning_take_join(&back->returning, &back->generation, &back->story.coordinator, peer,
                               &message, now_ms);
}

bool comeback_take(struct comeback *back, uint32_t rank, uint64_t step, uint64_t now_ms)
{
    const struct message message = comeback_say(back, rank, step);
    return comeback_hear(back, 10 + rank, &message, now_ms);
}

void comeback_end(struct comeback *back)
{
    returning_finish(&back->returning);
    coordinator_finish(&back->story.coordinator);
    generation_finish(&back->generation);
}

void comeback_begin_without_one(struct comeback *back, uint32_t left, uint64_t now_ms)
{
    comeback_end(back);
    memset(back, 0, sizeof(*back));
    story_open(&back->story, "ring", left, 0);
    back->story.job.on_loss = ON_LOSS_REDEAL;
    back->story.job.min_workers = 1;
    back->story.job.steps = 1000;
    back->start = (struct wire_start){.all_reduce = ALL_REDUCE_RING, .bucket_bytes = 40};
    back->back = (struct wire_back){.trained_ms = 4000};
    const struct message first = comeback_say(back, 0, 20);
    assert_int_equal(
        returning_generation(&first, &back->story.job, &comeback_past, now_ms, &back->generation),
        STATUS_OK);
    struct job own = back->story.job;
    own.workers = left + 1;
    returning_begin(&back->returning, &first, &own, &back->generation, &back->story.coordinator);
}

void comeback_take_numbered(struct comeback *back, uint32_t slot, uint32_t number, uint64_t now_ms)
{
    struct message message = comeback_say(back, slot, 20);
    back->member.rank = number;
    assert_true(comeback_hear(back, 10 + slot, &message, now_ms));
}

uint32_t comeback_count_sent(const struct comeback *back, enum message_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < back->story.transcript.sent_count; i++) {
        count += back->story.transcript.sent[i].kind == kind;
    }
    return count;
}

/* The index of the first message of a kind that was sent; UINT32_MAX: none was. */
uint32_t comeback_first_sent(const struct comeback *back, enum message_kind kind)
{
    for (uint32_t i = 0; i < back->story.transcript.sent_count; i++) {
        if (back->story.transcript.sent[i].kind == kind) {
            return i;
        }
    }
    return UINT32_MAX;
}
