/* The parts of a job's timeline: where its members write them, and how they come together. */
#ifndef DEPLOY_LAUNCH_LAUNCH_TIMELINE_H
#define DEPLOY_LAUNCH_LAUNCH_TIMELINE_H

#include "deploy/launch/launch_start.h"

/* Before each attempt: has agents make folders on other hosts. Waits for these. Logs. */
enum status launch_timeline_begin(struct launch *launch);

/* Once the job is to begin, and not before: removes what an earlier job or attempt has left in the
 * folder, whose steps are not those to come. */
void launch_timeline_remove_old(const struct launch *launch);

/* Chooses where the members of a host write their parts: launch->timelines[host]. Logs. */
enum status launch_timeline_choose(struct launch *launch, size_t host);

/* Fetches the parts and makes one timeline of them. Without one the job is what it is: what is
 * missing is logged. */
void launch_timeline_end(struct launch *launch);

/* In the place of launch_timeline_end, where nobody may touch the run folder: frees the names of
 * the folders with the parts, and leaves these as they are. */
void launch_timeline_forget(struct launch *launch);

#endif
