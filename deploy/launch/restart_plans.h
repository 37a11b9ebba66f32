/* Counts the restarts of a job: those that were made, planned and offered. For restart.c.
 *
 * Before the job begins, the coordinator is told of members that can be started again, and answers
 * for which of them it waits. Until then a restart is kept for each. */
#ifndef DEPLOY_LAUNCH_RESTART_PLANS_H
#define DEPLOY_LAUNCH_RESTART_PLANS_H

#include "deploy/launch/launch_start.h"

#include <stdbool.h>
#include <stdint.h>

static inline bool restart_plan_is_made(const struct member *member)
{
    return member->restart_ms != 0;
}

/* Planned restarts that --restarts counts: not those for joins of --fault. */
uint32_t restart_plans_count(const struct launch *launch);

/* Whether --restarts has one for the member, beside those that were made, and those that are
 * planned for others or offered. */
bool restart_plans_have_room(const struct launch *launch, const struct member *member);

/* The coordinator will not answer any more: keeps no restart for those that are offered. */
void restart_plans_end_offers(struct launch *launch);

/* The job ends: nobody is started again. */
void restart_plans_forget(struct launch *launch);

/* Forgets plans for which no restart is left, of the last members first. */
void restart_plans_drop(struct launch *launch);

/* Whether a member that has ended was lost together with the coordinator before this one, as far as
 * anybody can tell: it was started earlier, and the coordinator is not done with that loss. The two
 * are one loss, and its pause is over. */
bool restart_plans_are_one_loss(const struct launch *launch, const struct member *member);

/* How many restarts a member's would follow quickly: those that were made for losses before it, and
 * those that are planned for others. */
uint32_t restart_plans_before(const struct launch *launch, const struct member *member);

/* Plans a member's restart, after the pause that follows so many, or at once after none. An earlier
 * plan stays. */
void restart_plans_make(const struct launch *launch, struct member *member, uint32_t recent);

/* A restart was made: of the coordinator or the whole job, or of a member. */
void restart_plans_note(struct launch *launch);
void restart_plans_note_member(struct launch *launch, const struct member *member);

/* Restarts that were made a short time ago, one soon after the other. */
uint32_t restart_plans_recent(const struct launch *launch);

/* The pause in milliseconds before a restart, after `recent` ones in a short time. */
uint64_t restart_plans_pause_ms(uint32_t recent);

#endif
