/* Opens jobs that a newcomer may join. */
#include "tests/support/ps-server/newcomer_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

void newcomer_open_training(struct story *story)
{
    story_open_training(story, 2);
    story->job.workers = 4;
    story->job.processes = 2;
    story->job.on_loss = ON_LOSS_REDEAL;
    story->job.min_workers = 1;
}

enum status newcomer_ask(struct story *story, uint64_t peer, int64_t rank, uint64_t now_ms,
                         uint32_t *ret_number)
{
    const struct wire_member member = {.role = ROLE_WORKER,
                                       .has_rank = rank >= 0,
                                       .rank = rank >= 0 ? (uint32_t)rank : 0,
                                       .host = "node"};
    const struct message join = {.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION};
    story_give(story, peer, join, now_ms);
    uint32_t last = story->transcript.sent_count - 1;
    assert_int_equal(story->transcript.sent[last].peer, peer);
    assert_int_equal(story->transcript.sent[last].kind, MESSAGE_REFUSE);
    *ret_number = story->transcript.sent[last].rank;
    return story->transcript.sent[last].reason;
}
