/* What tests of ended.h share: members that come back to a coordinator, and what the launcher says
 * of those that have ended. One of them for a program. */
#ifndef TESTS_SUPPORT_PS_SERVER_ENDED_STORY_H
#define TESTS_SUPPORT_PS_SERVER_ENDED_STORY_H

#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/returning/ended.h"
#include "tests/support/ps-server/comeback.h"

#include <stdbool.h>
#include <stdint.h>

#define ENDED_STORY_MS 100 // what the clock says all the time

struct ended_story {
    struct comeback back;
    struct ended ended;
};

extern struct ended_story ended_story;

/* Before and after each test: workers 0, 1 and 2 of a ring, and a coordinator to which they come
 * back. Nobody has ended. */
int ended_story_begin(void **state);
int ended_story_end(void **state);

#define ENDED_STORY_TEST(function) \
    cmocka_unit_test_setup_teardown(function, ended_story_begin, ended_story_end)

/* Whether the news, that a member was killed, concerned those that come back. */
bool ended_story_hear(enum launcher_news_kind kind, enum member_role role, uint32_t number);

/* Judges for a job as it is, or for one that the launcher has started with so many workers. */
void ended_story_judge(void);
void ended_story_judge_of(uint32_t workers);

enum coordinator_state ended_story_state(void);

#endif
