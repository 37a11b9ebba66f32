/* Members that the kernel holds: they have ended, or were killed, and do not go, as a thread of
 * theirs waits for a disk that hangs. For files of this folder. */
#ifndef DEPLOY_LAUNCH_LAUNCH_HELD_H
#define DEPLOY_LAUNCH_LAUNCH_HELD_H

#include "deploy/launch/launch_start.h"

#include <stdbool.h>
#include <stdint.h>

/* When to look at a coordinator on this host again; UINT64_MAX: it is on another one. */
uint64_t launch_held_look_ms(const struct launch *launch);

/* Whether the coordinator began to end long enough ago to be gone, if nothing held it. */
bool launch_coordinator_is_held(struct launch *launch);

/* All members were killed: names those that have not ended. If the coordinator is one of them, the
 * launcher leaves its folder alone from here on (is_folder_held): whoever touches it might be held
 * as well. Not so once the coordinator has said that the folder is complete: then another
 * disk holds it, such as that of a mirror. */
void launch_note_held(struct launch *launch);

#endif
