/* The line that says how a further process joins the job: a command for any shell of this host, or,
 * if the job's processes listen at addresses, of another one. */
#ifndef DEPLOY_LAUNCH_JOIN_LINE_H
#define DEPLOY_LAUNCH_JOIN_LINE_H

#include "deploy/launch/launch_start.h"

#include <stdbool.h>

#define JOIN_LINE_BYTES 16384

/* Without a line's end, once the endpoint is known. False: nobody can join, as the job does not go
 * on with other processes, or has keys that only the launcher has. */
bool join_line_write(const struct launch *launch, char ret_text[JOIN_LINE_BYTES]);

/* Prints it where the job's progress is shown. */
void join_line_print(const struct launch *launch);

#endif
