/* Stories of a coordinator that collects checkpoints of a ring of two workers, the peers 1 and 2.
 */
#ifndef TESTS_SUPPORT_PS_SERVER_CHECKPOINT_STORY_H
#define TESTS_SUPPORT_PS_SERVER_CHECKPOINT_STORY_H

#include "common/vector/layout.h"
#include "tests/support/ps-server/coordinator_story.h"

#include <stdint.h>

/* The job has 40 steps, and no evaluations before the end. Nobody has joined. */
void checkpoint_story_open(struct story *story, struct checkpoint_every every);

/* Both join, and train. */
void checkpoint_story_train(struct story *story);

/* A worker offers its part of a checkpoint, or says why it has none. */
void checkpoint_story_offer(struct story *story, uint64_t peer, uint64_t step, enum status reason);

/* It sends up to 16 values of a vector; the vector "" is the end. */
void checkpoint_story_send(struct story *story, uint64_t peer, uint64_t step, const char *vector,
                           uint64_t total, struct span span);

#endif
