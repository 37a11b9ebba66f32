/* Joins and ends, as a launcher causes and tells them. */
#include "tests/support/ps-server/launched_story.h"

#include "common/service/launch_number.h"

void story_join_launched(struct story *story, uint64_t peer, uint32_t worker, uint32_t launch)
{
    story_join_process(story, peer, worker, 100 + launch,
                       launch > 0 ? launch_number_make(launch, 2) : 0);
}

void story_tell_end(struct story *story, enum launcher_news_kind kind, uint32_t worker)
{
    const struct launcher_news news = {
        .kind = kind, .role = ROLE_WORKER, .index = worker, .sentence = "it was killed"};
    launcher_news_apply(&news, &story->coordinator, 100);
}
