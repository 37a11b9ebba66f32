/* Tells the coordinator how members end (ps-server/launcher/launcher_news.h). For files of this
 * folder.
 *
 * A coordinator that has just come back knows nothing of the ends that the one before was told of.
 * It is told of each process that does not run, and whether the job had gone on without that
 * process, as the coordinator before has said (ps-server/launcher/signs.h). */
#ifndef DEPLOY_LAUNCH_LAUNCH_ENDS_H
#define DEPLOY_LAUNCH_LAUNCH_ENDS_H

#include "deploy/launch/launch_start.h"

#include <stdbool.h>

/* Tells the coordinator why the job has to end. `culprit`: the member that it is about, or NULL. */
void launch_tell(struct launch *launch, const char *kind, const char *cause,
                 const struct member *culprit);

/* Tells the coordinator of ends that it has not heard of, and plans restarts. */
void launch_note_ends(struct launch *launch);

/* Notes that the job goes on without the members of whose ends the coordinator has heard. `heard`:
 * lines that it had taken when it said so. It may still count on members of later lines. */
void launch_settle_ends(struct launch *launch, uint32_t heard);

/* Forgets what was to end the job, so that the coordinator hears of all ends again: of members that
 * are about to be started again only `with_planned`. */
void launch_forget_ends(struct launch *launch, bool with_planned);

#endif
