/* Counts the restarts of a job: those that were made, and those that are planned. For restart.c. */
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

/* Whether --restarts has one left beside those that were made or are planned. */
bool restart_plans_have_room(const struct launch *launch);

/* The job ends: nobody is started again. */
void restart_plans_forget(struct launch *launch);

/* Forgets plans for which no restart is left. */
void restart_plans_drop(struct launch *launch);

/* A restart was made. */
void restart_plans_note(struct launch *launch);

/* Those that were made a short time ago, one soon after the other. */
uint32_t restart_plans_recent(const struct launch *launch);

/* The pause after as many restarts in a short time. */
uint64_t restart_plans_pause_ms(uint32_t recent);

#endif
