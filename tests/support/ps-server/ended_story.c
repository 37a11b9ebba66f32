/* Plays the launcher of members that come back. */
#include "tests/support/ps-server/ended_story.h"

#include <string.h>

struct ended_story ended_story;

int ended_story_begin(void **state)
{
    (void)state;
    memset(&ended_story.ended, 0, sizeof(ended_story.ended));
    comeback_begin(&ended_story.back, ENDED_STORY_MS);
    return 0;
}

int ended_story_end(void **state)
{
    (void)state;
    comeback_end(&ended_story.back);
    return 0;
}

bool ended_story_hear(enum launcher_news_kind kind, enum member_role role, uint32_t number)
{
    const struct launcher_news news = {kind, role, number, 0, "it was killed"};
    return ended_take(&ended_story.ended, &ended_story.back.returning,
                      &ended_story.back.story.coordinator, &news);
}

static void judge(const struct job *own)
{
    ended_judge(&ended_story.ended, &ended_story.back.returning, own,
                &ended_story.back.story.coordinator, ENDED_STORY_MS);
}

void ended_story_judge(void)
{
    judge(&ended_story.back.story.job);
}

void ended_story_judge_of(uint32_t workers)
{
    struct job own = ended_story.back.story.job;
    own.workers = workers;
    judge(&own);
}

enum coordinator_state ended_story_state(void)
{
    return ended_story.back.story.coordinator.state;
}
