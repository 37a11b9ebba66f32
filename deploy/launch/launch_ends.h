/* Tells the coordinator how members end (ps-server/coordinator/launcher_news.h). For files of this
 * folder.
 *
 * One that has just come back knows of no end that was told before. It is told of each process that
 * does not run, and whether the job has gone on without it already, as the one before has said
 * (ps-server/signs.h). */
#ifndef DEPLOY_LAUNCH_LAUNCH_ENDS_H
#define DEPLOY_LAUNCH_LAUNCH_ENDS_H

#include "deploy/launch/launch_start.h"

#include <stdbool.h>

/* Tells the coordinator why the job has to end. `culprit`: the member that it is about, or NULL. */
void launch_tell(struct launch *launch, const char *kind, const char *cause,
                 const struct member *culprit);

/* Tells of the ends that it was not told of, and plans restarts. */
void launch_note_ends(struct launch *launch);

/* The coordinator goes on without those that have ended. */
void launch_settle_ends(struct launch *launch);

/* What was to end the job does not, and the coordinator is to hear of all ends again. Of those that
 * are started again soon it hears if `with_planned`. */
void launch_forget_ends(struct launch *launch, bool with_planned);

#endif
