/* The mirror of the job that is launched: where it is, and of which run it is. */
#ifndef DEPLOY_LAUNCH_LAUNCH_MIRROR_H
#define DEPLOY_LAUNCH_LAUNCH_MIRROR_H

#include "common/base/status.h"
#include "common/checkpoint/run_number.h"

#include <stdbool.h>

#define LAUNCH_MIRROR_BYTES 1040

struct launch_mirror {
    char folder[LAUNCH_MIRROR_BYTES]; // on the coordinator's host; "": there is none
    char run[RUN_NUMBER_BYTES];       // a number that no other run has: the coordinator's run
                                      // folder may be lost, and the mirror not
    bool is_own;                      // the folder: in this host's memory, for nobody else
};

/* What --mirror asks for: a folder, "memory" for one that is made (0700), or NULL or "" for none.
 * Logs. */
enum status launch_mirror_begin(struct launch_mirror *mirror, const char *asked);

/* Removes the folder with all that is in it, if it was made here. */
void launch_mirror_end(const struct launch_mirror *mirror);

#endif
