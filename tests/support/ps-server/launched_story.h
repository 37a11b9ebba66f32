/* Stories of workers that a launcher has started, and of what it says of their ends. */
#ifndef TESTS_SUPPORT_PS_SERVER_LAUNCHED_STORY_H
#define TESTS_SUPPORT_PS_SERVER_LAUNCHED_STORY_H

#include "ps-server/launcher/launcher_news.h"
#include "tests/support/ps-server/coordinator_story.h"

#include <stdint.h>

/* JOIN of the process that was started for a worker in the start `launch`; 0: by hand. */
void story_join_launched(struct story *story, uint64_t peer, uint32_t worker, uint32_t launch);

/* The launcher says that a worker was killed, by a line without its number. */
void story_tell_end(struct story *story, enum launcher_news_kind kind, uint32_t worker);

#endif
