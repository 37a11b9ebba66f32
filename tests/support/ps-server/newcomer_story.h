/* Stories of workers that ask to join a job which is under way. */
#ifndef TESTS_SUPPORT_PS_SERVER_NEWCOMER_STORY_H
#define TESTS_SUPPORT_PS_SERVER_NEWCOMER_STORY_H

#include "tests/support/ps-server/coordinator_story.h"

/* Of four ranks: two processes carry them, by connections 1 and 2, and train. */
void newcomer_open_training(struct story *story);

/* JOIN of a worker: why it is refused, and under which number it may come again. A rank below 0 is
 * none. */
enum status newcomer_ask(struct story *story, uint64_t peer, int64_t rank, uint64_t now_ms,
                         uint32_t *ret_number);

#endif
