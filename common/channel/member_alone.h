/* What a member does when it notices that its coordinator is gone. For member.c. */
#ifndef COMMON_CHANNEL_MEMBER_ALONE_H
#define COMMON_CHANNEL_MEMBER_ALONE_H

#include "common/channel/member.h"

#include <stdbool.h>
#include <stdint.h>

/* The job is over for the member; the first reason stays. */
void member_mark_stopped(struct member *member, enum status status, const char *text);

/* Makes a connection, which waits for the one who listens next, in the place of one that is closed.
 * False: it could not be made. */
bool member_reconnect(struct member *member);

/* If the coordinator is gone, the member is marked as stopped, or is alone from now on. */
void member_judge(struct member *member, uint64_t now_ms);

#endif
