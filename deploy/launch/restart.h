/* Starts again what was lost: single workers, where the job goes on without them, or the whole job.
 * For files of this folder.
 *
 * The whole job is started again if it ended because something was lost: the coordinator, which was
 * killed, stopped for too long, or gone with its host; or another member, so that the coordinator
 * says so by its exit code (EXIT_LOST). A member that ended by itself with another error would do
 * so again, and so would a job that diverged, or whose disk is full. Nobody of the attempt before
 * may be left, because there is one run folder.
 *
 * Workers, the coordinator and whole jobs share the count of --restarts, and the pauses, which
 * become longer while one restart follows the other quickly. */
#ifndef DEPLOY_LAUNCH_RESTART_H
#define DEPLOY_LAUNCH_RESTART_H

#include "deploy/launch/launch_start.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESTART_WHEN_BYTES 24

/* Whether workers may have to be started again. */
bool restart_may_start_workers(const struct launch *launch);

/* A worker has ended that the job may go on without. If it was lost, and did not fail by itself, it
 * is started again later: on another host if its own is lost and another has a free slot. For a
 * join of --fault it is started soon, whatever --restarts says: it waits for its turn. */
void restart_plan_worker(struct launch *launch, struct member *member);

/* Whether a worker that was lost with its host, and that the job goes on without, would be started
 * again if another host had a free slot. */
bool restart_lacks_slot(const struct launch *launch, const struct member *member);

/* Finds where a member that was killed, or asked to end before the job has begun, could be started
 * again if the coordinator has a place for it: a worker whose host is lost is moved to another one.
 * Until the coordinator has answered, a restart is kept for the member. False: it is not started
 * again. */
bool restart_find_place(struct launch *launch, struct member *member);

/* A line of the coordinator: the answer to that (see ps-server/launcher/launcher_news.h), after
 * which the member is started again and the job is as before; or what the job does
 * (ps-server/launcher/signs.h): once it ends, nobody is started again. False: it is something else.
 */
bool restart_take_answer(struct launch *launch, const char *line);

/* Starts the members for which it is time. Returns when the next one is due; UINT64_MAX: none is.
 */
uint64_t restart_members(struct launch *launch);

/* Whether any worker is to be started again. */
bool restart_is_planned(const struct launch *launch);

/* The coordinator has ended, and others have not: whether it is started again alone, where it was.
 * They wait for it, and train on meanwhile if they can. */
bool restart_may_return(const struct launch *launch);

/* What they do, in words. */
const char *restart_others_do(const struct launch *launch);

/* A coordinator that stands still, or gives no sign of life, for longer than the others wait for it
 * is killed, so that another one can take its place: there are never two. Returns when that is due;
 * UINT64_MAX: it is not. */
uint64_t restart_end_silent(struct launch *launch);

/* Why the coordinator is over, as a sentence. */
void restart_explain_end(const struct launch *launch, char *ret_reason, size_t reason_size);

/* Does that and restart_members. Returns when the next of it is due. */
uint64_t restart_due(struct launch *launch);

/* Makes ready for that, for the reason that the sentence is. It comes before workers that are to be
 * started again: those for which no restart is left are not. */
void restart_begin_return(struct launch *launch, const char *reason);

/* After all members have ended: whether the job is started again as a whole. */
bool restart_may_follow(const struct launch *launch);

/* How long to wait before that, and before a coordinator is started again; for people, too: "at
 * once", or "in 2.0 s". */
uint64_t restart_delay_ms(const struct launch *launch, char ret_when[RESTART_WHEN_BYTES]);

/* Makes ready for the next attempt, whose reason the sentence is. */
void restart_begin(struct launch *launch, const char *reason);

#endif
