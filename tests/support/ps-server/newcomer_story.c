/* Opens jobs that a newcomer may join. */
#include "tests/support/ps-server/newcomer_story.h"

void newcomer_story_open(struct story *story)
{
    story_open_training(story, 2);
    story->job.workers = 4;
    story->job.processes = 2;
    story->job.on_loss = ON_LOSS_REDEAL;
    story->job.min_workers = 1;
}

void newcomer_story_join(struct story *story, uint64_t peer, uint32_t worker, uint32_t launch)
{
    story_join_process(story, peer, worker, 100 + worker, launch);
}
