/* Stories of workers that ask to join a job which is under way. */
#ifndef TESTS_SUPPORT_PS_SERVER_NEWCOMER_STORY_H
#define TESTS_SUPPORT_PS_SERVER_NEWCOMER_STORY_H

#include "tests/support/ps-server/coordinator_story.h"

#include <stdint.h>

/* Of four ranks: two processes carry them, by connections 1 and 2, and train. */
void newcomer_story_open(struct story *story);

/* JOIN of a worker; launch: its number (launch_number.h), 0: no launcher has started it. */
void newcomer_story_join(struct story *story, uint64_t peer, uint32_t worker, uint32_t launch);

#endif
