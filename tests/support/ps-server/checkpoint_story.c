/* Opens jobs with checkpoints, and plays their workers. */
#include "tests/support/ps-server/checkpoint_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>

void checkpoint_story_open(struct story *story, struct checkpoint_every every)
{
    story_open(story, "ring", 2, 0);
    story->job.steps = 40;
    story->job.global_batch = 2;
    story->job.sync_every = 1;
    story->job.eval_every = 1000;
    story->job.checkpoint_every = every;
    snprintf(story->job.order, sizeof(story->job.order), "free");
    snprintf(story->job.switches, sizeof(story->job.switches), "none");
}

void checkpoint_story_train(struct story *story)
{
    for (uint32_t i = 0; i < 2; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        story_ready(story, 1 + i, ROLE_WORKER, "first", &story_layout);
    }
    for (uint32_t i = 0; i < 2; i++) {
        story_connected(story, 1 + i);
    }
    assert_int_equal(story->coordinator.state, COORDINATOR_TRAINING);
}

void checkpoint_story_offer(struct story *story, uint64_t peer, uint64_t step, enum status reason)
{
    const uint64_t images = step;
    const double loss_sum = 0.5;
    const struct wire_report open = {.steps = step};
    const struct wire_slices slices = {1, &images, &loss_sum};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_SNAPSHOT,
                                .step = step,
                                .reason = reason,
                                .report = &open,
                                .slices = &slices},
               100);
}

void checkpoint_story_send(struct story *story, uint64_t peer, uint64_t step, const char *vector,
                           uint64_t total, struct span span)
{
    static const float values[16];
    const struct wire_piece piece = {.vector = vector, .total = total};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_PIECE,
                                .step = step,
                                .piece = &piece,
                                .span = span,
                                .values = vector[0] != '\0' ? values : NULL},
               110);
}
